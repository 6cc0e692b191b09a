"""Where the kernels of our own run: on a GPU, in 16-bit numbers, and only where something is learnt.

Triton compiles them; it comes with torch's builds for a GPU and needs a C compiler.
"""

from __future__ import annotations

import importlib.util
import os
import shutil

import torch
from torch import Tensor

HAS_TRITON: bool = importlib.util.find_spec("triton") is not None and any(
    shutil.which(name) for name in (os.environ.get("CC", ""), "cc", "gcc", "clang") if name
)
KERNEL_DTYPES = (torch.bfloat16, torch.float16)
SHARED_MEMORY = 200 << 10
"""Bytes of a multiprocessor from which the kernels fit: H100, H200 and their successors."""


def learns_on_gpu(features: Tensor) -> bool:
    """True if the kernels serve a pass over these features; those who act need no gradient and take torch's own."""
    fits = features.device.type == "cuda" and features.dtype in KERNEL_DTYPES and torch.is_grad_enabled()
    if not (HAS_TRITON and fits):
        return False
    memory: int = torch.cuda.get_device_properties(features.device).shared_memory_per_multiprocessor
    return memory >= SHARED_MEMORY
