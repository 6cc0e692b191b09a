"""Cuts each seat's own decisions into unrolls.

Shape letters: R rows (one per slot), T unroll length, A actions, C core state size, K slots that act in one turn.

The builder writes into one preallocated buffer [R, T+1, ...] with a cursor per row. So envs, seats and episodes need
not be in step with one another, and no Python object exists per step. It reaches a step by one index into a flat view,
where a step is a single element: two indices, or a loop over the numbers of a step, take two to three times as long.
Observations of many flags are kept as bits: an arena's buffer is most of what an actor host holds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.unroll import ASKED, Unrolls, UnrollSpec, concatenate
from league.envs.protocol import Turn

OUTCOMES = ("rewards", "discounts", "valid")
"""Fields per decision that the builder fills in instead of the policy."""

MIN_FLAGS = 16
"""Flags of one step from which they are kept as bits."""


class UnrollBuilder:
    """Cuts the decisions of many slots into unrolls of T steps.

    Call `observe` with the recorded slots before they act, `act` with their decisions, `end` when episodes end. A row
    is complete at the slot's (T+1)-th observation, which is the bootstrap row of one unroll and the first of the
    next.

    With `UnrollSpec.per_episode`, a row is also complete when its episode ends, and the next one begins with the next
    episode. An episode of more than T decisions is cut after every T of them: then only its last row has the outcome.

    Args:
      spec: of the unrolls. num_rows: R.
      staggered: begin the first unroll of each row with another number of steps that are not valid. Rows that begin
        together would all be complete in the same step: actors then wait for learners, and these for actors.
    """

    def __init__(self, spec: UnrollSpec, *, num_rows: int, staggered: bool = False) -> None:
        self.unroll_length = spec.unroll_length
        self._per_episode = spec.per_episode
        self._num_actions = spec.game.actions.num_actions
        recorded = spec.allocate(num_rows)
        self._flags = {name: array.shape[2:] for name, array in recorded.arrays().items() if _is_packed(array)}
        self._buffer = Unrolls(**recorded.converted(_kept))
        self._arrays = self._buffer.arrays()
        self._flat = {name: _by_step(array) for name, array in self._arrays.items() if name != "core" and array.size}
        self._per_decision = [line.name for line in spec.fields if line.per_decision]
        self._decided = [name for name in self._per_decision if name not in OUTCOMES]
        observed = (line.name for line in spec.fields if line.per_observation)
        names = [*(f"obs.{name}" for name in self._buffer.obs), *observed]
        self._per_observation = [name for name in names if name in self._flat]
        self._cursor = np.zeros(num_rows, np.int64)
        if staggered and not spec.per_episode:
            self._cursor += np.arange(num_rows) * spec.unroll_length // max(num_rows, 1)
        self._blank = self._cursor.copy()
        self._open = np.zeros(num_rows, np.bool_)
        self._fresh = np.ones(num_rows, np.bool_)

    def observe(
        self,
        rows: NDArray[np.int64],
        *,
        obs: Mapping[str, NDArray[np.generic]],
        action_mask: NDArray[np.bool_] | None,
        rewards: NDArray[np.float32],
        core: NDArray[np.float32] | None,
    ) -> Unrolls | None:
        """Close each row's last decision with its reward and write the slot's present observation.

        Args:
          rows: int64 [K], distinct.
          obs: name -> [K, ...]; action_mask: bool [K, A] or None.
          rewards: float32 [K], earned since the slot's last decision (ignored if `end` closed that decision).
          core: float32 [K, C], core state before this observation, None if C is 0.
        Returns:
          the unrolls that became complete, or None.
        """
        open_rows = self._open[rows]
        if open_rows.any():
            chosen = rows if open_rows.all() else rows[open_rows]
            last = self._decisions(chosen, self._cursor[chosen] - 1)
            self._flat["rewards"][last] = rewards if open_rows.all() else rewards[open_rows]
            self._open[chosen] = False
        cursor = self._cursor[rows]
        self._write(rows, cursor, obs=obs, action_mask=action_mask)
        full = cursor == self.unroll_length
        done = self._emit(rows[full]) if full.any() else None
        starting = self._cursor[rows] == 0
        if core is not None and starting.any():
            self._buffer.core[rows[starting]] = core[starting]
        return done

    def completes(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [K], True where the next decision is the last of its unroll, and another unroll begins after it."""
        return np.equal(self._cursor[rows], self.unroll_length - 1)

    def act(self, rows: NDArray[np.int64], **decided: NDArray[np.generic] | None) -> None:
        """Record the decisions of the rows just observed.

        Args:
          rows: int64 [K], distinct.
          decided: [K, ...] of every field per decision but `OUTCOMES`; fields that the spec lacks are ignored. One of
            `unroll.ASKED` is 0 where the policy that acted does not record it.
        """
        cursor = self._cursor[rows]
        places = self._decisions(rows, cursor)
        for name in self._decided:
            values = decided.get(name)
            if values is None and name in ASKED:
                values = np.zeros((len(rows), *self._arrays[name].shape[2:]), np.float32)
            assert values is not None, f"a decision without {name} was recorded"
            self._put(name, places, values)
        self._flat["rewards"][places] = 0.0
        self._flat["discounts"][places] = 1.0
        self._flat["valid"][places] = True
        self._cursor[rows] = cursor + 1
        self._open[rows] = True

    def end(
        self,
        rows: NDArray[np.int64],
        *,
        rewards: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        final_obs: Mapping[str, NDArray[np.generic]] | None,
    ) -> Unrolls | None:
        """Close the rows' last decisions because their episodes ended.

        Args:
          rows: int64 [K], distinct; rows without an open decision are only marked to start a new episode.
          rewards: float32 [K].
          terminated: bool [K]; if False the episode was truncated and `final_obs` is the slot's last observation.
          final_obs: name -> [K, ...] (rows of terminated episodes are ignored), None if none was truncated.
        Returns:
          the unrolls that became complete (a truncated one whose bootstrap row is the final observation, or those of
          whole episodes), or None.
        """
        open_rows = self._open[rows]
        chosen, last = rows[open_rows], self._cursor[rows[open_rows]] - 1
        places = self._decisions(chosen, last)
        self._flat["rewards"][places] = rewards[open_rows]
        self._flat["discounts"][places] = np.where(terminated[open_rows], 0.0, 1.0)
        self._open[chosen] = False
        self._fresh[rows] = True
        marked = open_rows & ~terminated
        done = self._mark_truncation(rows[marked], marked, final_obs) if marked.any() else None
        return self._end_rows(rows, done) if self._per_episode else done

    def abandon(self, rows: NDArray[np.int64]) -> None:
        """Cut the rows' episodes off because their env failed, before their last decisions: these have no result.

        The observation of such a decision becomes the marker of a truncation, from which the decision before it
        bootstraps: it is the last thing that the env is known to have shown. A row of a whole episode is dropped, since
        it will have no outcome.

        rows: int64 [K], distinct; rows without an open decision are only marked to start a new episode.
        """
        chosen = rows[self._open[rows]]
        last = self._cursor[chosen] - 1
        self._clear(chosen, last, versions=self._buffer.versions[chosen, last])
        self._cursor[chosen[last == 0]] = 0  # the unroll before has this observation as its bootstrap row
        if self._per_episode:
            self._cursor[rows] = 0
        self._open[chosen] = False
        self._fresh[rows] = True

    def save(self) -> dict[str, NDArray[np.generic]]:
        """All unfinished unrolls, as plain arrays."""
        return {name: self._whole(name, array.copy()) for name, array in self._state().items()}

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from the arrays of `save`."""
        for name, array in self._state().items():
            if name not in saved:  # of a version before staggered rows
                array[...] = 0
            else:
                array[...] = _packed(saved[name]) if name in self._flags else saved[name]

    def _state(self) -> dict[str, NDArray[np.generic]]:
        return {**self._arrays, "cursor": self._cursor, "open": self._open, "fresh": self._fresh, "blank": self._blank}

    def _write(
        self,
        rows: NDArray[np.int64],
        cursor: NDArray[np.int64],
        *,
        obs: Mapping[str, NDArray[np.generic]],
        action_mask: NDArray[np.bool_] | None,
    ) -> None:
        places = rows * (self.unroll_length + 1) + cursor
        for name in self._buffer.obs:
            self._put(f"obs.{name}", places, obs[name])
        if self._buffer.action_mask is not None:
            if action_mask is None:
                action_mask = np.ones((len(places), self._num_actions), np.bool_)
            self._put("action_mask", places, action_mask)
        self._flat["resets"][places] = self._fresh[rows]
        self._fresh[rows] = False

    def _mark_truncation(
        self, rows: NDArray[np.int64], chosen: NDArray[np.bool_], final_obs: Mapping[str, NDArray[np.generic]] | None
    ) -> Unrolls | None:
        assert final_obs is not None, "a truncated episode came without its final observation"
        cursor = self._cursor[rows]
        self._fresh[rows] = False
        self._write(rows, cursor, obs={name: array[chosen] for name, array in final_obs.items()}, action_mask=None)
        self._fresh[rows] = True
        full = cursor == self.unroll_length
        inside, at = rows[~full], cursor[~full]
        self._clear(inside, at, versions=self._buffer.versions[inside, at - 1])  # the marker is no decision
        self._cursor[inside] = at + 1
        if not full.any():
            return None
        done = self._copy(rows[full])
        self._cursor[rows[full]] = 0
        return done

    def _end_rows(self, rows: NDArray[np.int64], done: Unrolls | None) -> Unrolls | None:
        """Complete rows of ended episodes with decisions that are not valid; returns them after those `done` already.

        What follows the last decision is blank: no observation, every action legal, the start of another episode.
        """
        begun = rows[self._cursor[rows] > 0]
        if not len(begun):
            return done
        padded, length = self._copy(begun), self._cursor[begun]
        missing = np.arange(self.unroll_length + 1) >= length[:, None]
        self._make_blank(padded, missing, versions=padded.versions[np.arange(len(begun)), length - 1])
        self._cursor[begun] = 0
        return padded if done is None else concatenate([done, padded])

    def _make_blank(self, unrolls: Unrolls, missing: NDArray[np.bool_], *, versions: NDArray[np.int32]) -> None:
        """Empty the steps of unrolls for which bool [K, T + 1] is True; they count as of int32 [K] versions."""
        arrays, of_decisions = unrolls.arrays(), missing[:, :-1]
        for name in self._per_observation:
            arrays[name][missing] = name in ("action_mask", "resets")
        kept = np.where(of_decisions, versions[:, None], unrolls.versions)
        for name in self._per_decision:
            arrays[name][of_decisions] = 0
        unrolls.versions[...] = kept

    def _emit(self, rows: NDArray[np.int64]) -> Unrolls:
        done = self._copy(rows)
        first = rows * (self.unroll_length + 1)
        for name in self._per_observation:
            flat = self._flat[name]
            flat[first] = flat[first + self.unroll_length]
        self._cursor[rows] = 0
        return done

    def _copy(self, rows: NDArray[np.int64]) -> Unrolls:
        parts = {name: self._whole(name, array.take(rows, axis=0)) for name, array in self._arrays.items()}
        copied = Unrolls(obs={name: parts.pop(f"obs.{name}") for name in self._buffer.obs}, **parts)
        blank = self._blank[rows]
        if blank.any():
            missing = np.arange(self.unroll_length + 1) < blank[:, None]
            self._make_blank(copied, missing, versions=copied.versions[np.arange(len(rows)), blank])
            self._blank[rows] = 0
        return copied

    def _whole(self, name: str, array: NDArray[np.generic]) -> NDArray[np.generic]:
        """A field as it is recorded, of one as it is kept."""
        shape = self._flags.get(name)
        return array if shape is None else _unpacked(array, shape)

    def _decisions(self, rows: NDArray[np.int64], steps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Indices of decisions in the flat view of a field per decision."""
        return rows * self.unroll_length + steps

    def _put(self, name: str, places: NDArray[np.int64], values: NDArray[np.generic]) -> None:
        """Write values [K, ...] to places of the flat view."""
        flat = self._flat.get(name)
        if flat is None:
            return  # a field without numbers
        if name in self._flags:
            values = _packed(values[:, None])[:, 0].view(flat.dtype)[:, 0]
        elif flat.dtype.kind == "V":
            values = (
                np.ascontiguousarray(values, self._arrays[name].dtype).reshape(len(places), -1).view(flat.dtype)[:, 0]
            )
        flat[places] = values

    def _clear(self, rows: NDArray[np.int64], steps: NDArray[np.int64], *, versions: NDArray[np.int32]) -> None:
        """Fill decisions with zeros, but for the versions."""
        for name in self._per_decision:
            self._arrays[name][rows, steps] = 0
        self._buffer.versions[rows, steps] = versions


def _by_step(array: NDArray[Any]) -> NDArray[Any]:
    """A flat view of [R, steps, ...] with one element for each step: of raw bytes where a step has several numbers."""
    steps = array.shape[0] * array.shape[1]
    size = math.prod(array.shape[2:]) * array.itemsize
    return array.reshape(steps) if array.ndim == 2 else array.reshape(steps, -1).view(f"V{size}")[:, 0]


def _is_packed(array: NDArray[Any]) -> bool:
    """True for a field [R, steps, ...] that is kept as bits."""
    return array.dtype == np.bool_ and math.prod(array.shape[2:]) >= MIN_FLAGS


def _kept(array: NDArray[Any]) -> NDArray[Any]:
    """An empty field as the builder keeps it."""
    if not _is_packed(array):
        return array
    return np.zeros((*array.shape[:2], math.ceil(math.prod(array.shape[2:]) / 8)), np.uint8)


def _packed(flags: NDArray[Any]) -> NDArray[np.uint8]:
    """Flags [R, steps, ...] as bits [R, steps, bytes]; those of a step begin with a byte."""
    rows, steps, number = *flags.shape[:2], math.prod(flags.shape[2:])
    whole = np.zeros((rows * steps, number + -number % 8), np.bool_)  # `packbits` along an axis takes twice as long
    whole[:, :number] = flags.reshape(rows * steps, number)
    return np.packbits(whole).reshape(rows, steps, whole.shape[1] // 8)


def _unpacked(bits: NDArray[Any], shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """The flags [R, steps, *shape] of bits [R, steps, bytes]."""
    flags = np.unpackbits(bits, axis=-1, count=math.prod(shape)).view(np.bool_)
    return flags.reshape(*bits.shape[:2], *shape)


def turn_rewards(turn: Turn) -> NDArray[np.float32]:
    """float32 [K], the reward of each slot of the turn since its last decision."""
    return turn.rewards[turn.env_index, turn.seat]
