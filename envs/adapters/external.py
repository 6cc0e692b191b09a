"""Steps N external envs, one Python object each, as one batch: seeds, restarts, copies, and errors that say where.

Shape letters: N games, S seats, K slots.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from envs.adapters.copying import copy_game
from envs.adapters.space_codec import ActionCode, ObservationField, SpaceFormat
from envs.adapters.spaces import action_code, observation_fields
from envs.adapters.turn_builder import GameFaultError, TurnBuilder
from envs.closing import closed_on_error
from envs.failures import FailureCount, GameFailure
from envs.protocol import ActionSpec, BatchedEnv, EnvError, EnvSpec, Turn

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outline:
    """The facts common to all games of an external env.

    Fields:
      codes: [S] translation of each seat's actions for the env.
      standing_masks: [S] legal actions of a seat when the env gives no mask; None if all are, for all seats.
      make_one: makes one more game, in place of one that failed; None if the failed one is used again.
    """

    spec: EnvSpec
    fields: tuple[ObservationField, ...]
    codes: tuple[ActionCode, ...]
    standing_masks: tuple[NDArray[np.bool_], ...] | None
    make_one: Callable[[], Any] | None = None


def outline_of(
    env_id: str,
    seat_names: Sequence[str],
    observation_spaces: Sequence[Any],
    action_spaces: Sequence[Any],
    *,
    has_mask: bool,
) -> Outline:
    """Make the outline of a game from the spaces of its seats, [S] each.

    Raises:
      EnvError: a space is not supported, or the seats' spaces differ in more than the number of actions.
    """
    fields = observation_fields(observation_spaces[0], env_id=env_id)
    codes = tuple(action_code(space, env_id=env_id) for space in action_spaces)
    first = codes[0].spec
    for name, space, code in zip(seat_names, observation_spaces, codes, strict=True):
        if observation_fields(space, env_id=env_id) != fields:
            raise EnvError(
                f"{env_id}: the seats {seat_names[0]} and {name} observe different shapes; pad them to equal ones, all"
                " seats share one kind of network input"
            )
        if code.spec.kind != first.kind or (code.spec.kind != "categorical" and code.spec != first):
            raise EnvError(f"{env_id}: the seats {seat_names[0]} and {name} act in different spaces; make them equal")
    counts = [code.spec.num_actions for code in codes]
    uneven = len(set(counts)) > 1
    spec = EnvSpec(
        env_id=env_id,
        num_seats=len(seat_names),
        observations={field.name: field.spec for field in fields},
        actions=first if first.kind != "categorical" else ActionSpec(kind="categorical", num_actions=max(counts)),
        teams=tuple(range(len(seat_names))),
        has_mask=has_mask or uneven,
        seat_names=tuple(seat_names),
        user_format=SpaceFormat(fields, codes),
    )
    masks = tuple(np.arange(max(counts)) < count for count in counts) if uneven else None
    return Outline(spec=spec, fields=fields, codes=codes, standing_masks=masks)


def make_games(make_one: Callable[[], Any], *, env_id: str, num_envs: int) -> list[Any]:
    """Make `num_envs` envs, one call each.

    Raises:
      EnvError: the factory raised; the message has its error.
    """
    games: list[Any] = []
    try:
        with closed_on_error(games):
            for _ in range(num_envs):
                games.append(make_one())
        return games
    except EnvError:
        raise
    except ImportError as error:
        raise EnvError(f"{env_id}: a package is missing ({error}); install it and try again") from error
    except Exception as error:  # code of others: whatever it raises is their env's error, not ours
        raise EnvError(f"{env_id}: making it raised {type(error).__name__}: {error}") from error


class ExternalEnv:
    """N games of an external env. A subclass starts one game (`_begin`) and steps one game (`_advance`)."""

    def __init__(self, games: Sequence[Any], outline: Outline) -> None:
        self.spec = outline.spec
        self.num_envs = len(games)
        self._games = list(games)
        self._outline = outline
        self._builder = TurnBuilder(outline.spec, outline.fields, num_envs=len(games))
        self._entropy: tuple[int, ...] = (0,)
        self._episodes = [0] * len(games)
        self._steps = [0] * len(games)
        self._at = 0  # the game being stepped, for the message when it raises
        self._failures: FailureCount | None = None  # None: a failure raises
        self._closed = False

    def reset(self, seed: int) -> Turn:
        """Restart every game; each episode of each game gets its own seed, derived from this one."""
        self._entropy = (seed,)
        self._episodes = [0] * self.num_envs
        self._steps = [0] * self.num_envs
        self._builder.forget()
        lost = () if self._failures is None else self._failures.quarantined
        self._each((game for game in range(self.num_envs) if game not in lost), self._start)
        return self._turn(lost=False)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        """See `BatchedEnv.step`."""
        builder = self._builder
        chosen = builder.legal(actions)
        env_index, seat_index = builder.slots
        values: Sequence[Any] = chosen.tolist() if self.spec.actions.kind == "categorical" else list(chosen)
        envs, seats, codes = env_index.tolist(), seat_index.tolist(), self._outline.codes
        answers: dict[int, list[tuple[int, Any]]] = {}
        for game, seat, value in zip(envs, seats, values, strict=True):
            answers.setdefault(game, []).append((seat, codes[seat].decode(value)))
        builder.start()

        def advance(game: int) -> None:
            self._steps[game] += 1
            self._advance(game, answers[game])

        self._each(answers, advance)
        return self._turn(lost=True)

    def tolerate_failures(self) -> None:
        """As in `FaultTolerant`."""
        self._failures = FailureCount(self.num_envs)

    def take_failures(self) -> tuple[GameFailure, ...]:
        """As in `FaultTolerant`."""
        return () if self._failures is None else self._failures.take()

    def whereabouts(self) -> tuple[str, int, int, int]:
        """As in `Located`."""
        game = self._at
        return "step" if self._steps[game] else "reset", game, self._episodes[game], self._steps[game]

    def close(self) -> None:
        """Close every game; a second call does nothing."""
        if not self._closed:
            self._closed = True
            for game in self._games:
                self._close_one(game)

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        """Deep copies of the games at `env_indices`, including their present random state.

        Raises:
          EnvError: a game holds something that cannot be copied.
        """
        games: list[Any] = []
        try:
            with closed_on_error(games):
                for game in env_indices:
                    games.append(copy_game(self._games[game]))
        except Exception as error:  # code of others: a handle of an engine may raise anything when it is copied
            reason = f"{type(error).__name__}: {error}"
            raise EnvError(f"{self.spec.env_id}: its games cannot be copied ({reason})") from error
        forked = type(self)(games, self._outline)
        forked._entropy = (*self._entropy, 1)
        forked._episodes = [self._episodes[game] for game in env_indices]
        forked._steps = [self._steps[game] for game in env_indices]
        forked._builder = self._builder.copy_games(np.asarray(env_indices, np.int64))
        self._copy_into(forked, env_indices.tolist())
        return forked, forked._builder.turn()

    def _begin(self, game: int, seed: int) -> None:
        """Reset one game and show its first slots."""
        raise NotImplementedError

    def _advance(self, game: int, answers: list[tuple[int, Any]]) -> None:
        """Step one game with the (seat, action) of its slots; record rewards, then show the next slots or `_finish`."""
        raise NotImplementedError

    def _copy_into(self, forked: ExternalEnv, games: list[int]) -> None:
        """Copy a subclass's own state of these games, beyond the env objects, into a fork."""

    def _finish(self, game: int, *, truncated: bool) -> None:
        """End the episode of a game and start its next one."""
        self._builder.end(game, truncated=truncated)
        self._episodes[game] += 1
        if self._failures is not None:
            self._failures.ended(game)
        self._start(game)

    def _start(self, game: int) -> None:
        self._steps[game] = 0
        self._begin(game, self._seed_of(game))

    def _seed_of(self, game: int) -> int:
        sequence = np.random.SeedSequence((*self._entropy, game, self._episodes[game]))
        return int(sequence.generate_state(1)[0]) >> 1

    def _show(self, game: int, seat: int, observation: Any, mask: Any) -> None:
        if mask is None and self._outline.standing_masks is not None:
            mask = self._outline.standing_masks[seat]
        self._builder.show(game, seat, observation, mask)

    def _each(self, games: Iterable[int], call: Callable[[int], None]) -> None:
        """Call once for each game, in order; one that raises is recovered in its place."""
        succeeded = False
        for game in games:
            self._at = game
            try:
                call(game)
            except Exception as error:  # code of others: whatever it raises is their env's error, not ours
                if succeeded and self._failures is not None:
                    self._failures.succeeded()
                    succeeded = False
                self._recover(game, error, lost=self._steps[game] > 0)
            else:
                succeeded = True
        if succeeded and self._failures is not None:
            self._failures.succeeded()

    def _turn(self, *, lost: bool) -> Turn:
        """The turn; a game whose part of it breaks the contract is recovered. lost: its episode had begun before."""
        while True:
            try:
                return self._builder.turn()
            except GameFaultError as fault:
                self._at = fault.game
                self._recover(fault.game, fault, lost=lost)
                self._builder.sort()

    def _recover(self, game: int, error: Exception, *, lost: bool) -> None:
        """Take back what a failed game showed and start it again as a new object, until that works or it is given up.

        lost: its episode had begun, and is thrown away.
        Raises:
          EnvError: failures are not tolerated, or no game is left.
        """
        while True:
            if self._failures is None:
                raise error if isinstance(error, EnvError) else self._failed(game, error) from error
            self._builder.drop(game, lost=lost)
            if not self._failures.strike(game, self._failure(game, error)):
                return
            lost = False
            try:
                self._remake(game)
                self._episodes[game] += 1
                self._start(game)
            except Exception as another:  # code of others: the next strike of this game
                error = another
            else:
                self._failures.succeeded()
                return

    def _remake(self, game: int) -> None:
        self._steps[game] = 0
        if self._outline.make_one is not None:
            self._close_one(self._games[game])
            self._games[game] = self._outline.make_one()

    def _close_one(self, game: Any) -> None:
        try:
            game.close()
        except Exception as error:  # code of others: the other games still have to be closed
            logger.warning("%s: closing a game raised %s: %s", self.spec.env_id, type(error).__name__, error)

    def _failure(self, game: int, error: Exception) -> GameFailure:
        own = isinstance(error, EnvError)
        return GameFailure(
            env_id=self.spec.env_id,
            game=game,
            seed=self._seed_of(game),
            episode=self._episodes[game],
            step=self._steps[game],
            call="step" if self._steps[game] else "reset",
            reason=f"failed: {error}" if own else f"raised {type(error).__name__}: {error}",
            traceback="".join(traceback.format_exception(error)),
        )

    def _failed(self, game: int, error: Exception) -> EnvError:
        return EnvError(self._failure(game, error).text())
