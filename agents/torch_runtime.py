"""Settings of torch: of a process that acts or learns, made once at its start, and those that are said at each use.

What belongs to the whole process may be another program's: a game that runs here, or the user's own that loads a
policy. So networks say their dtype and device, and learning switches gradients on itself.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch

from league.envs.guard.settings import add_setting

P = ParamSpec("P")
R = TypeVar("R")

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


def _default_device() -> Any:
    """The default device that is set; None if there is none. `torch.get_default_device` makes a tensor to say so."""
    context = getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
    return None if context is None else context.device


def with_own_defaults(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: new tensors are float32 on the CPU, and gradients are on, whatever the program around has set."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        dtype, device, gradients = torch.get_default_dtype(), _default_device(), torch.is_grad_enabled()
        if dtype is torch.float32 and device is None and gradients:
            return function(*args, **kwargs)
        torch.set_default_dtype(torch.float32)
        torch.set_default_device(None)
        torch.set_grad_enabled(True)
        try:
            return function(*args, **kwargs)
        finally:
            torch.set_grad_enabled(gradients)
            torch.set_default_device(device)
            torch.set_default_dtype(dtype)

    return run


def _set_deterministic(mode: int) -> None:
    """Set the mode of `torch.get_deterministic_debug_mode`, of torch's compiler too where that is there already.

    `torch.use_deterministic_algorithms` imports the compiler, which takes seconds.
    """
    if "torch._inductor" in sys.modules:
        torch.use_deterministic_algorithms(mode > 0, warn_only=mode == 1)
    else:
        torch.set_deterministic_debug_mode(mode)


def prepare_process() -> None:
    """Use one torch thread, and make malloc keep the memory that it once got from the kernel; see `keep_float32`.

    Several processes with several threads each on a few cores lose up to a factor of ten. By default every large
    buffer of an update returns to the kernel and comes back page by page: a third of a float32 update's time.
    """
    torch.set_num_threads(1)
    _set_deterministic(0)
    keep_float32()
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:
        return
    for option, value in ((M_MMAP_THRESHOLD, KEPT_BYTES), (M_TRIM_THRESHOLD, KEPT_BYTES), (M_TOP_PAD, PAD_BYTES)):
        mallopt(option, value)


for _name, _read, _write in (
    ("torch's default dtype", torch.get_default_dtype, torch.set_default_dtype),
    ("torch's default device", _default_device, torch.set_default_device),
    ("torch's gradients", torch.is_grad_enabled, torch.set_grad_enabled),
    ("torch's threads", torch.get_num_threads, torch.set_num_threads),
    ("torch's deterministic algorithms", torch.get_deterministic_debug_mode, _set_deterministic),
):
    add_setting(_name, _read, _write)
