"""Where the kernels of our own run: on a GPU, in 16-bit numbers, in passes that learn, and only after a trial.

Triton compiles them for the GPU at hand, by a C compiler and the headers of Python. Where anything of this is missing,
torch's own operators run: they are slower, and never wrong.
"""

from __future__ import annotations

import torch
from torch import Tensor

KERNEL_DTYPES = (torch.bfloat16, torch.float16)

_trusted = {"kernels": False}


def trust_kernels(*, are_right: bool) -> None:
    """Let passes of this process use the kernels, or not; `kernels.trial` decides it."""
    _trusted["kernels"] = are_right


def learns_on_gpu(features: Tensor) -> bool:
    """True if the kernels serve a pass over these features; those who act need no gradient and take torch's own."""
    on_gpu = features.device.type == "cuda" and features.dtype in KERNEL_DTYPES
    return on_gpu and _trusted["kernels"] and torch.is_grad_enabled()
