"""Unrolls as tensors on the learner's device.

Shape letters: B rows, T unroll length.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.learner.data.streams import mark, wait_for
from league.agents.unroll.device_unrolls import AnyUnrolls, DeviceUnrolls
from league.agents.unroll.field_table import joined
from league.agents.unroll.unroll import FIELDS, UnrollFields, Unrolls, learnt_dtype


@dataclass(frozen=True, kw_only=True)
class Batch(UnrollFields[Tensor]):
    """B unrolls, batch-major; a microbatch is a block of rows. Integer actions are int64.

    Fields:
      learn: bool [B, T], valid and not too stale to learn from.
      host_resets: `resets` on the CPU where the other tensors are not, so that nobody waits for a GPU to read them.
      precomputed: name -> [B, ...], targets that an objective fixed for the whole batch before microbatches were cut.
    """

    learn: Tensor
    host_resets: Tensor | None = None
    precomputed: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """B."""
        return int(self.resets.shape[0])

    def tensors(self) -> list[Tensor]:
        """Every tensor of the batch on its device."""
        return [tensor for name, tensor in self.arrays().items() if name != "host_resets"]

    def microbatches(self, number: int) -> list[Batch]:
        """Cut the batch into `number` equal blocks of rows.

        Raises:
          ValueError: the rows do not divide.
        """
        if self.num_rows % number:
            raise ValueError(f"{self.num_rows} rows do not cut into {number} equal microbatches")
        if number == 1:
            return [self]
        size = self.num_rows // number
        return [self.rows(start, start + size) for start in range(0, self.num_rows, size)]

    def steps(self, start: int, stop: int) -> Batch:
        """Decisions [start, stop) of every row with the observation after them; `core` stays that before the row."""
        lines = {line.name: line for line in FIELDS}

        def cut(name: str, value: Tensor) -> Tensor:
            line = lines.get(name)
            if line is not None and not line.per_decision and not line.per_observation:
                return value
            shown = name == "host_resets" or (line is not None and line.per_observation)
            return value[:, start : stop + shown]

        values = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(
            self,
            obs={name: field[:, start : stop + 1] for name, field in self.obs.items()},
            precomputed={name: field[:, start:stop] for name, field in self.precomputed.items()},
            **{name: cut(name, value) for name, value in values.items()},
        )

    def with_precomputed(self, precomputed: Mapping[str, Tensor]) -> Batch:
        """The same rows with these precomputed targets."""
        return replace(self, precomputed=precomputed)


def join(microbatches: Sequence[Batch]) -> Batch:
    """Join the rows of all microbatches in order, without precomputed targets."""
    if len(microbatches) == 1:
        return microbatches[0].with_precomputed({})
    first, *others = microbatches
    return joined([first.with_precomputed({}), *others], join=torch.cat)


def batch_from(unrolls: Unrolls, *, oldest_version: int, device: torch.device) -> Batch:
    """Copy unrolls to the device.

    Args:
      unrolls: B rows.
      oldest_version: decisions of older weights are not learnt from.
      device: of the tensors.
    """
    return _with_learn(_fields_on(device, unrolls), unrolls, oldest_version=oldest_version, device=device)


Ahead = Callable[[], Unrolls | None]
"""Gives the first block of the next batch; None where it has not come."""


class Stager:
    """Copies blocks of unrolls to the learner's device, on a GPU in its own stream beside the computing one.

    The arrays of a block must not change until the update with it has returned. Those of a block that is copied ahead
    must not before the next update has.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None
        self._ahead: _Staged | None = None

    def batch(self, unrolls: AnyUnrolls, *, oldest_version: int) -> Batch:
        """As `batch_from`; on a GPU, later computations wait for the copy. Rows that are there stay where they are."""
        if isinstance(unrolls, DeviceUnrolls):
            return _without_copy(unrolls, oldest_version=oldest_version)
        if self._device.type != "cuda":
            return batch_from(unrolls, oldest_version=oldest_version, device=self._device)
        staged, self._ahead = self._ahead, None
        with torch.cuda.stream(self._own_stream()):
            fields = (
                staged.fields if staged is not None and staged.holds(unrolls) else _fields_on(self._device, unrolls)
            )
            batch = _with_learn(fields, unrolls, oldest_version=oldest_version, device=self._device)
            copied = mark(self._device)
        wait_for(copied, self._device, read=batch.tensors())
        return batch

    def copy_ahead(self, ahead: Ahead) -> None:
        """Begin to copy the first block of the next batch, while the device computes; on a CPU nothing is copied."""
        if self._device.type != "cuda":
            return
        self._ahead, block = None, ahead()
        if block is not None:
            with torch.cuda.stream(self._own_stream()):
                self._ahead = _Staged(block, _fields_on(self._device, block))

    def _own_stream(self) -> torch.cuda.Stream:
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        return self._stream


@dataclass(frozen=True)
class _Staged:
    """A block on the learner's device, beside the arrays that it was copied from."""

    block: Unrolls
    fields: Mapping[str, Any]

    def holds(self, unrolls: Unrolls) -> bool:
        """True if these rows are those of the block: the same memory, of a ring that the block keeps alive."""
        mine, theirs = self.block.resets, unrolls.resets
        return mine.shape == theirs.shape and mine.ctypes.data == theirs.ctypes.data


def _fields_on(device: torch.device, unrolls: Unrolls) -> Mapping[str, Any]:
    """The fields of a batch that depend on no version."""
    dtype = learnt_dtype(unrolls.actions.dtype)
    if unrolls.actions.dtype != dtype:
        unrolls = replace(unrolls, actions=unrolls.actions.astype(dtype))
    return unrolls.converted(lambda array: _tensor(array, device))


def _with_learn(fields: Mapping[str, Any], unrolls: Unrolls, *, oldest_version: int, device: torch.device) -> Batch:
    """The batch of these rows and fields."""
    learn = unrolls.valid & (unrolls.versions >= oldest_version)
    host_resets = None if device.type == "cpu" else _tensor(unrolls.resets, torch.device("cpu"))
    return Batch(learn=_tensor(learn, device), host_resets=host_resets, **fields)


def _without_copy(unrolls: DeviceUnrolls, *, oldest_version: int) -> Batch:
    """The batch of rows on the learner's device; only a network with memory has their resets read by the host."""
    reads_resets = unrolls.resets.device.type != "cpu" and unrolls.core.shape[1] > 0
    return Batch(
        learn=unrolls.valid & (unrolls.versions >= oldest_version),
        host_resets=unrolls.resets.cpu() if reads_resets else None,
        **vars(unrolls),
    )


def _tensor(array: NDArray[np.generic], device: torch.device) -> Tensor:
    writable = array if array.flags.writeable else array.copy()
    tensor = torch.from_numpy(np.ascontiguousarray(writable))
    return tensor if device.type == "cpu" else tensor.to(device, non_blocking=True)
