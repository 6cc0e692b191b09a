"""Unrolls as tensors on the learner's device.

Shape letters: B rows, T unroll length, A actions, H parts of an action, C core state size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from agents.unroll.unroll import Unrolls

PLAIN_FIELDS = ("resets", "core", "actions", "log_probs", "rewards", "discounts", "valid", "learn")
"""Fields of a batch that are one tensor each, in every game."""


@dataclass(frozen=True)
class Batch:
    """B unrolls, batch-major; a microbatch is a block of rows.

    Fields:
      obs: name -> [B, T+1, ...]; action_mask: bool [B, T+1, A] or None; resets: bool [B, T+1]; core: float32 [B, C].
      actions: int64 [B, T] or float32 [B, T, ...]; log_probs, rewards, discounts: float32 [B, T], gamma not applied.
      valid: bool [B, T], a real decision; learn: bool [B, T], valid and not too stale to learn from.
      sub_action_log_probs: float32 [B, T, H], what each part adds to `log_probs`, or None.
      precomputed: name -> [B, ...], what an objective fixed for the whole batch before microbatches were cut.
    """

    obs: Mapping[str, Tensor]
    action_mask: Tensor | None
    resets: Tensor
    core: Tensor
    actions: Tensor
    log_probs: Tensor
    rewards: Tensor
    discounts: Tensor
    valid: Tensor
    learn: Tensor
    sub_action_log_probs: Tensor | None = None
    precomputed: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def num_rows(self) -> int:
        """B."""
        return int(self.resets.shape[0])

    def rows(self, start: int, stop: int) -> Batch:
        """Rows [start, stop) as views."""
        return Batch(
            obs={name: tensor[start:stop] for name, tensor in self.obs.items()},
            precomputed={name: tensor[start:stop] for name, tensor in self.precomputed.items()},
            action_mask=None if self.action_mask is None else self.action_mask[start:stop],
            sub_action_log_probs=None if self.sub_action_log_probs is None else self.sub_action_log_probs[start:stop],
            **{name: getattr(self, name)[start:stop] for name in PLAIN_FIELDS},
        )

    def tensors(self) -> list[Tensor]:
        """Every tensor of the batch."""
        optional = [tensor for tensor in (self.action_mask, self.sub_action_log_probs) if tensor is not None]
        return [
            *self.obs.values(),
            *optional,
            *self.precomputed.values(),
            *(getattr(self, name) for name in PLAIN_FIELDS),
        ]

    def microbatches(self, number: int) -> list[Batch]:
        """`number` equal blocks of rows.

        Raises:
          ValueError: the rows do not divide.
        """
        if self.num_rows % number:
            raise ValueError(f"{self.num_rows} rows do not cut into {number} equal microbatches")
        if number == 1:
            return [self]
        size = self.num_rows // number
        return [self.rows(start, start + size) for start in range(0, self.num_rows, size)]

    def with_precomputed(self, precomputed: Mapping[str, Tensor]) -> Batch:
        """The same rows with these constants."""
        return replace(self, precomputed=precomputed)


def join(microbatches: Sequence[Batch]) -> Batch:
    """All rows of all microbatches in order, constants left out."""
    if len(microbatches) == 1:
        return microbatches[0].with_precomputed({})
    first = microbatches[0]
    masks = [batch.action_mask for batch in microbatches if batch.action_mask is not None]
    by_sub_action = [batch.sub_action_log_probs for batch in microbatches if batch.sub_action_log_probs is not None]
    return Batch(
        obs={name: torch.cat([batch.obs[name] for batch in microbatches]) for name in first.obs},
        action_mask=torch.cat(masks) if masks else None,
        sub_action_log_probs=torch.cat(by_sub_action) if by_sub_action else None,
        precomputed={},
        **{name: torch.cat([getattr(batch, name) for batch in microbatches]) for name in PLAIN_FIELDS},
    )


def batch_from(unrolls: Unrolls, *, oldest_version: int, device: torch.device) -> Batch:
    """Copy unrolls to the device.

    Args:
      unrolls: B rows.
      oldest_version: decisions of older weights are not learnt from.
      device: where the tensors go.
    """
    learn = unrolls.valid & (unrolls.versions >= oldest_version)
    actions = unrolls.actions.astype(np.int64, copy=False) if unrolls.actions.dtype.kind in "iu" else unrolls.actions
    return Batch(
        obs={name: _tensor(array, device) for name, array in unrolls.obs.items()},
        action_mask=None if unrolls.action_mask is None else _tensor(unrolls.action_mask, device),
        resets=_tensor(unrolls.resets, device),
        core=_tensor(unrolls.core, device),
        actions=_tensor(actions, device),
        log_probs=_tensor(unrolls.log_probs, device),
        rewards=_tensor(unrolls.rewards, device),
        discounts=_tensor(unrolls.discounts, device),
        valid=_tensor(unrolls.valid, device),
        learn=_tensor(learn, device),
        sub_action_log_probs=None
        if unrolls.sub_action_log_probs is None
        else _tensor(unrolls.sub_action_log_probs, device),
    )


class Stager:
    """Copies blocks of unrolls to the learner's device, on a GPU in a stream of its own beside the computing one.

    The arrays of a block must stay as they are until the update has returned.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: torch.cuda.Stream | None = None

    def batch(self, unrolls: Unrolls, *, oldest_version: int) -> Batch:
        """As `batch_from`, ordered before whatever is computed next."""
        if self._device.type != "cuda":
            return batch_from(unrolls, oldest_version=oldest_version, device=self._device)
        if self._stream is None:
            self._stream = torch.cuda.Stream(self._device)  # type: ignore[no-untyped-call]
        with torch.cuda.stream(self._stream):
            batch = batch_from(unrolls, oldest_version=oldest_version, device=self._device)
        computing = torch.cuda.current_stream(self._device)
        computing.wait_stream(self._stream)
        for tensor in batch.tensors():
            # Its memory belongs to the copying stream: without this it could be reused while still being read.
            tensor.record_stream(computing)
        return batch


def _tensor(array: NDArray[np.generic], device: torch.device) -> Tensor:
    writable = array if array.flags.writeable else array.copy()
    return torch.from_numpy(np.ascontiguousarray(writable)).to(device, non_blocking=True)
