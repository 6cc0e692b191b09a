"""Steps N external envs, one Python object each, as one batch: seeds, restarts, copies, and errors that say where.

Shape letters: N games, S seats, K slots.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.checks.declared_ranges import DeclaredRanges
from league.envs.adapters.checks.masks import late_mask, mask_name, mask_of
from league.envs.adapters.copying import copy_game
from league.envs.adapters.outline import Outline
from league.envs.adapters.resumable import ResumableGames
from league.envs.adapters.turn_builder import Fields, GameFaultError, TurnBuilder
from league.envs.closing import closed_on_error
from league.envs.failures import FailureCount, GameFailure
from league.envs.guard.foreign_code import as_failure, end_copy, foreign_code
from league.envs.protocol import BatchedEnv, EnvError, Turn

logger = logging.getLogger(__name__)


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


class ExternalEnv(ResumableGames):
    """N games of an external env. A subclass starts one game (`_begin`) and steps one game (`_advance`)."""

    def __init__(self, games: Sequence[Any], outline: Outline) -> None:
        self.spec = outline.spec
        self.num_envs = len(games)
        self._games = list(games)
        self._outline = outline
        self._has_mask = outline.spec.has_mask
        ranges = DeclaredRanges(outline.spec.env_id, outline.bounds)
        self._builder = TurnBuilder(outline.spec, outline.forms, num_envs=len(games), ranges=ranges)
        self._entropy: tuple[int, ...] = (0,)
        self._episodes = [0] * len(games)
        self._steps = [0] * len(games)
        # Seats that are out, with their last observations if they were cut off, and None if they died.
        self._left: list[dict[int, Fields | None]] = [{} for _ in games]
        self._at = 0  # the game being stepped, for the message when it raises
        self._frames: list[Frame] | None = None  # of the games before their last restart; None: not kept
        self._failures: FailureCount | None = None  # None: a failure raises
        self._closed = False

    def reset(self, seed: int) -> Turn:
        """Restart every game; each episode of each game gets its own seed, derived from this one."""
        self._entropy = (seed,)
        self._episodes = [0] * self.num_envs
        self._steps = [0] * self.num_envs
        self._builder.forget()
        lost = () if self._failures is None else self._failures.quarantined
        with foreign_code(self.spec.env_id, "reset", self):
            self._each((game for game in range(self.num_envs) if game not in lost), self._start)
            return self._turn(lost=False)

    def step(self, actions: NDArray[np.generic]) -> Turn:
        builder = self._builder
        chosen = builder.legal(actions)
        env_index, seat_index = builder.slots
        values: Sequence[Any] = chosen.tolist() if self.spec.actions.kind == "categorical" else list(chosen)
        envs, seats, forms = env_index.tolist(), seat_index.tolist(), self._outline.forms
        answers: dict[int, list[tuple[int, Any]]] = {}
        for game, seat, value in zip(envs, seats, values, strict=True):
            answers.setdefault(game, []).append((seat, forms[seat].decode(value)))
        builder.start()
        with foreign_code(self.spec.env_id, "step", self):
            self._each(answers, lambda game: self._take_step(game, answers[game]))
            return self._turn(lost=True)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Parts of observations that are text, and so not seen."""
        return self._outline.left_out

    @property
    def make_bare(self) -> Callable[[], Any] | None:
        """Makes one more game as its users know it; None if there is no way."""
        return self._outline.make_bare

    def tolerate_failures(self, count: FailureCount | None = None) -> None:
        self._failures = FailureCount(self.num_envs) if count is None else count

    def take_failures(self) -> tuple[GameFailure, ...]:
        return () if self._failures is None else self._failures.take()

    def whereabouts(self) -> tuple[str, int, int, int]:
        game = self._at
        return "step" if self._steps[game] else "reset", game, self._episodes[game], self._steps[game]

    def close(self) -> None:
        """Close every game; a second call does nothing."""
        if not self._closed:
            self._closed = True
            with foreign_code(self.spec.env_id, "close"):
                for game in self._games:
                    self._close_one(game)

    def fork(self, env_indices: NDArray[np.int64]) -> tuple[BatchedEnv, Turn]:
        """Deep copies of the games at `env_indices`, including their present random state.

        Raises:
          EnvError: a game holds something that cannot be copied.
        """
        games: list[Any] = []
        try:
            with closed_on_error(games), foreign_code(self.spec.env_id, "the copying of a game"):
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
        forked._left = [dict(self._left[game]) for game in env_indices]
        return forked, forked._builder.turn()

    def keep_frames(self) -> None:
        self._frames = [None] * self.num_envs

    def frame(self, game: int, *, ended: bool) -> Frame:
        if self._frames is None:
            return None
        if ended:
            return self._frames[game]
        with foreign_code(self.spec.env_id, "render"):
            return frame_of(self._games[game])

    def action_names(self, seat: int) -> Sequence[str]:
        if self.spec.actions.kind != "categorical":
            return ()
        return action_names_of(self._games[0], self.spec.seat_names[seat])

    def _begin(self, game: int, seed: int) -> None:
        """Reset one game and show its first slots."""
        raise NotImplementedError

    def _show(self, game: int, seat: int, agent: Any, observation: Any, infos: Any) -> None:
        """Show a seat that must act, as its env names it, with the mask that its env gives; it may have been out.

        Raises:
          EnvError: the env gave no mask at first, or the mask is none.
        """
        if self._left[game] and seat in self._left[game]:
            self._builder.rejoin(game, seat, self._left[game].pop(seat))
        if not self._has_mask:
            if (infos or type(observation) is dict) and (name := mask_name(observation, infos)):
                where = f", game {game}, seat {self.spec.seat_names[seat]}"
                raise late_mask(self.spec.env_id, where, name, acts_in_box=self.spec.actions.kind == "box")
            self._builder.show(game, seat, observation, None)
            return
        try:
            mask = mask_of(observation, infos, path=self._outline.mask_paths[seat])
        except ValueError as error:
            raise EnvError(f"{self.spec.env_id}, game {game}, seat {self.spec.seat_names[seat]}: {error}") from error
        if mask is None and (method := self._outline.mask_method) is not None:
            mask = method(self._games[game], agent=agent, seat=seat)
        self._builder.show(game, seat, observation, mask)

    def _leave(self, game: int, seat: int, observation: Any) -> None:
        """Take a seat out of the episode, if it is in. observation: the last if it was cut off, None if it died."""
        if seat not in self._left[game]:
            self._left[game][seat] = None if observation is None else self._builder.encode(seat, observation)

    def _finish(self, game: int, *, truncated: bool) -> None:
        """End the episode of a game and start its next one."""
        if self._frames is not None:
            self._frames[game] = frame_of(self._games[game])
        self._builder.end(game, truncated=truncated)
        self._episodes[game] += 1
        if self._failures is not None:
            self._failures.ended(game)
        self._start(game)

    def _finish_seen(self, game: int) -> None:
        """End the episode of a game, as truncated if any seat was cut off, whose last observations were kept."""
        cut_off = {seat: last for seat, last in sorted(self._left[game].items()) if last is not None}
        for seat, last in cut_off.items():
            self._builder.keep_final(game, seat, last)
        self._finish(game, truncated=bool(cut_off))

    def _start(self, game: int) -> None:
        self._steps[game] = 0
        self._left[game].clear()
        if self._place is not None:
            self._enter(game)
        self._begin(game, self._seed_of(game))

    def _each(self, games: Iterable[int], call: Callable[[int], None]) -> None:
        """Call once for each game, in order; one that raises is recovered in its place."""
        succeeded = False
        for game in games:
            self._at = game
            try:
                call(game)
            except (Exception, SystemExit, KeyboardInterrupt) as raised:  # code of others: it is their env's error
                error = as_failure(raised)
                if succeeded and self._failures is not None:
                    self._failures.succeeded()
                    succeeded = False
                self._recover(game, error, lost=self._steps[game] > 0)
            else:
                succeeded = True
            end_copy()
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
            except (Exception, SystemExit, KeyboardInterrupt) as another:  # code of others: its next strike
                error = as_failure(another)
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
        except (Exception, SystemExit, KeyboardInterrupt) as raised:  # code of others: the other games are closed too
            error = as_failure(raised)
            logger.warning("%s: closing a game raised %s: %s", self.spec.env_id, type(error).__name__, error)

    def _failure(self, game: int, error: Exception) -> GameFailure:
        own = isinstance(error, EnvError)
        return GameFailure(
            env_id=self.spec.env_id,
            game=self._first + game,
            seed=self._seed_of(game),
            episode=self._episodes[game],
            step=self._steps[game],
            call="step" if self._steps[game] else "reset",
            reason=f"failed: {error}" if own else f"raised {type(error).__name__}: {error}",
            traceback="".join(traceback.format_exception(error)),
        )

    def _failed(self, game: int, error: Exception) -> EnvError:
        return EnvError(self._failure(game, error).text())


MAX_SIDE = 480
"""Pixels; larger pictures are thinned."""

Frame = NDArray[np.uint8] | str | None


def frame_of(game: Any) -> Frame:
    """The picture that `render()` of a game returns: an image uint8 [H, W, 3] or text; None where it draws nothing."""
    try:
        if getattr(game, "render_mode", None) not in ("rgb_array", "ansi"):
            return None
        drawn = game.render()
    except (Exception, SystemExit, KeyboardInterrupt) as raised:  # code of others: it is played all the same
        error = as_failure(raised)
        logger.info("a game could not be drawn: %s: %s", type(error).__name__, error)
        return None
    if isinstance(drawn, str):
        return drawn
    image = np.asarray(drawn)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] not in (3, 4) or not image.size:
        return None
    step = -(-max(image.shape[:2]) // MAX_SIDE)
    return np.ascontiguousarray(image[::step, ::step, :3])


ACTION_NAMES = "action_names"
"""Key of a game's `metadata`: names of the actions in their order, for all seats or by the name of the seat."""


def action_names_of(game: Any, seat: str) -> tuple[str, ...]:
    """The names that a game's metadata has for the actions of a seat; empty where there are none."""
    try:
        given = (getattr(game, "metadata", None) or {}).get(ACTION_NAMES, ())
        return tuple(str(name) for name in (given.get(seat, ()) if isinstance(given, Mapping) else given))
    except Exception as error:  # code of others: without names actions have numbers
        logger.info("a game's actions could not be named: %s: %s", type(error).__name__, error)
        return ()
