"""Modules whose own tensors are never rounded: moments and counts that a network is scaled by."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from torch import Tensor, nn


class ExactModule(nn.Module):
    """A module whose own parameters and buffers follow a network to another device, but to no narrower type.

    An acting copy may be bfloat16, with eight bits. A mean of 1013 would move by up to 4, whatever the deviation.
    """

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:  # torch's
        def without_rounding(tensor: Tensor) -> Tensor:
            moved = fn(tensor)
            return moved if moved.dtype.itemsize >= tensor.dtype.itemsize else tensor.to(moved.device)

        module: Self = super()._apply(without_rounding, recurse)  # type: ignore[no-untyped-call]
        return module
