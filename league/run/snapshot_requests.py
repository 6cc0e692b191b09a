"""Requests snapshots that no gate asks for: of every player at a stop, and of main agents by budget and in time."""

from __future__ import annotations

from collections.abc import Callable

from league.config.run_config import RuntimeConfig
from league.core.matchmaking.roles import MAIN_ROLE
from league.core.state.commands import Command, RequestSnapshot
from league.core.state.state import LeagueState, PlayerState

FINAL, TIME, BUDGET = "final", "time", "budget"
"""Reasons of these snapshots; no reset follows them."""

MAX_AGE_FRACTION = 0.1
"""Of the time trained so far: how old the newest snapshot of a main agent may become."""


class SnapshotRequests:
    """Requests snapshots whatever the gates say.

    A gate counts trained steps, and a slow game reaches its limits only after days. What is exported and rated is a
    snapshot, so that a main agent's newest one never becomes older than a tenth of the training time. The interval
    grows with the run: about 90 snapshots in 30 days.

    Snapshots by budget cut a budget into equal parts: few or many decisions in a second, slow or fast processors make
    no difference. In a deterministic run the part of the budget that is spent depends on env steps alone, and so do
    they.

    In time not of a deterministic run: its history must not depend on a clock. Never of exploiters: when they are
    frozen decides when they start again, and they are not exported.

    Args:
      settings: `snapshot_seconds` and `snapshots_per_budget`; the daemon keeps them up to date.
      ask: has the league decide on a command.
    """

    def __init__(self, settings: RuntimeConfig, *, ask: Callable[[Command], bool]) -> None:
        self.settings = settings
        self._ask = ask
        # Player -> its number of snapshots, and the time, or the part of the budget, in which it was first seen.
        self._newest_at: dict[str, tuple[int, float]] = {}
        self._newest_in: dict[str, tuple[int, int]] = {}

    def request_due(self, state: LeagueState, *, now: float) -> None:
        """Request a snapshot of every main agent whose newest one is too old.

        Args:
          now: seconds of training so far, those of earlier starts included.
        """
        for player in main_agents(state):
            num_snapshots, taken_at = self._newest_at.get(player.name, (-1, now))
            if num_snapshots != player.num_snapshots:
                self._newest_at[player.name] = player.num_snapshots, now
            elif now - taken_at >= max_age_s(self.settings, now=now) and has_learnt(state, player):
                self._ask(RequestSnapshot(player.name, TIME))

    def request_by_budget(self, state: LeagueState, *, budget_fraction: float) -> None:
        """Request a snapshot of every main agent without one from the present part of the budget.

        A newest snapshot that is as far as its player counts as one of this part. Nothing is due that a stop forgets.

        Args:
          budget_fraction: of the budget that is spent, in [0, 1].
        """
        if not self.settings.snapshots_per_budget:
            return
        part = int(budget_fraction * self.settings.snapshots_per_budget)
        for player in main_agents(state):
            num_snapshots, taken_in = self._newest_in.get(player.name, (-1, part))
            if num_snapshots != player.num_snapshots or not has_learnt(state, player):
                self._newest_in[player.name] = player.num_snapshots, part
            elif part > taken_in:
                self._ask(RequestSnapshot(player.name, BUDGET))

    def request_final(self, state: LeagueState) -> None:
        """Request a snapshot of every player that has learnt since its newest one."""
        for player in [player for player in state.players.values() if has_learnt(state, player)]:
            self._ask(RequestSnapshot(player.name, FINAL))


def max_age_s(settings: RuntimeConfig, *, now: float) -> float:
    """Oldest that the newest snapshot of a main agent may become. now: seconds of training so far."""
    return max(settings.snapshot_seconds, MAX_AGE_FRACTION * now)


def main_agents(state: LeagueState) -> list[PlayerState]:
    """The main agents that do not start again after a snapshot."""
    mains = [player for player in state.players.values() if player.role == MAIN_ROLE]
    return [player for player in mains if state.config_of(player.name).reset_probability == 0.0]


def has_learnt(state: LeagueState, player: PlayerState) -> bool:
    """True if a player has trained since its newest snapshot."""
    newest = state.newest_snapshot(player)
    return newest is not None and player.trained_steps > newest.trained_steps
