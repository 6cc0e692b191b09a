"""The unroll: T decisions of one seat plus the observation to bootstrap from, and the builder that cuts it.

Shape letters: R rows (one per slot in the builder, one per unroll in a record), T unroll length, A actions, H parts of
an action, C core state size, K slots that act in one turn.

Each seat's own decisions are its sequence. The builder writes into one preallocated buffer [R, T+1, ...] with a cursor
per row, so envs, seats and episodes may run out of step with one another and no Python object exists per step.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from envs.protocol import ActionSpec, EnvSpec, Turn


@dataclass(frozen=True)
class Unrolls:
    """R unrolls, batch-major, so that a microbatch is a block of rows.

    Fields:
      obs: name -> [R, T+1, ...]; the last is the bootstrap observation.
      action_mask: bool [R, T+1, A], or None where the game has no mask.
      resets: bool [R, T+1], the observation is the first of its episode (core state is zeroed before it).
      actions: [R, T] integers, [R, T, H] of actions of several parts, or [R, T, ...] float32 for box actions.
      log_probs: float32 [R, T], log-probability that the behaviour policy gave to the action.
      rewards: float32 [R, T], what the seat earned between this decision and its next (or its episode's end).
      discounts: float32 [R, T], 0 where the episode terminated after this decision, else 1; the learner applies its
        gamma.
      valid: bool [R, T], False for the marker after a truncation: it holds the episode's final observation, so that the
        step before it bootstraps from there, and is no decision itself.
      versions: int32 [R, T], version of the weights that acted.
      core: float32 [R, C], core state before the first observation.
      sub_action_log_probs: float32 [R, T, H], what each part adds to `log_probs`; None where actions are of one piece.
    """

    obs: Mapping[str, NDArray[np.generic]]
    action_mask: NDArray[np.bool_] | None
    resets: NDArray[np.bool_]
    actions: NDArray[np.generic]
    log_probs: NDArray[np.float32]
    rewards: NDArray[np.float32]
    discounts: NDArray[np.float32]
    valid: NDArray[np.bool_]
    versions: NDArray[np.int32]
    core: NDArray[np.float32]
    sub_action_log_probs: NDArray[np.float32] | None = None

    @property
    def num_rows(self) -> int:
        """R."""
        return int(self.resets.shape[0])

    @property
    def num_steps(self) -> int:
        """Valid decisions in all rows."""
        return int(np.count_nonzero(self.valid))

    def rows(self, start: int, stop: int) -> Unrolls:
        """Rows [start, stop) as views."""
        return _map_arrays(lambda array: array[start:stop], self)


def concatenate(parts: list[Unrolls]) -> Unrolls:
    """All rows of all parts in order."""
    if len(parts) == 1:
        return parts[0]
    first = parts[0]
    mask = (
        None
        if first.action_mask is None
        else np.concatenate([p.action_mask for p in parts if p.action_mask is not None])
    )
    plain = {
        f.name: np.concatenate([getattr(p, f.name) for p in parts])
        for f in fields(Unrolls)
        if f.name not in ("obs", "action_mask", "sub_action_log_probs")
    }
    obs = {name: np.concatenate([p.obs[name] for p in parts]) for name in first.obs}
    pieces = [p.sub_action_log_probs for p in parts if p.sub_action_log_probs is not None]
    return Unrolls(obs=obs, action_mask=mask, sub_action_log_probs=np.concatenate(pieces) if pieces else None, **plain)


def _map_arrays(function, unrolls: Unrolls) -> Unrolls:  # type: ignore[no-untyped-def]
    values = {f.name: getattr(unrolls, f.name) for f in fields(Unrolls)}
    values["obs"] = {name: function(array) for name, array in unrolls.obs.items()}
    for name, array in values.items():
        if name != "obs" and array is not None:
            values[name] = function(array)
    return Unrolls(**values)


def action_dtype(actions: ActionSpec) -> np.dtype[np.generic]:
    """The dtype in which actions are recorded: float32 of a box, else int16, or int32 where int16 overflows."""
    if actions.kind == "box":
        return np.dtype(np.float32)
    last = max(actions.nvec, default=actions.num_actions) - 1
    return np.dtype(np.int16 if last <= np.iinfo(np.int16).max else np.int32)


class UnrollBuilder:
    """Cuts the decisions of many slots into unrolls of T steps.

    Call `observe` with the slots that record before they act, `act` with what they chose, `end` when episodes end. A
    row is complete when the slot observes for the (T+1)-th time: that observation is the bootstrap row of one unroll
    and the first of the next.
    """

    def __init__(
        self, spec: EnvSpec, *, num_rows: int, unroll_length: int, core_size: int, num_sub_actions: int = 0
    ) -> None:
        if unroll_length < 1:
            raise ValueError(f"unroll_length is {unroll_length}, it must be at least 1")
        self.unroll_length = unroll_length
        shape = (num_rows, unroll_length + 1)
        self._obs = {
            name: np.zeros((*shape, *array.shape), np.dtype(array.dtype)) for name, array in spec.observations.items()
        }
        self._mask = np.ones((*shape, spec.actions.num_actions), np.bool_) if spec.has_mask else None
        self._actions = np.zeros((*shape, *spec.actions.shape), action_dtype(spec.actions))
        self._resets = np.zeros(shape, np.bool_)
        self._log_probs = np.zeros(shape, np.float32)
        self._sub_action_log_probs = np.zeros((*shape, num_sub_actions), np.float32)
        self._rewards = np.zeros(shape, np.float32)
        self._discounts = np.ones(shape, np.float32)
        self._valid = np.ones(shape, np.bool_)
        self._versions = np.zeros(shape, np.int32)
        self._core = np.zeros((num_rows, core_size), np.float32)
        self._cursor = np.zeros(num_rows, np.int64)
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
        """Close each row's last decision with its reward and write what the slot sees now.

        Args:
          rows: int64 [K], distinct.
          obs: name -> [K, ...]; action_mask: bool [K, A] or None.
          rewards: float32 [K], earned since the slot's last decision (ignored where that decision was closed by `end`).
          core: float32 [K, C], core state before this observation, None where C is 0.
        Returns:
          the unrolls that became complete, or None.
        """
        open_rows = self._open[rows]
        if open_rows.any():
            chosen = rows if open_rows.all() else rows[open_rows]
            self._rewards[chosen, self._cursor[chosen] - 1] = rewards if open_rows.all() else rewards[open_rows]
            self._open[chosen] = False
        cursor = self._cursor[rows]
        self._write(rows, cursor, obs=obs, action_mask=action_mask)
        full = cursor == self.unroll_length
        done = self._emit(rows[full]) if full.any() else None
        starting = self._cursor[rows] == 0
        if core is not None and starting.any():
            self._core[rows[starting]] = core[starting]
        return done

    def act(
        self,
        rows: NDArray[np.int64],
        *,
        actions: NDArray[np.generic],
        log_probs: NDArray[np.float32],
        versions: NDArray[np.int32],
        sub_action_log_probs: NDArray[np.float32] | None = None,
    ) -> None:
        """Record what the rows just observed chose. Args: [K] each; sub_action_log_probs: [K, H] where parts are
        recorded."""
        cursor = self._cursor[rows]
        self._actions[rows, cursor] = actions
        self._log_probs[rows, cursor] = log_probs
        if self._sub_action_log_probs.shape[-1]:
            assert sub_action_log_probs is not None, "a policy without parts was recorded where parts are"
            self._sub_action_log_probs[rows, cursor] = sub_action_log_probs
        self._versions[rows, cursor] = versions
        self._discounts[rows, cursor] = 1.0
        self._rewards[rows, cursor] = 0.0
        self._valid[rows, cursor] = True
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
          terminated: bool [K]; where False the episode was truncated and `final_obs` is what the slot saw last.
          final_obs: name -> [K, ...] (rows of terminated episodes are ignored), None where none was truncated.
        Returns:
          the unrolls that became complete (a truncated one whose bootstrap row is the final observation), or None.
        """
        open_rows = self._open[rows]
        chosen, last = rows[open_rows], self._cursor[rows[open_rows]] - 1
        self._rewards[chosen, last] = rewards[open_rows]
        self._discounts[chosen, last] = np.where(terminated[open_rows], 0.0, 1.0)
        self._open[chosen] = False
        self._fresh[rows] = True
        marked = open_rows & ~terminated
        return self._mark_truncation(rows[marked], marked, final_obs) if marked.any() else None

    def save(self) -> dict[str, NDArray[np.generic]]:
        """Everything under construction, as plain arrays."""
        arrays: dict[str, NDArray[np.generic]] = {f"obs.{name}": array.copy() for name, array in self._obs.items()}
        arrays.update({name: getattr(self, f"_{name}").copy() for name in self._plain_names()})
        return arrays

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Go on from `save`d arrays."""
        for name, array in self._obs.items():
            array[...] = saved[f"obs.{name}"]
        for name in self._plain_names():
            getattr(self, f"_{name}")[...] = saved[name]

    def _plain_names(self) -> tuple[str, ...]:
        mask = () if self._mask is None else ("mask",)
        by_sub_action = ("sub_action_log_probs",) if self._sub_action_log_probs.shape[-1] else ()
        return (
            *mask,
            *by_sub_action,
            "actions",
            "resets",
            "log_probs",
            "rewards",
            "discounts",
            "valid",
            "versions",
            "core",
            "cursor",
            "open",
            "fresh",
        )

    def _write(
        self,
        rows: NDArray[np.int64],
        cursor: NDArray[np.int64],
        *,
        obs: Mapping[str, NDArray[np.generic]],
        action_mask: NDArray[np.bool_] | None,
    ) -> None:
        for name, array in self._obs.items():
            array[rows, cursor] = obs[name]
        if self._mask is not None:
            self._mask[rows, cursor] = True if action_mask is None else action_mask
        self._resets[rows, cursor] = self._fresh[rows]
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
        self._actions[inside, at] = 0
        self._log_probs[inside, at] = 0.0
        self._sub_action_log_probs[inside, at] = 0.0
        self._versions[inside, at] = self._versions[inside, at - 1]
        self._rewards[inside, at] = 0.0
        self._discounts[inside, at] = 0.0
        self._valid[inside, at] = False
        self._cursor[inside] = at + 1
        if not full.any():
            return None
        done = self._copy(rows[full])
        self._cursor[rows[full]] = 0
        return done

    def _emit(self, rows: NDArray[np.int64]) -> Unrolls:
        done = self._copy(rows)
        last = self.unroll_length
        for array in (*self._obs.values(), *(() if self._mask is None else (self._mask,)), self._resets):
            array[rows, 0] = array[rows, last]
        self._cursor[rows] = 0
        return done

    def _copy(self, rows: NDArray[np.int64]) -> Unrolls:
        steps = self.unroll_length
        return Unrolls(
            obs={name: array[rows] for name, array in self._obs.items()},
            action_mask=None if self._mask is None else self._mask[rows],
            resets=self._resets[rows],
            actions=self._actions[rows, :steps],
            log_probs=self._log_probs[rows, :steps],
            rewards=self._rewards[rows, :steps],
            discounts=self._discounts[rows, :steps],
            valid=self._valid[rows, :steps],
            versions=self._versions[rows, :steps],
            core=self._core[rows],
            sub_action_log_probs=self._sub_action_log_probs[rows, :steps]
            if self._sub_action_log_probs.shape[-1]
            else None,
        )


def turn_rewards(turn: Turn) -> NDArray[np.float32]:
    """float32 [K], the reward of each slot of the turn since its last decision."""
    return turn.rewards[turn.env_index, turn.seat]
