"""A program in a process group of its own, spoken to in lines, with a deadline on every answer."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Sequence

from league.envs.workers.child_endings import wait_for_killed
from league.judge.contenders.engine import EngineFailed
from league.processes.child_process import end_group, end_with_parent

MAX_ANSWER_BYTES = 1 << 20


class LineProcess:
    """A program that reads and writes lines.

    Args:
      command: the program and its arguments.
    Raises:
      EngineFailed: it cannot be started.
    """

    def __init__(self, command: Sequence[str]) -> None:
        try:
            self._process = subprocess.Popen(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
                preexec_fn=end_with_parent,  # noqa: PLW1509  it calls the kernel alone
            )
        except OSError as error:
            raise EngineFailed(f"cannot be started: {error.strerror}") from error
        self._read = b""

    def send(self, line: str) -> None:
        """Write a line.

        Raises:
          EngineFailed: it no longer reads.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(line.encode() + b"\n")
        except OSError as error:
            raise EngineFailed("has ended") from error

    def line(self, *, deadline: float) -> str:
        """The next line. deadline: in seconds of the monotonic clock.

        Raises:
          EngineFailed: there is none in time, it has ended, or the line is longer than any answer.
        """
        assert self._process.stdout is not None
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._process.stdout], [], [], left)[0]:
                raise EngineFailed("did not answer in time")
            part = os.read(self._process.stdout.fileno(), 1 << 16)
            if not part:
                raise EngineFailed("has ended")
            self._read += part
            if len(self._read) > MAX_ANSWER_BYTES:
                raise EngineFailed("answers without end")
        line, _, self._read = self._read.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    def close(self) -> None:
        """End the program and every process of its group; may be called twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        if self._process.returncode is None:
            end_group(self._process.pid)
            wait_for_killed(self._process)
