"""The settings of a process that code of others may change: how each is read and written.

`agents` adds those of torch, which this package does not import.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import contextlib
import gc
import logging
import operator
import os
import signal
import socket
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SIGNALS = tuple(
    int(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGALRM)
)
"""Handlers are kept of these: a stop, the end of a child, and a clock that by default ends the process."""

OUR_VARIABLES = tuple(
    name.encode() for name in ("CUDA", "OMP", "MKL", "RAY", "PYTHON", "LD_", "TORCH", "TMP", "WANDB", "HOME", "PATH")
)
"""Beginnings of the names of variables that steer this program or its children."""

handler_of: Callable[[int], Any] = _signal.getsignal
"""Without the enums of `signal`, which cost twenty times the call: it is asked at every step."""


@dataclass(frozen=True)
class Setting:
    """One setting of the process or of the calling thread.

    Fields:
      name: for people. read: its value. write: puts a value back.
      differs: whether a value read now must not stay in place of the one before.
    """

    name: str
    read: Callable[[], Any]
    write: Callable[[Any], object]
    differs: Callable[[Any, Any], bool] = operator.ne


def add_setting(name: str, read: Callable[[], Any], write: Callable[[Any], object]) -> None:
    """Guard one more setting from now on, with `read` and `write` as of `Setting`."""
    if all(name != known.name for known in SETTINGS):
        SETTINGS.append(Setting(name, read, write))


def current_folder() -> str:
    """The current folder; empty where it has been removed."""
    try:
        return os.getcwd()  # noqa: PTH109  of every step: a Path would cost three times as much
    except OSError:
        return ""


def working_folder() -> Path:
    """The current folder, where names are looked for first; the root of all files where it has been removed."""
    return Path(current_folder() or "/")


def _change_folder(path: str) -> None:
    with contextlib.suppress(OSError):  # it has been removed, or never was
        os.chdir(path)


_ENVIRONMENT: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]  # os.environ decodes all it compares


def _set_environment(values: dict[Any, Any]) -> None:
    decode = os.environ.decodevalue
    for key in [key for key in _ENVIRONMENT if key not in values]:
        del os.environ[decode(key)]
    for key, value in values.items():
        if _ENVIRONMENT.get(key) != value:
            os.environ[decode(key)] = decode(value)


def _environment_differs(now: dict[Any, Any], before: dict[Any, Any]) -> bool:
    """Variables that are new stay, as libraries set them when they are imported; but not those that steer our own."""
    if now == before:
        return False
    changed = any(now.get(key) != value for key, value in before.items())
    return changed or any(key.startswith(OUR_VARIABLES) for key in now if key not in before)


def _filters_differ(now: list[Any], before: list[Any]) -> bool:
    """New filters stay, if they do not turn warnings into errors."""
    if now == before:
        return False
    return any(known not in now for known in before) or any(new[0] == "error" for new in now if new not in before)


def _set_filters(filters: list[Any]) -> None:
    warnings.resetwarnings()  # it also tells the interpreter that they have changed
    warnings.filters.extend(filters)  # type: ignore[attr-defined]


def _set_recursion_limit(limit: int) -> None:
    with contextlib.suppress(RecursionError):  # we are deeper than that already
        sys.setrecursionlimit(limit)


def _handlers() -> tuple[Any, ...]:
    """Handlers of `SIGNALS`, which only the main thread can change."""
    if threading.current_thread() is not threading.main_thread():
        return ()
    return tuple(handler_of(number) for number in SIGNALS)


def _set_handlers(handlers: tuple[Any, ...]) -> None:
    for number, handler in zip(SIGNALS, handlers, strict=bool(handlers)):
        if handler is not None and handler_of(number) is not handler:
            signal.signal(number, handler)


def _has_timer() -> bool:
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0.0


def _set_timer(runs: bool) -> None:
    if not runs:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _log_levels() -> tuple[Any, ...]:
    root = logging.root
    return root.manager.disable, root.level, tuple(root.handlers)


def _set_log_levels(levels: tuple[Any, ...]) -> None:
    disabled, level, handlers = levels
    logging.disable(disabled)
    logging.root.setLevel(level)
    logging.root.handlers[:] = handlers


def _set_collecting(collects: bool) -> None:
    (gc.enable if collects else gc.disable)()


def _hooks() -> tuple[Any, ...]:
    return sys.excepthook, sys.unraisablehook, threading.excepthook


def _set_hooks(hooks: tuple[Any, ...]) -> None:
    sys.excepthook, sys.unraisablehook, threading.excepthook = hooks


SETTINGS: list[Setting] = [
    Setting("the current folder", current_folder, _change_folder),
    Setting("environment variables", _ENVIRONMENT.copy, _set_environment, _environment_differs),
    Setting("the recursion limit", sys.getrecursionlimit, _set_recursion_limit),
    Setting("numpy's handling of errors", np.geterr, lambda kinds: np.seterr(**kinds)),
    Setting("filters of warnings", lambda: list(warnings.filters), _set_filters, _filters_differ),
    Setting("signal handlers", _handlers, _set_handlers),
    Setting(
        "the signal mask",
        lambda: signal.pthread_sigmask(signal.SIG_BLOCK, ()),
        lambda mask: signal.pthread_sigmask(signal.SIG_SETMASK, mask),
    ),
    Setting("an alarm clock", _has_timer, _set_timer),
    Setting("the default timeout of sockets", socket.getdefaulttimeout, socket.setdefaulttimeout),
    Setting("levels and handlers of logging", _log_levels, _set_log_levels),
    Setting("garbage collection", gc.isenabled, _set_collecting),
    Setting("hooks for exceptions", _hooks, _set_hooks),
    Setting("the interval between threads", sys.getswitchinterval, sys.setswitchinterval),
]
"""All settings that are guarded, in the order in which they are put back."""
