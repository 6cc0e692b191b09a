"""Games that another process can take over: they are played again from their seeds and actions.

The part of `ExternalEnv` that a process for games (`league.envs.workers`) needs beside the contract.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.outline import Outline
from league.envs.adapters.turn_builder import TurnBuilder
from league.envs.guard.foreign_code import foreign_code
from league.envs.protocol import ActionSpec, EnvSpec, Turn
from league.envs.workers.episode_seeds import episode_seed
from league.envs.workers.replay import ReplayedPosition, digest

logger = logging.getLogger(__name__)

Answers = list[tuple[int, Any]]
"""(seat, action as the env takes it) of the slots of one game."""


class ResumableGames:
    """N games that depend on their own seeds and actions alone; see `league.envs.workers.replay.ReplayableEnv`."""

    spec: EnvSpec
    num_envs: int
    _outline: Outline
    _builder: TurnBuilder
    _entropy: tuple[int, ...]
    _episodes: list[int]
    _steps: list[int]
    _first: int = 0  # number of game 0 in the whole batch
    _place: memoryview | None = None  # where every call is written before it is made

    @property
    def episodes(self) -> list[int]:
        return self._episodes

    def number_games_from(self, first: int) -> None:
        self._first = first

    def report_to(self, place: memoryview) -> None:
        self._place = place

    def resume(self, seed: int, positions: Sequence[ReplayedPosition | None]) -> Turn:
        self._entropy = (seed,)
        answers = self._put_back(positions)
        builder = self._builder
        builder.start()

        def take(game: int) -> None:
            position = positions[game]
            assert position is not None
            if game in answers:
                self._take_step(game, answers[game])
                return
            if position.lost or position.shown:
                builder.drop(game, lost=True)
            self._start(game)

        with foreign_code(self.spec.env_id, "reset", self):
            self._each((game for game, position in enumerate(positions) if position is not None), take)
            return self._turn(lost=True)

    def _put_back(self, positions: Sequence[ReplayedPosition | None]) -> dict[int, Answers]:
        """Play games up to their last turn; returns the answers to it. One that shows something else starts again."""
        builder, scratch = self._builder, TurnBuilder(self.spec, self._outline.forms, num_envs=self.num_envs)
        builder.forget()
        answers: dict[int, Answers] = {}
        for game, position in enumerate(positions):
            self._steps[game] = 0
            if position is None:
                continue
            self._episodes[game] = position.episode
            if not position.shown:
                continue
            self._builder = scratch
            try:
                with foreign_code(self.spec.env_id, "reset", self):
                    last = self._played_again(game, position)
            except Exception as error:  # code of others: another course of the game than before
                logger.info(
                    "%s, game %d, could not be played again", self.spec.env_id, self._first + game, exc_info=error
                )
                last = None
            finally:
                self._builder = builder
            if last is None:
                self._episodes[game] = position.episode + 1
                self._steps[game] = 0
            else:
                builder.adopt(scratch, game)
                answers[game] = last
        return answers

    def _played_again(self, game: int, position: ReplayedPosition) -> Answers | None:
        """The answers to the last turn of a position; None if the game then shows something else than before."""
        scratch = self._builder
        scratch.forget()
        self._start(game)
        turn = scratch.turn()
        for values in position.answers[:-1]:
            answers = self._decoded(values)
            scratch.start()
            self._take_step(game, answers)
            turn = scratch.turn()
        rows = np.arange(turn.env_index.size)
        same = self._episodes[game] == position.episode and digest(turn, rows) == position.shown
        return self._decoded(position.answers[-1]) if same else None

    def _decoded(self, values: Sequence[Any]) -> Answers:
        """The answers of one game, whose slots are all that the builder shows."""
        _, seats = self._builder.slots
        forms, actions = self._outline.forms, self.spec.actions
        return [
            (seat, forms[seat].decode(_as_action(value, actions)))
            for seat, value in zip(seats.tolist(), values, strict=True)
        ]

    def _take_step(self, game: int, answers: Answers) -> None:
        self._steps[game] += 1
        if self._place is not None:
            self._enter(game)
        self._advance(game, answers)

    def _enter(self, game: int) -> None:
        """Write which call comes next."""
        place = self._place
        assert place is not None
        place[1], place[2], place[3] = game, self._episodes[game], self._steps[game]
        place[0] += 1

    def _seed_of(self, game: int) -> int:
        return episode_seed(self._entropy, game=self._first + game, episode=self._episodes[game])

    def _start(self, game: int) -> None:
        """Start the next episode of one game."""
        raise NotImplementedError

    def _advance(self, game: int, answers: Answers) -> None:
        """Step one game with the (seat, action) of its slots; record rewards, then show the next slots or `_finish`."""
        raise NotImplementedError

    def _each(self, games: Iterable[int], call: Callable[[int], None]) -> None:
        """Call once for each game, in order; one that raises is recovered in its place."""
        raise NotImplementedError

    def _turn(self, *, lost: bool) -> Turn:
        """The turn that was collected."""
        raise NotImplementedError


def _as_action(value: Any, actions: ActionSpec) -> int | NDArray[np.generic]:
    """An action of the spec, from plain numbers."""
    if actions.kind == "categorical":
        return int(value)
    return np.asarray(value, np.float32 if actions.kind == "box" else np.int64)
