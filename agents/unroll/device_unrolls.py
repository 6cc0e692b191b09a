"""Unrolls that are on the learner's device already: those of games that are played there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.unroll.episodes import SeatEpisodes
from league.agents.unroll.field_table import joined
from league.agents.unroll.unroll import UnrollFields, Unrolls, concatenate, learnt_dtype


@dataclass(frozen=True, kw_only=True)
class DeviceUnrolls(UnrollFields[Tensor]):
    """R unrolls as tensors of one device, batch-major; integer actions are int64. Nobody writes to them any more."""

    @property
    def num_rows(self) -> int:
        """R."""
        return int(self.resets.shape[0])

    def since(self, version: int) -> DeviceUnrolls:
        """Those rows in which at least one decision is of this version of the weights or of a later one."""
        kept = (self.versions >= version).any(dim=1).nonzero().squeeze(1)
        return self if len(kept) == self.num_rows else DeviceUnrolls(**self.converted(lambda rows: rows[kept]))

    def decisions_by_age(self, version: int, *, limit: int) -> Tensor:
        """int64 [limit + 1] on the device, valid decisions of each age in versions; older ones count at the limit."""
        counts = torch.zeros(limit + 1, dtype=torch.int64, device=self.versions.device)
        ages = (version - self.versions.long()).clamp(0, limit)
        return counts.scatter_add_(0, ages.flatten(), self.valid.flatten().long())


AnyUnrolls: TypeAlias = Unrolls | DeviceUnrolls
"""Unrolls as a learner takes them."""
AnyRows: TypeAlias = AnyUnrolls | SeatEpisodes
"""Rows of any kind as a learner takes them."""


def on_device(unrolls: Unrolls, device: torch.device) -> DeviceUnrolls:
    """A copy on the device of what was recorded on the host."""
    dtype = learnt_dtype(unrolls.actions.dtype)

    def moved(array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.array(array)).to(device)

    rows = DeviceUnrolls(**unrolls.converted(moved))
    return DeviceUnrolls(**{**vars(rows), "actions": moved(unrolls.actions.astype(dtype))})


def concatenate_any(parts: Sequence[AnyRows]) -> AnyRows:
    """Join the rows of several of one kind in order; they go to the device of those that are on one."""
    of_device = [part for part in parts if isinstance(part, DeviceUnrolls)]
    if not of_device:
        return concatenate(parts)
    device = of_device[0].resets.device
    moved = [on_device(part, device) if isinstance(part, Unrolls) else part for part in parts]
    return moved[0] if len(moved) == 1 else joined(moved, join=torch.cat)
