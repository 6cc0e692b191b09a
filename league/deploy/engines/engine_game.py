"""One game that a protocol follows: moves by their names, the policy's own move on request, and moves taken back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from league.agents.acting.policy import ActInputs, Evaluating, Policy
from league.envs.notation.notation import Notation, notation_of
from league.envs.protocol import Turn
from league.envs.registry import make
from league.errors import LeagueError
from league.judge.contenders.contender import Game
from league.judge.recording.recorder import ReplayRecorder, act, decision_of


class RefusedMove(Exception):  # noqa: N818 - an answer to whoever asked, no fault
    """A move that cannot be made; the text says why."""


class EngineGame:
    """A game whose moves have names. The policy may move for every seat, each with a memory of its own.

    Args:
      game: to play. policy: moves when asked. seed: of its draws, and of the game.

    Raises:
      LeagueError: the moves of the game have no names. EnvError: it cannot be made.
    """

    def __init__(self, game: Game, policy: Policy, *, seed: int = 0) -> None:
        notation = notation_of(game.env, game.spec)
        if notation is None:
            raise LeagueError(
                f"the moves of {game.env.id} have no names that an engine could say; those of chess, go, Othello, "
                "Connect Four and tic-tac-toe have. `league serve-policy` serves policies of every game."
            )
        self.notation: Notation = notation
        self._config, self._seed, self._policy = replace(game.env, workers=0), seed, policy
        self._env = make(self._config, num_envs=1)
        self.restart()

    @property
    def names(self) -> list[str]:
        """Names of the moves so far."""
        return list(self._names)

    @property
    def over(self) -> bool:
        """True once the game has ended."""
        return self._recorder.complete

    @property
    def seat(self) -> int:
        """The seat that moves next."""
        return int(self._turn.seat[0])

    def restart(self) -> None:
        """Begin the game again."""
        self._recorder = ReplayRecorder(self._config, self._env)
        self._turn: Turn = self._recorder.reset(self._seed)
        self._recorder.opened()
        self._rng = np.random.default_rng([self._seed, 1])
        self._position = self.notation.start()
        self._names: list[str] = []
        core = np.zeros((1, int(getattr(self._policy, "core_size", 0))), np.float32)
        self._core = [core.copy() for _ in range(self._env.spec.num_seats)]

    def play(self, name: str) -> None:
        """Make a move of the seat that is to move.

        Raises:
          RefusedMove: it names no move, or none that is allowed now.
        """
        self._require_going_on()
        try:
            action = self._position.action(name)
        except ValueError as error:
            raise RefusedMove(str(error)) from error
        mask = self._turn.action_mask
        if mask is not None and not mask[0][action]:
            raise RefusedMove(f"{name} is not allowed now")
        if self._core[self.seat].size:
            self._decide()  # it remembers what it has seen; what it would have done counts for nothing
        self._make(action)

    def choose(self) -> str:
        """Make the policy's move.

        Returns:
          its name.

        Raises:
          RefusedMove: the game is over.
        """
        self._require_going_on()
        self._make(self._decide())
        return self._names[-1]

    def value(self) -> float | None:
        """The policy's expected return for the seat that moves; None where it says nothing."""
        if self.over or not isinstance(self._policy, Evaluating):
            return None
        inputs = ActInputs(self._env, self._turn, np.array([0]), self._core[self.seat])
        return decision_of(self._policy.evaluate(inputs)).value

    def follow(self, names: Sequence[str]) -> None:
        """Bring the game to the position after these moves; it goes back to the start only where they differ.

        Raises:
          RefusedMove: one of them cannot be made; the game stands before it.
        """
        if list(names[: len(self._names)]) != self._names:
            self.restart()
        for name in names[len(self._names) :]:
            self.play(name)

    def close(self) -> None:
        """Close the game."""
        self._env.close()

    def _decide(self) -> int:
        return int(act(self._env, self._turn, [self._policy] * self._env.spec.num_seats, self._core, self._rng)[0])

    def _make(self, action: int) -> None:
        self._names.append(self._position.name(action))
        self._position.push(action)
        self._turn = self._recorder.step(np.array([action]))

    def _require_going_on(self) -> None:
        if self.over:
            raise RefusedMove("the game is over")
