"""A fork of a process that sleeps until it is asked once, and becomes what was asked for: a server of `forks`, for one.

A command makes it before it has threads and games. The two share what was imported until then.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator

from league.envs.workers.child_endings import wait_for_killed
from league.envs.workers.forks import ForkRequest, answer, become_asked, fork_process, passed, read_request

POLL_S = 0.01
"""Between two looks at a fork that is to end."""


class OwnFork:
    """A fork of this very process: as much of `subprocess.Popen` as a server's owner needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None:
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if ended else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code. Raises subprocess.TimeoutExpired: it still runs after so many seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if deadline is not None and time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(["a fork"], timeout or 0.0)
            time.sleep(POLL_S)
        return code

    def kill(self) -> None:
        """End it; nothing where it has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


class SleepingFork:
    """A fork in the hands of this process.

    Args:
      become: its program, once it is asked.
    """

    def __init__(self, become: Callable[[ForkRequest], None]) -> None:
        self._become = become
        self._door: socket.socket | None = None
        self._process: OwnFork | None = None

    @property
    def pid(self) -> int:
        """Its process id, also once it was asked; 0 where there is none."""
        return 0 if self._process is None else self._process.pid

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """There is one inside, on Linux; elsewhere what was imported may have started threads."""
        if sys.platform == "linux":
            self._start()
        try:
            yield
        finally:
            self.close()

    def connect(self) -> socket.socket | None:
        """The connection for its one request; None where there is no fork, or it was asked already."""
        door, self._door = self._door, None
        if door is None:
            return None
        ours, theirs = socket.socketpair()
        with door, theirs:
            try:
                socket.send_fds(door, [b"\n"], [theirs.fileno()])
            except OSError:
                ours.close()
                return None
        return ours

    def close(self) -> None:
        """End it; may be called twice."""
        process, self._process = self._process, None
        door, self._door = self._door, None
        if door is not None:
            door.close()
        if process is not None:
            process.kill()
            wait_for_killed(process)

    def _start(self) -> None:
        self._door, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        pid = fork_process()
        if pid:
            theirs.close()
            self._process = OwnFork(pid) if pid > 0 else None
            return
        self._door.close()
        _run_to_the_end(lambda: become_asked(_asked_once(theirs), self._become))


def _asked_once(door: socket.socket) -> tuple[ForkRequest, list[int]] | None:
    """The one request to a fork that sleeps, which has answered it; None once its owner is gone."""
    with door:
        asker = passed(door)
    if asker is None:
        return None
    with asker:
        asked = read_request(asker)
        if asked is not None:
            answer(asker)
    return asked


def _run_to_the_end(run: Callable[[], None]) -> None:
    """In a fork of this process: run, in a session of its own and without what its parent does in the end."""
    atexit._clear()
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(nowhere, number)
    os.close(nowhere)
    code: object = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
    finally:
        if sys.exc_info()[0] is not None:
            traceback.print_exc()
            code = 1
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))
