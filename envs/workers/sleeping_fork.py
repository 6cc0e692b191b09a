"""A fork of a process that sleeps until it is asked once, and becomes what was asked for: a server of `forks`, for one.

A command makes it once it has imported what the two are to share, and before it plays a game. Until it is asked it has
of the command's files only standard error, and answers no signal of its terminal. It ends with the command.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NoReturn

from league.envs.workers.child_endings import wait_for_killed
from league.envs.workers.forks import (
    GONE,
    REQUEST_S,
    ForkRequest,
    become_asked,
    fork_process,
    read_request,
    send_request,
)

POLL_S = 0.01
"""Between two looks at a fork that is to end."""

STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Wait while a fork is made: in it they must not run the handlers of its parent."""

STDOUT, STDERR = 1, 2


class OwnFork:
    """A fork of this very process: as much of `subprocess.Popen` as a server's owner needs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None:
            try:
                ended, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:  # somebody else has collected it
                self.returncode = GONE
            else:
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
      become: its program, once it is asked. without: a module that this imports itself; where it is imported already,
        there is no fork.
    """

    def __init__(self, become: Callable[[ForkRequest], None], *, without: str = "") -> None:
        self._become, self._without = become, without
        self._door: socket.socket | None = None
        self._process: OwnFork | None = None

    @property
    def pid(self) -> int:
        """Its process id while it sleeps; 0 where there is none."""
        return 0 if self._process is None else self._process.pid

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """There is one inside, on Linux; elsewhere what was imported may have started threads."""
        if sys.platform == "linux" and self._without not in sys.modules:
            self._start()
        try:
            yield
        finally:
            self.close()

    def wake(self, request: ForkRequest, files: Sequence[int]) -> OwnFork | None:
        """The fork, which becomes what is asked for and is the caller's; None where none sleeps any more."""
        door, process = self._door, self._process
        if door is None or process is None or process.poll() is not None:
            return None
        door.settimeout(REQUEST_S)
        try:
            send_request(door, request, files)
        except OSError:  # it has just ended
            return None
        self._process = None
        self.close()
        return process

    def close(self) -> None:
        """End one that still sleeps; may be called twice."""
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
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        try:
            pid = fork_process()
            if pid == 0:
                _run_to_the_end(lambda: self._sleep(theirs, mask))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        theirs.close()
        self._process = OwnFork(pid) if pid > 0 else None

    def _sleep(self, door: socket.socket, mask: Iterable[int]) -> None:
        """In the fork: leave what is its parent's, wait for a request or the parent's end."""
        os.setsid()
        _leave_files(door.fileno(), STDERR)
        _leave_handlers()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        with door:
            select.select([door], [], [])
            asked = read_request(door)
        become_asked(asked, self._become)


def _leave_files(*kept: int) -> None:
    """Let no pipe, lock or socket of the parent stay open here; its objects keep their numbers, which lead nowhere."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    taken = {number for file in Path("/proc/self/fd").iterdir() if _is_open(number := int(file.name))}
    for number in {*taken, STDOUT, STDERR} - ({*kept} & taken):
        os.dup2(nowhere, number)
    # of those that are here a thread of the parent may hold the locks
    sys.stdout, sys.stderr = (os.fdopen(number, "w", 1, closefd=False) for number in (STDOUT, STDERR))


def _is_open(number: int) -> bool:
    try:
        return bool(os.fstat(number))
    except OSError:
        return False


def _leave_handlers() -> None:
    """Let signals mean what they mean in a program that has just started."""
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


def _run_to_the_end(run: Callable[[], None]) -> NoReturn:
    """In a fork of this process: run, without what the parent does in the end."""
    code: object = 1
    try:
        try:
            atexit._clear()
            run()
            code = 0
        except SystemExit as end:
            code = end.code
        except Exception:  # boundary: of this process
            traceback.print_exc()
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else int(code is not None))
