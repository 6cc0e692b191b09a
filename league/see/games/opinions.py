"""Asks a policy about every position of a game: the move it would make there, beside the one that was made."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field

import msgspec
import numpy as np
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, Evaluating, Policy
from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.judge.contenders.contender import OpenConditions
from league.judge.contenders.finding import find_contenders, game_of
from league.judge.recording.recorder import decision_of
from league.judge.recording.replay import Replay
from league.policies.observation import within_bounds
from league.see.games.follower import GameFollower, SeatMove
from league.see.games.playback import Step, play_back

LONGEST_S = 30.0
"""Seconds in which a policy must have answered about a game."""
MAX_OPEN = 4
"""Policies that are kept open."""


class Opinion(msgspec.Struct, frozen=True):
    """A policy on a game.

    Fields:
      name: of the policy. since: steps of the game before its first answer.
      answers: of each position from there on, the moves that it would make in the place of those who act; the last is
        about the present position of a game that has not ended.
    """

    name: str
    since: int
    answers: tuple[tuple[SeatMove, ...], ...]


def opinion_of(
    replay: Replay,
    game: int,
    policy: Policy,
    *,
    name: str,
    since: int = 0,
    seat: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Opinion:
    """The moves of a policy in each position of a game, which may be in progress.

    Args:
      name: of the policy. since: steps of the game that are passed over; a policy with a core state sees them all.
      seat: the only one in whose place it answers; None for all.
    Raises:
      LeagueError: it takes too long. See also `play_back`.
    """
    outcome, until = replay.games[game], clock() + LONGEST_S
    asked = _Asked(policy, game, seat)
    first, last = outcome.start if not outcome.aborted else replay.opening, outcome.steps
    follower: GameFollower | None = None
    answers = []
    for step in play_back(replay):
        if step.number == first:
            follower = GameFollower(step.env, step.turn, game=game)
        elif follower is not None and step.number <= last:
            assert step.actions is not None
            follower.advance(step.actions, step.env, step.turn, ended=step.number == last and not outcome.aborted)
        if follower is None or step.number > last - (not outcome.aborted):
            continue
        if clock() > until:
            raise LeagueError(f"{name} takes more than {LONGEST_S:g} s for this game: ask a faster policy.")
        if step.number - first >= since or asked.has_memory:
            answers.append((step.number - first, asked.about(step, follower)))
    return Opinion(name, since, tuple(moves for number, moves in answers if number >= since))


@dataclass
class _Asked:
    """A policy in the place of every seat of one game."""

    policy: Policy
    game: int
    seat: int | None
    core: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    @property
    def has_memory(self) -> bool:
        return bool(getattr(self.policy, "core_size", 0))

    def about(self, step: Step, follower: GameFollower) -> tuple[SeatMove, ...]:
        """Its moves in the place of those who act now."""
        moves = []
        for slot in np.flatnonzero(step.turn.env_index == self.game).tolist():
            seat = int(step.turn.seat[slot])
            if self.seat is not None and seat != self.seat:
                continue
            core = self.core.get(seat, np.zeros((1, int(getattr(self.policy, "core_size", 0))), np.float32))
            inputs = ActInputs(step.env, step.turn, np.array([slot]), core)
            decision = decision_of(self.policy.evaluate(inputs)) if isinstance(self.policy, Evaluating) else None
            chosen = self.policy.act(inputs, np.random.default_rng([step.number, seat]))
            self.core[seat] = chosen.core
            action = within_bounds(step.env.spec, chosen.actions)[0]
            if decision is not None and decision.probs:
                action = np.argmax(decision.probs)
            value = None if decision is None else decision.value
            moves.append(SeatMove(seat, follower.action_name(seat, action), value, follower.probs(seat, decision)))
        return tuple(moves)


class Advisors:
    """Policies that are asked about games, kept open; one question at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: dict[tuple[str, str], tuple[Policy, ExitStack]] = {}

    def ask(
        self, written: str, replay: Replay, game: int, *, name: str, since: int = 0, seat: int | None = None
    ) -> Opinion:
        """See `opinion_of`. written: a contender.

        Raises:
          LeagueError: there is no such policy, or it cannot play this game.
        """
        with self._lock:
            policy = self._opened(written, replay.env.config())
            return opinion_of(replay, game, policy, name=name, since=since, seat=seat)

    def _opened(self, written: str, env: EnvConfig) -> Policy:
        key = (written, repr(env))
        if key not in self._open:
            with ExitStack() as stack:
                found = find_contenders([written])
                if len(found) != 1:
                    raise LeagueError(f"{written} stands for {len(found)} policies: name one of them.")
                policy = stack.enter_context(
                    found[0].open(game_of(found, env=env), OpenConditions(seed=0, greedy=False))
                )
                self._open[key] = (policy, stack.pop_all())
            if len(self._open) > MAX_OPEN:
                self._open.pop(next(iter(self._open)))[1].close()
        return self._open[key][0]
