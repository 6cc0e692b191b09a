"""Settings of a process that acts or learns, made once at its start: threads, memory and rounding."""

from __future__ import annotations

import ctypes
import sys

import torch

M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD = -1, -2, -3
"""Numbers of glibc's malloc.h."""

KEPT_BYTES = 1 << 30
PAD_BYTES = 64 << 20


def keep_float32() -> None:
    """Compute float32 in float32 on a GPU too.

    By default cuDNN rounds the inputs of convolutions and LSTMs to TF32, and torch those of no other product. Gradients
    of equal networks then differ by 3e-4, so that nothing can be compared. Who wants speed learns in bfloat16. cuDNN
    chooses its algorithms by rule and tries none out, so that equal runs use equal ones.
    """
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = False


def prepare_process() -> None:
    """Use one torch thread, and make malloc keep the memory that it once got from the kernel; see `keep_float32`.

    Several processes with several threads each on a few cores lose up to a factor of ten. By default every large
    buffer of an update returns to the kernel and comes back page by page: a third of a float32 update's time.
    """
    torch.set_num_threads(1)
    keep_float32()
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    for option, value in ((M_MMAP_THRESHOLD, KEPT_BYTES), (M_TRIM_THRESHOLD, KEPT_BYTES), (M_TOP_PAD, PAD_BYTES)):
        mallopt(option, value)
