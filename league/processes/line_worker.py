"""A child process that is spoken to in lines: started, sent lines, asked for its lines, and ended with its group."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence

from league.processes.child_process import end_process, end_with_parent

MAX_LINE_BYTES = 1 << 20
MAX_LAST_WORDS = 200


class LineWorkerFailed(Exception):  # noqa: N818 - what happened to one process
    """A process does not answer as it should; the message says how, without its name."""


class LineWorker:
    """A process in a session of its own, so that a Ctrl-C at the terminal does not reach it.

    Args:
      command: the program and its arguments. environment: set beside the present one.
      ends_with_parent: whether the kernel kills it when this process dies; else it sees its input close.
      max_line_bytes: of its longest line.
    Raises:
      LineWorkerFailed: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        ends_with_parent: bool = False,
        max_line_bytes: int = MAX_LINE_BYTES,
    ) -> None:
        self._max_line_bytes = max_line_bytes
        self._unread = self._errors = b""
        self._is_open = True
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
                preexec_fn=end_with_parent if ends_with_parent else None,  # noqa: PLW1509  it calls the kernel alone
            )
        except OSError as error:
            raise LineWorkerFailed(f"cannot be started: {error.strerror}") from error
        self._reader = threading.Thread(target=self._keep_errors, name="errors of a process", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """True if it is over, by itself or by `end`."""
        return self._process.poll() is not None

    def last_words(self) -> str:
        """The last line that it wrote to standard error, cut; empty where it wrote none."""
        if self.has_ended:
            self._reader.join(0.1)  # what it wrote as it ended is on its way
        lines = self._errors.decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[-MAX_LAST_WORDS:]

    def send(self, line: bytes) -> None:
        """Write a line.

        Raises:
          LineWorkerFailed: it no longer reads.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line + b"\n")
            self._process.stdin.flush()
        except (OSError, ValueError) as error:  # ValueError: its input was closed before
            raise LineWorkerFailed("has ended") from error

    def lines(self) -> list[bytes]:
        """The lines that are there; returns at once.

        Raises:
          LineWorkerFailed: a line is longer than any answer.
        """
        while self._read(0.0):
            pass
        *lines, self._unread = self._unread.split(b"\n")
        return lines

    def line(self, *, deadline: float) -> bytes:
        """The next line, waited for. deadline: in seconds of the monotonic clock.

        Raises:
          LineWorkerFailed: there is none in time, it has ended, or the line is longer than any answer.
        """
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not self._read(left):
                raise LineWorkerFailed("did not answer in time" if self._is_open else "has ended")
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def finish(self, *, grace_s: float) -> bool:
        """Close its input, which asks it to end, and wait; returns True if it did in time."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(grace_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def end(self) -> None:
        """Kill it with all that it started; may be called twice. What it wrote before cannot be read after that."""
        if self._process.stdout is not None and not self._process.stdout.closed:
            end_process(self._process)

    def _read(self, wait_s: float) -> bool:
        """Take what it has written; returns False where nothing came in time, or nothing can come."""
        stream = self._process.stdout
        assert stream is not None
        if stream.closed or not self._is_open or not select.select([stream], [], [], wait_s)[0]:
            return False
        part = os.read(stream.fileno(), 1 << 16)
        self._is_open = bool(part)
        self._unread += part
        if len(self._unread.rpartition(b"\n")[2]) > self._max_line_bytes:
            raise LineWorkerFailed("answers without end")
        return self._is_open

    def _keep_errors(self) -> None:
        """Read its errors to their end, so that it never waits for room, and keep the last of them."""
        assert self._process.stderr is not None
        with self._process.stderr as stream:
            while part := os.read(stream.fileno(), 1 << 16):
                self._errors = (self._errors + part)[-4 * MAX_LAST_WORDS :]
