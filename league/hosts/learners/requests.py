"""A request to the thread that all learners live on: a function to call there, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

Answer = TypeVar("Answer")


class Request(Generic[Answer]):
    """A call that another thread makes. call: it, without arguments."""

    def __init__(self, call: Callable[[], Answer]) -> None:
        self._call = call
        self._answer: Future[Answer] = Future()

    def result(self, timeout_s: float) -> Answer:
        """Wait for the answer; raises as the call, or TimeoutError: what has not begun then is not done."""
        try:
            return self._answer.result(timeout=timeout_s)
        finally:
            self._answer.cancel()  # nothing where it has an answer, or is being carried out

    def carry_out(self) -> None:
        """Make the call, unless whoever asked has given it up."""
        if not self._answer.set_running_or_notify_cancel():
            return
        try:
            self._answer.set_result(self._call())
        except Exception as error:  # the boundary of the learners' thread: raised again in the caller's
            self._answer.set_exception(error)

    def refuse(self, error: Exception) -> None:
        """Answer with an error instead of the call."""
        if self._answer.set_running_or_notify_cancel():
            self._answer.set_exception(error)
