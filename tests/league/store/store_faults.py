"""Hooks that do at the n-th fault point what a dying process or a broken disk would do."""

from __future__ import annotations

import errno
import os


class Died(BaseException):
    """Stands for the end of the process: no handler of ours may catch it."""


class Recorder:
    """Writes down the fault points that are passed."""

    def __init__(self) -> None:
        self.passed: list[str] = []

    def __call__(self, point: str) -> None:
        self.passed.append(point)


class DieAt:
    """Ends the process (as far as a test can) at the n-th fault point, counted from 0."""

    def __init__(self, index: int) -> None:
        self._left = index

    def __call__(self, point: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise Died(point)


class FailAt:
    """Raises an OSError at the n-th fault point, once."""

    def __init__(self, index: int, code: int = errno.ENOSPC) -> None:
        self._left = index
        self._code = code

    def __call__(self, point: str) -> None:
        self._left -= 1
        if self._left == -1:
            raise OSError(self._code, os.strerror(self._code))


class FailAtPoint:
    """Raises an OSError at the n-th pass of one fault point, once."""

    def __init__(self, point: str, code: int = errno.ENOSPC, *, index: int = 0) -> None:
        self._fail = FailAt(index, code)
        self._point = point

    def __call__(self, point: str) -> None:
        if point == self._point:
            self._fail(point)
