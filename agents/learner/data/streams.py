"""Work in several streams of one GPU: marks that other streams wait for, and memory that they read."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def mark(device: torch.device) -> torch.cuda.Event | None:
    """A mark on the calling thread's stream; None on a CPU."""
    if device.type != "cuda":
        return None
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(device))
    return event


def wait_for(event: torch.cuda.Event | None, device: torch.device, *, read: Iterable[Tensor]) -> None:
    """Let the calling thread's stream wait for a mark of another one; nothing without a mark.

    Args:
      read: tensors of the other stream that this one reads. Without a note of that, their memory could be reused while
        they are being read.
    """
    if event is None:
        return
    stream = torch.cuda.current_stream(device)
    stream.wait_event(event)
    for tensor in read:
        tensor.record_stream(stream)
