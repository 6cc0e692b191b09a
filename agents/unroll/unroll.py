"""The unroll (T decisions of one seat and the observation to bootstrap from) and the table of its fields.

Shape letters: R rows (one per slot in the builder, one per unroll in a record), T unroll length, A entries of the
action mask, N numbered actions, H sub-actions, C core state size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.field_table import (
    ANY,
    Allocator,
    Array,
    FieldLine,
    FieldTable,
    Rows,
    joined,
    lines_of,
    table_line,
    table_lines,
)
from league.envs.protocol import EnvSpec


@dataclass(frozen=True, kw_only=True)
class UnrollFields(FieldTable[Array]):
    """The table of an unroll's fields, in the order of a chunk; arrays are numpy's in transport, torch's in a batch.

    A new field is one line here, and code that records and uses it. Builder, codec, ring, batch and synthetic unrolls
    read this table. A field per decision is zero in the marker after a truncation.

    Fields:
      obs: name -> [R, T+1, ...]; the last is the bootstrap observation.
      action_mask: None if the game has no mask.
      sub_action_log_probs: term of each sub-action in `log_probs`; None without sub-actions.
      values: return that the policy expected from here on when it acted.
      search_policy: probability of each numbered action by the visits of a search; search_value: return that it found.
      resets: the observation is the first of its episode (core state is zeroed before it).
      actions: integers, [R, T, H] of actions with sub-actions, or float32 [R, T, ...] of box actions.
      log_probs: log-probability that the behaviour policy gave to the action.
      rewards: earned by the seat between this decision and its next (or its episode's end).
      discounts: 0 where the episode terminated after this decision, else 1; the learner applies its gamma.
      valid: False for the marker after a truncation: it holds the episode's final observation, so that the step before
        it bootstraps from there, and is no decision itself.
      versions: of the weights that acted.
      core: core state before the first observation.
      weights: factor of each row's loss, from a replay; None for 1.
    """

    obs: Mapping[str, Array] = field(metadata=table_lines(f"R T+1 {ANY}"))
    action_mask: Array | None = field(default=None, metadata=table_line("R T+1 A", "bool"))
    sub_action_log_probs: Array | None = field(default=None, metadata=table_line("R T H", "float32"))
    values: Array | None = field(default=None, metadata=table_line("R T", "float32", asked=True))
    search_policy: Array | None = field(default=None, metadata=table_line("R T N", "float32", asked=True))
    search_value: Array | None = field(default=None, metadata=table_line("R T", "float32", asked=True))
    weights: Array | None = field(default=None, metadata=table_line("R", "float32"))
    resets: Array = field(metadata=table_line("R T+1", "bool"))
    actions: Array = field(metadata=table_line(f"R T {ANY}", ANY))
    log_probs: Array = field(metadata=table_line("R T", "float32"))
    rewards: Array = field(metadata=table_line("R T", "float32"))
    discounts: Array = field(metadata=table_line("R T", "float32"))
    valid: Array = field(metadata=table_line("R T", "bool"))
    versions: Array = field(metadata=table_line("R T", "int32"))
    core: Array = field(metadata=table_line("R C", "float32"))


FIELDS = lines_of(UnrollFields)
"""Every field but the observations, in the order of a chunk."""

ASKED = tuple(line.name for line in FIELDS if line.asked)
"""Fields that are recorded where the kind of acting has them."""


@dataclass(frozen=True, kw_only=True)
class Unrolls(UnrollFields[NDArray[Any]]):
    """R unrolls, batch-major, so that a microbatch is a block of rows."""

    @property
    def num_rows(self) -> int:
        """R."""
        return int(self.resets.shape[0])

    @property
    def num_steps(self) -> int:
        """Valid decisions in all rows."""
        return int(np.count_nonzero(self.valid))

    @property
    def decided_versions(self) -> NDArray[np.int32]:
        """int32 [decisions], of every valid decision."""
        versions: NDArray[np.int32] = self.versions[self.valid]
        return versions


def concatenate(parts: Sequence[Rows]) -> Rows:
    """Join the rows of several records of numpy arrays in order."""
    return parts[0] if len(parts) == 1 else joined(parts, join=np.concatenate)


class ActingNetwork(Protocol):
    """The facts of the recorded network on which the shape of an unroll depends."""

    core_size: int

    @property
    def num_sub_actions(self) -> int: ...


@dataclass(frozen=True)
class UnrollSpec:
    """Shape and dtype of every field of the unrolls of a game.

    Fields:
      game: spec of the env.
      unroll_length: T.
      core_size: C of the acting network.
      num_sub_actions: H if the log-probabilities of sub-actions are recorded, else 0.
      per_episode: whether a row ends with its episode. Decisions that are missing then are not valid.
      recorded: names of the further fields that the kind of acting records.
    """

    game: EnvSpec
    unroll_length: int
    core_size: int = 0
    num_sub_actions: int = 0
    per_episode: bool = False
    recorded: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.unroll_length < 1:
            raise ValueError(f"unroll_length is {self.unroll_length}, it must be at least 1")
        unknown = set(self.recorded) - set(ASKED)
        if unknown:
            raise ValueError(f"an unroll has no field {min(unknown)!r} to record; there are {', '.join(ASKED)}")

    @classmethod
    def of(
        cls,
        game: EnvSpec,
        network: ActingNetwork,
        *,
        unroll_length: int,
        per_episode: bool = False,
        recorded: tuple[str, ...] = (),
    ) -> UnrollSpec:
        """The spec of unrolls of this network."""
        return cls(game, unroll_length, network.core_size, network.num_sub_actions, per_episode, recorded)

    @property
    def fields(self) -> tuple[FieldLine, ...]:
        """The lines of the table that this game fills; observations are in `game`."""
        return tuple(line for line in FIELDS if self._has(line))

    def shape(self, line: FieldLine, num_rows: int) -> tuple[int, ...]:
        """Shape of a field. num_rows: R."""
        sizes = {
            "R": (num_rows,),
            "T": (self.unroll_length,),
            "T+1": (self.unroll_length + 1,),
            "A": (self.game.actions.num_actions if self.game.has_mask else 0,),
            "N": (self.game.actions.num_actions,),
            "H": (self.num_sub_actions,),
            "C": (self.core_size,),
            ANY: self.game.actions.shape,
        }
        return tuple(size for axis in line.axes for size in sizes[axis])

    def _has(self, line: FieldLine) -> bool:
        """True if the recorded unrolls hold a field."""
        if line.is_added:
            return False
        if line.asked:
            return line.name in self.recorded
        return not line.optional or 0 not in self.shape(line, 1)

    @property
    def action_dtype(self) -> np.dtype[Any]:
        """Dtype of recorded actions: float32 for a box, else int16, or int32 if int16 overflows."""
        actions = self.game.actions
        if actions.kind == "box":
            return np.dtype(np.float32)
        last = max(actions.nvec, default=actions.num_actions) - 1
        return np.dtype(np.int16 if last <= np.iinfo(np.int16).max else np.int32)

    def allocate(
        self, num_rows: int, *, zeros: Allocator = np.zeros, action_dtype: np.dtype[Any] | None = None
    ) -> Unrolls:
        """Allocate rows of zeros.

        Args:
          num_rows: R.
          zeros: shape and dtype to an array.
          action_dtype: instead of that of the record.
        """
        actions = self.action_dtype if action_dtype is None else action_dtype
        shown = (num_rows, self.unroll_length + 1)
        observations = self.game.observations.items()
        return Unrolls(
            obs={name: zeros((*shown, *array.shape), np.dtype(array.dtype)) for name, array in observations},
            **{
                line.name: zeros(self.shape(line, num_rows), actions if line.dtype == ANY else np.dtype(line.dtype))
                for line in self.fields
            },
        )


def learnt_dtype(recorded: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype of actions in a loss: int64 for integers, with which torch indexes."""
    return np.dtype(np.int64) if recorded.kind in "iu" else recorded
