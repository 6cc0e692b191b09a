"""Requests snapshots that no gate asks for: of every player at a stop, and of main agents in time."""

from __future__ import annotations

from collections.abc import Callable

from league.core.matchmaking.roles import MAIN_ROLE
from league.core.state.commands import Command, RequestSnapshot
from league.core.state.state import LeagueState, PlayerState

FINAL, TIME = "final", "time"
"""Reasons of these snapshots; no reset follows them."""

MAX_AGE_FRACTION = 0.1
"""Of the time trained so far: how old the newest snapshot of a main agent may become."""


class SnapshotRequests:
    """Requests snapshots whatever the gates say.

    A gate counts trained steps, and a slow game reaches its limits only after days. What is exported and rated is a
    snapshot, so that a main agent's newest one never becomes older than a tenth of the training time. The interval
    grows with the run: about 90 snapshots in 30 days.

    Not of an exact run: its history must not depend on a clock. Not of exploiters: when they are frozen decides when
    they start again, and they are not exported.

    Args:
      seconds: least training time between two snapshots of a player in time.
      execute: lets the league decide on a command.
    """

    def __init__(self, seconds: float, *, execute: Callable[[Command], bool]) -> None:
        self.seconds = seconds
        self._execute = execute
        self._newest: dict[str, tuple[int, float]] = {}

    def request_due(self, state: LeagueState, *, now: float) -> None:
        """Request a snapshot of every main agent whose newest one is too old.

        Args:
          now: seconds of training so far, those of earlier starts included.
        """
        for player in state.players.values():
            if player.role != MAIN_ROLE or state.config_of(player.name).reset_probability > 0.0:
                continue
            number, since = self._newest.get(player.name, (-1, now))
            if number != player.num_snapshots:
                self._newest[player.name] = player.num_snapshots, now
            elif now - since >= max(self.seconds, MAX_AGE_FRACTION * now) and has_learnt(state, player):
                self._execute(RequestSnapshot(player.name, TIME))

    def request_final(self, state: LeagueState) -> None:
        """Request a snapshot of every player that has learnt since its newest one."""
        for player in [player for player in state.players.values() if has_learnt(state, player)]:
            self._execute(RequestSnapshot(player.name, FINAL))


def has_learnt(state: LeagueState, player: PlayerState) -> bool:
    """True if a player has trained since its newest snapshot."""
    newest = state.snapshots.get(f"{player.name}-s{player.num_snapshots - 1}")
    return newest is not None and player.trained_steps > newest.trained_steps
