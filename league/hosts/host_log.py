"""The log of one process of a run, RUN/logs/NAME.log: warnings and tracebacks, capped, kept after the run."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Callable, Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import ParamSpec, TypeVar

MAX_BYTES = 1 << 20
NUM_KEPT = 1
"""Older files beside the newest one: a log takes 2 MiB at most."""

FORMAT = "%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

logger = logging.getLogger(__name__)


class _Log(RotatingFileHandler):
    """A log file that a full disk cuts off, and no more: what failed first is what the process reports."""

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  the name is logging's
        """Leave the record out."""

    def close(self) -> None:
        """Close the file, also where its last lines find no room."""
        with contextlib.suppress(OSError):
            super().close()


def open_log(folder: str | Path, name: str) -> logging.Handler | None:
    """Write what this process logs to `folder/name.log` as well; None where there is no such folder or no way to write.

    A host on another machine may not see the run's folder; it works without a log then.
    """
    if not folder or not Path(folder).is_dir():
        return None
    try:
        handler = _Log(Path(folder) / f"{name}.log", maxBytes=MAX_BYTES, backupCount=NUM_KEPT, encoding="utf-8")
    except OSError:
        return None
    handler.setFormatter(logging.Formatter(FORMAT))
    handler.setLevel(logging.INFO)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(min(root.level, logging.INFO) if root.level else logging.INFO)
    return handler


@contextlib.contextmanager
def logged_to(folder: str | Path, name: str) -> Iterator[None]:
    """`open_log` for as long as the block takes; what ends the block is in the log with its traceback."""
    root = logging.getLogger()
    level, had_handlers = root.level, bool(root.handlers)
    handler = open_log(folder, name)
    if handler is not None and logging.lastResort is not None and not had_handlers:
        root.addHandler(logging.lastResort)  # a handler of ours must not keep warnings from the terminal
    try:
        yield
    except BaseException:
        if handler is not None:
            _keep_off_the_terminal(root)  # whoever catches it says there what a user should read
            logger.exception("%s ended by an error", name)
        raise
    finally:
        root.setLevel(level)
        if handler is not None:
            root.removeHandler(handler)
            handler.close()
        if not had_handlers:
            _keep_off_the_terminal(root)


def _keep_off_the_terminal(root: logging.Logger) -> None:
    if logging.lastResort is not None:
        root.removeHandler(logging.lastResort)


def logs_its_errors(function: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """The same function; what it raises is logged with its traceback first.

    `ray.method` goes below this one: Ray reads its marks from the innermost function.
    """

    @functools.wraps(function)
    def called(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        try:
            return function(*args, **kwargs)
        except Exception:  # boundary: a task of a host, whose caller sees the last line alone
            logger.exception("%s failed", function.__qualname__)
            raise

    return called
