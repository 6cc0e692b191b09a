"""Builds the `Turn` of external envs one game at a time: slots, accumulated rewards, ends, last observations.

Shape letters: N games, S seats, K slots, A actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.adapters.checks.declared_ranges import DeclaredRanges
from league.envs.adapters.seat_forms import SeatForm
from league.envs.adapters.seat_rewards import SeatRewards
from league.envs.adapters.team_observations import TeamObservations
from league.envs.protocol import SEAT_GROUP, EnvError, EnvSpec, FinalObservation, Turn, reward_problem
from league.envs.sub_actions import sub_actions_are_legal

Fields = dict[str, NDArray[np.generic]]
"""Name -> array of every field that a seat observes itself, in the padded form."""


class GameFaultError(EnvError):
    """An observation, a mask or a reward of one game breaks the contract. game: its index."""

    def __init__(self, message: str, *, game: int) -> None:
        super().__init__(message)
        self.game = game


@dataclass
class _TurnEnds:
    """Ends of a turn.

    Fields:
      ended, truncated, aborted: games whose episode ended, was cut off, or was thrown away.
      rejoined: (game, seat) that act again after an end of their own.
      final: (game, seat, fields) of last observations.
    """

    ended: list[int] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    aborted: list[int] = field(default_factory=list)
    rejoined: list[tuple[int, int]] = field(default_factory=list)
    final: list[tuple[int, int, Fields]] = field(default_factory=list)

    def abort(self, game: int) -> None:
        """Throw the episode of a game away, with any end of it."""
        self.ended = [ended for ended in self.ended if ended != game]
        self.truncated = [cut for cut in self.truncated if cut != game]
        self.final = [final for final in self.final if final[0] != game]
        self.rejoined = [rejoined for rejoined in self.rejoined if rejoined[0] != game]
        if game not in self.aborted:
            self.aborted.append(game)


class TurnBuilder:
    """Collects one turn; buffers are reused, so a turn's observations are valid until the next `start`."""

    def __init__(
        self, spec: EnvSpec, forms: Sequence[SeatForm], *, num_envs: int, ranges: DeclaredRanges | None = None
    ) -> None:
        """forms: [S] each seat's own spaces in the spec's form. ranges: looks at observations; None looks at none."""
        self._spec = spec
        self._ranges = ranges
        self._forms = tuple(forms)
        self._num_envs = num_envs
        rows = num_envs * spec.num_seats
        observed = {name: array for name, array in spec.observations.items() if name not in spec.value_fields}
        self._buffers = {name: np.zeros((rows, *array.shape), array.dtype) for name, array in observed.items()}
        self._writers = [[(*write, self._buffers[write[0].name]) for write in form.writes(observed)] for form in forms]
        self._padded = [
            buffer
            for name, buffer in self._buffers.items()
            if name != SEAT_GROUP and any(form.shape_of(name) != buffer.shape[1:] for form in forms)
        ]
        self._standing = [form.mask(None) for form in forms]
        self._marks = np.array([[seat in group.seats for group in spec.seat_groups] for seat in range(spec.num_seats)])
        self._team = TeamObservations(spec, num_envs=num_envs) if spec.value_fields else None
        self._floats = [name for name, buffer in self._buffers.items() if buffer.dtype.kind == "f"]
        self._mask = np.ones((rows, spec.actions.num_actions), np.bool_) if spec.has_mask else None
        self._env = np.zeros(rows, np.int64)
        self._seat = np.zeros(rows, np.int64)
        self._num_slots = 0
        self._rewards = SeatRewards.nothing(num_envs, spec.num_seats)
        self._ends = _TurnEnds()

    @property
    def slots(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(env_index, seat) int64 [K] of the turn being answered."""
        return self._env[: self._num_slots], self._seat[: self._num_slots]

    def legal(self, actions: NDArray[np.generic]) -> NDArray[np.generic]:
        """The actions, after checking that they answer the turn; see `legal_answers`."""
        env, seat = self.slots
        return legal_answers(actions, self._spec, env_index=env, seat=seat, mask=self._mask)

    def copy_games(self, games: NDArray[np.int64]) -> TurnBuilder:
        """A builder in the state of these games: same slots and waiting rewards, nothing just ended."""
        copied = TurnBuilder(self._spec, self._forms, num_envs=games.size, ranges=self._ranges)
        if self._team is not None:
            copied._team = self._team.copy_games(games)
        env, _ = self.slots
        rows = [np.flatnonzero(env == game) for game in games]
        row = np.concatenate(rows)
        num = row.size
        for name, buffer in self._buffers.items():
            copied._buffers[name][:num] = buffer[row]
        if self._mask is not None and copied._mask is not None:
            copied._mask[:num] = self._mask[row]
        copied._env[:num] = np.repeat(np.arange(games.size), [own.size for own in rows])
        copied._seat[:num] = self._seat[row]
        copied._num_slots = num
        copied._rewards = self._rewards.of(games, ended=self._ends.ended)
        return copied

    def forget(self) -> None:
        """Drop all accumulated rewards, for a restart of all games."""
        self._rewards = SeatRewards.nothing(self._num_envs, self._spec.num_seats)
        if self._team is not None:
            self._team.forget(list(range(self._num_envs)))
        self.start()

    def start(self) -> None:
        """Begin the next turn: the slots that have acted accumulate from zero again."""
        env, seat = self.slots
        self._rewards.begin_turn(env, seat, ended=self._ends.ended)
        self._num_slots = 0
        self._ends = _TurnEnds()

    def earn(self, game: int, seat: int, reward: float) -> None:
        """Add a reward; also an array of one number, as games give that count in arrays.

        Raises:
          EnvError: it is no single number.
        """
        try:
            self._rewards.waiting[game, seat] += reward
        except (TypeError, ValueError) as error:
            if not isinstance(reward, np.ndarray) or reward.size != 1 or reward.dtype.kind not in "biuf":
                text = f"{self._where(game, seat)}: a reward is {reward!r}; a single number is needed"
                raise GameFaultError(text, game=game) from error
            reward = reward.item()
            self._rewards.waiting[game, seat] += reward
        self._rewards.total[game, seat] += reward

    def show(self, game: int, seat: int, observation: Any, mask: Any) -> None:
        """Add a slot that must act; slots come in the order of (game, seat).

        Raises:
          EnvError: the mask has another length.
          ValueError: the observation does not fit its space.
        """
        row = self._num_slots
        for buffer in self._padded:
            buffer[row] = 0
        for written, place, buffer in self._writers[seat]:
            written.write(observation, buffer[row] if place is None else buffer[row][place])
        if self._mask is not None:
            try:
                self._mask[row] = self._standing[seat] if mask is None else self._forms[seat].mask(mask)
            except ValueError as error:
                raise EnvError(f"{self._where(game, seat)}: {error}") from error
        self._env[row] = game
        self._seat[row] = seat
        self._num_slots = row + 1

    def end(self, game: int, *, truncated: bool) -> None:
        """Record that the episode of `game` ended."""
        self._ends.ended.append(game)
        if truncated:
            self._ends.truncated.append(game)

    def drop(self, game: int, *, lost: bool) -> None:
        """Take back the slots of a game that failed.

        Args:
          lost: also what its episode earned, or its end, in this turn; False where that episode had not begun.
        """
        env, _ = self.slots
        self._keep_rows(np.flatnonzero(env != game))
        if not lost:
            return
        self._rewards.forget(game)
        self._ends.abort(game)

    def adopt(self, other: TurnBuilder, game: int) -> None:
        """Take over a game from another builder of the same games; call in the order of the games."""
        env, _ = other.slots
        rows = np.flatnonzero(env == game)
        start, stop = self._num_slots, self._num_slots + rows.size
        for name, buffer in self._buffers.items():
            buffer[start:stop] = other._buffers[name][rows]
        self._env[start:stop], self._seat[start:stop] = other._env[rows], other._seat[rows]
        if self._mask is not None and other._mask is not None:
            self._mask[start:stop] = other._mask[rows]
        self._num_slots = stop
        self._rewards.waiting[game] = other._rewards.waiting[game]
        self._rewards.total[game] = other._rewards.total[game]
        if self._team is not None and other._team is not None:
            self._team.adopt(other._team, game)

    def sort(self) -> None:
        """Bring the slots into the order of (game, seat) again, after a game was shown late."""
        env, seat = self.slots
        self._keep_rows(np.lexsort((seat, env)))

    def _keep_rows(self, rows: NDArray[np.intp]) -> None:
        kept = rows.size
        mask = () if self._mask is None else (self._mask,)
        for array in (*self._buffers.values(), self._env, self._seat, *mask):
            array[:kept] = array[rows]
        self._num_slots = kept

    def encode(self, seat: int, observation: Any) -> Fields:
        """The fields of one observation of a seat, in new arrays."""
        rows: Fields = {name: np.zeros(buffer.shape[1:], buffer.dtype) for name, buffer in self._buffers.items()}
        self._forms[seat].write(observation, rows)
        if SEAT_GROUP in rows:
            rows[SEAT_GROUP] = self._marks[seat]
        return rows

    def keep_final(self, game: int, seat: int, rows: Fields) -> None:
        """Keep the last observation of a truncated `seat`, as `encode` gave it; call in the order of (game, seat)."""
        self._ends.final.append((game, seat, rows))

    def rejoin(self, game: int, seat: int, rows: Fields | None) -> None:
        """Begin another part of the episode for a seat whose last one ended.

        Args:
          rows: its last observation if it was cut off, as `encode` gave it; None if it terminated.
        """
        self._ends.rejoined.append((game, seat))
        if rows is not None:
            self.keep_final(game, seat, rows)

    def turn(self) -> Turn:
        """The collected turn.

        Raises:
          EnvError: an observation or a reward is not finite, a reward is too large, or a mask allows nothing.
        """
        num = self._num_slots
        if SEAT_GROUP in self._buffers:
            self._buffers[SEAT_GROUP][:num] = self._marks[self._seat[:num]]
        self._check(num)
        final = self._finals() if self._ends.final else None
        rewards = self._rewards.waiting.astype(np.float32)
        if (problem := reward_problem(rewards)) is not None:
            game, seat, text = problem
            raise GameFaultError(f"{self._where(game, seat)}: {text}", game=game)
        terminated, truncated = np.zeros(self._num_envs, np.bool_), np.zeros(self._num_envs, np.bool_)
        returns = np.zeros(rewards.shape, np.float32)
        if self._ends.ended:
            terminated[self._ends.ended] = True
            returns[self._ends.ended] = self._rewards.total[self._ends.ended]
        if self._ends.truncated:
            truncated[self._ends.truncated] = True
            terminated &= ~truncated
        return Turn(
            env_index=self._env[:num].copy(),
            seat=self._seat[:num].copy(),
            obs=self._obs(num),
            action_mask=None if self._mask is None else self._mask[:num].copy(),
            rewards=rewards,
            terminated=terminated,
            truncated=truncated,
            returns=returns,
            final=final,
            rejoined=_marked(self._ends.rejoined, rewards.shape),
            aborted=_marked(self._ends.aborted, self._num_envs),
        )

    def _obs(self, num: int) -> dict[str, NDArray[np.generic]]:
        obs = {name: buffer[:num] for name, buffer in self._buffers.items()}
        if self._team is None:
            return obs
        env, seat = self.slots
        self._team.forget([*self._ends.ended, *self._ends.aborted])
        self._team.note(env, seat, obs)
        return {**obs, **self._team.shown(env, seat)}

    def _finals(self) -> FinalObservation:
        games, seats, rows = zip(*self._ends.final, strict=True)
        obs = {name: np.stack([row[name] for row in rows]) for name in self._buffers}
        final = FinalObservation(env_index=np.array(games, np.int64), seat=np.array(seats, np.int64), obs=obs)
        if self._team is not None:
            self._team.note(final.env_index, final.seat, obs)
            obs.update(self._team.shown(final.env_index, final.seat))
        for name in self._floats:
            bad = np.argwhere(~np.isfinite(obs[name]))
            if bad.size:
                row, *index = (int(number) for number in bad[0])
                text = f"{self._where(games[row], seats[row])}: last {_not_finite(name, index, obs[name][row])}"
                raise GameFaultError(text, game=games[row])
        return final

    def _check(self, num: int) -> None:
        for name in self._floats:
            buffer = self._buffers[name][:num]
            if not np.isfinite(buffer).all():
                row, *index = (int(number) for number in np.argwhere(~np.isfinite(buffer))[0])
                where = self._where(int(self._env[row]), int(self._seat[row]))
                raise GameFaultError(f"{where}: {_not_finite(name, index, buffer[row])}", game=int(self._env[row]))
        if self._ranges is not None and num:
            self._ranges.look({name: buffer[:num] for name, buffer in self._buffers.items()}, self._seat[:num])
        if self._mask is not None:
            stuck = np.flatnonzero(~self._mask[:num].any(axis=1))
            if stuck.size:
                game = int(self._env[stuck[0]])
                where = self._where(game, int(self._seat[stuck[0]]))
                size = self._forms[int(self._seat[stuck[0]])].mask_entries.size
                text = f"{where}: its action_mask is 0 for all {size} actions; a seat that must act needs a legal one"
                raise GameFaultError(text, game=game)

    def _where(self, game: int, seat: int) -> str:
        return f"{self._spec.env_id}, game {game}, seat {self._spec.seat_names[seat]}"


def _marked(places: Sequence[Any], shape: Any) -> NDArray[np.bool_] | None:
    """bool of a shape, True at these places; None for no place."""
    if not places:
        return None
    marks, index = np.zeros(shape, np.bool_), np.array(places)
    marks[index if index.ndim == 1 else tuple(index.T)] = True
    return marks


def legal_answers(
    actions: NDArray[np.generic],
    spec: EnvSpec,
    *,
    env_index: NDArray[np.int64],
    seat: NDArray[np.int64],
    mask: NDArray[np.bool_] | None,
) -> NDArray[np.generic]:
    """The actions, int64 [K] or [K, H] or float32 [K, ...] of a box, after checking that they answer the slots [K].

    mask: bool [K or more, A], None if all is legal.
    Raises:
      EnvError: the shape or dtype is wrong, or an action is illegal or outside its box.
    """
    code, chosen = spec.actions, np.asarray(actions)
    num = env_index.size
    expected, kinds = (num, *code.shape), "f" if code.kind == "box" else "iu"
    if chosen.shape != expected or chosen.dtype.kind not in kinds:
        wanted = "float32" if code.kind == "box" else "int64"
        raise EnvError(f"{spec.env_id}: actions are {chosen.dtype} {chosen.shape}, expected {wanted} {expected}")
    if code.kind == "box":
        chosen = chosen.astype(np.float32, copy=False)
        inside = ((chosen >= code.low) & (chosen <= code.high)).reshape(num, -1).min(axis=1, initial=True)
    elif code.kind == "multi_categorical":
        chosen = chosen.astype(np.int64, copy=False)
        inside = sub_actions_are_legal(code, chosen, mask=None if mask is None else mask[:num])
    else:
        chosen = chosen.astype(np.int64, copy=False)
        inside = (chosen >= 0) & (chosen < code.num_actions)
        if mask is not None:
            inside &= mask[np.arange(num), np.clip(chosen, 0, code.num_actions - 1)]
    if not inside.all():
        bad = int(np.flatnonzero(~inside)[0])
        name = spec.seat_names[seat[bad]]
        raise EnvError(f"{spec.env_id}, game {env_index[bad]}, seat {name}: action {chosen[bad]} is illegal")
    return chosen


def _not_finite(name: str, index: Sequence[int], row: NDArray[np.generic]) -> str:
    return f"observation {name!r} is {row[tuple(index)]} at {list(index)}; observations must be finite"
