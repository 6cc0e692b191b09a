"""The one shape check that every loss makes before it computes. T unroll length, B batch."""

from __future__ import annotations

from torch import Tensor


def check_time_major(reference: Tensor, /, **tensors: Tensor | None) -> None:
    """Compare the shapes of tensors with that of a [T, B] reference; None is skipped.

    Raises:
      ValueError: a shape differs, or the reference is not [T, B]; the message names the tensor and both shapes.
    """
    shape = reference.shape
    if len(shape) != 2:
        raise ValueError(f"expected a time-major [T, B] tensor, got shape {tuple(shape)}")
    for name, tensor in tensors.items():
        if tensor is not None and tensor.shape != shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, expected [T, B] = {tuple(shape)}")


def check_bootstrap(reference: Tensor, bootstrap_value: Tensor) -> None:
    """Compare the shape of a bootstrap value with the batch axis of a [T, B] reference.

    Raises:
      ValueError: it is not [B]; the message names both shapes.
    """
    if bootstrap_value.shape != reference.shape[1:]:
        raise ValueError(
            f"bootstrap_value has shape {tuple(bootstrap_value.shape)}, expected [B] = {tuple(reference.shape[1:])}"
        )
