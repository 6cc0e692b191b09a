"""Processes forked from a server that has imported what they need, so that they start at once and share its memory.

A server has one thread and no GPU: a fork copies neither threads nor the state of a driver. It ends when its owner's
end of a socket closes, however the owner ends. What it has forked lives on, unless its program says otherwise.

Each request has a connection of its own: its length, its JSON and its files go to the server. The forked process
answers with its id and a handle; once it has ended, the server adds the exit code. Nothing comes if nothing was forked.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from league.envs.workers.child_endings import Killed, wait_for_killed

LENGTH_BYTES = 4
"""Of the number before a request."""

FIRST_FILE = 64
"""Number of the first socket of a server that was a fork of its owner: above the files that this had open."""

MAX_FILES = 32
"""Most files of a request."""

REQUEST_S = 10.0
"""Longest wait for a request to be whole; its sender has it ready."""

START_S = 300.0
"""Longest wait for a forked process, the imports of the server before it included."""

GONE = -int(signal.SIGKILL)
"""Exit code of a process whose server is gone, so that nobody knows better."""


@dataclass(frozen=True)
class ForkRequest:
    """A process to fork.

    Fields:
      words: of its program, as `sys.argv`. environment: all of it. folder: to work in, where that exists.
      numbers: of the files that come with the request, in the process.
      imports: names that the server loads before it forks. path: as `sys.path`; empty for the server's.
    """

    words: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    numbers: Sequence[int]
    imports: Sequence[str] = ()
    path: Sequence[str] = ()

    def settle(self, files: Sequence[int]) -> None:
        """Give this forked process what belongs to the request, which came with these files."""
        spare = [fcntl.fcntl(file, fcntl.F_DUPFD, max((*self.numbers, *files)) + 1) for file in files]
        for file in files:
            os.close(file)
        for number, file in zip(self.numbers, spare, strict=True):
            os.dup2(file, number)
            os.close(file)
        os.environ.clear()
        os.environ.update(self.environment)
        with contextlib.suppress(OSError):
            os.chdir(self.folder)
        sys.argv[:] = self.words
        sys.path[:] = self.path or sys.path


class ForkedProcess:
    """A forked process: as much of `subprocess.Popen` as its users need.

    Args:
      server: a new connection to a server, which this object owns. files: descriptors that go with the request.
    Raises:
      OSError: there is none in time.
    """

    def __init__(self, server: socket.socket, request: ForkRequest, files: Sequence[int]) -> None:
        self.returncode: int | None = None
        self._server, self._lock = server, threading.Lock()
        weakref.finalize(self, server.close)
        server.settimeout(START_S)
        send_request(server, request, files)
        first, handles, _, _ = socket.recv_fds(server, 1, 1)
        if not first:
            raise ConnectionResetError("the server of forked processes has ended, or has no room for one more")
        self.pid = int(first + self._line())
        self._handle = handles[0] if handles else None
        for handle in handles:
            weakref.finalize(self, os.close, handle)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with self._lock:
            if self.returncode is None and self._is_over(0.0):
                try:
                    self.returncode = int(self._line())
                except (OSError, ValueError):
                    self.returncode = GONE
                self._server.close()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, waited for so many seconds.

        Raises:
          subprocess.TimeoutExpired: it still runs.
        """
        if self.returncode is None:
            self._is_over(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["a forked process"], timeout or 0.0)
        return code

    def kill(self) -> None:
        """End it; nothing where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, signal.SIGKILL)
            elif self.poll() is None:
                os.kill(self.pid, signal.SIGKILL)

    def _is_over(self, timeout_s: float | None) -> bool:
        ends = select.poll()
        ends.register(self._server if self._handle is None else self._handle, select.POLLIN)
        return bool(ends.poll(None if timeout_s is None else 1000.0 * timeout_s))

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n") and (byte := self._server.recv(1)):
            line += byte
        return line


class ServerProcess(Killed, Protocol):
    """As much of `subprocess.Popen` as the owner of a server needs."""

    def poll(self) -> int | None: ...
    def kill(self) -> None: ...


class ForkServer:
    """A server in the hands of its owner. Its program calls `run_server`.

    Args:
      module: the program. words: more of its command. options: of the interpreter.
      address: of a socket by which other processes ask, in a folder closed to strangers; None for the owner alone.
    """

    def __init__(self, module: str, *words: str, options: Sequence[str] = (), address: Path | None = None) -> None:
        self._command = (*options, "-m", module), words
        self._address = address
        self._listener: socket.socket | None = None
        self._door: socket.socket | None = None
        self._process: ServerProcess | None = None

    @property
    def is_running(self) -> bool:
        """True if it has started and not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def has_started(self) -> bool:
        """True until it is closed, also where it has ended by itself."""
        return self._process is not None

    def listen(self) -> None:
        """Let requests come to its address, which wait until the server has started and imported everything."""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._address))
        self._listener.listen()

    def start(
        self,
        environment: Mapping[str, str],
        *,
        folder: Path | None = None,
        stdout: int | None = None,
        wake: Callable[[ForkRequest, Sequence[int]], ServerProcess | None] = lambda *_: None,
    ) -> None:
        """Start it, in a session of its own; it takes over the socket that listens.

        Args:
          environment: all of it. folder: to work in. stdout: as of `Popen`.
          wake: hands a request and its files to a fork that becomes the server; None where there is none.
        """
        self._door, theirs = socket.socketpair()
        sockets = [theirs] if self._listener is None else [theirs, self._listener]
        files = [one.fileno() for one in sockets]
        before, after = self._command
        numbers = range(FIRST_FILE, FIRST_FILE + len(files))
        words = [before[-1], ",".join(map(str, numbers)), *after]
        try:
            self._process = wake(ForkRequest(words, environment, str(folder or Path.cwd()), [*numbers]), files)
            if self._process is not None:
                return
            self._process = subprocess.Popen(
                [sys.executable, *before, ",".join(map(str, files)), *after],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                cwd=folder,
                env=environment,
                pass_fds=files,
                start_new_session=True,
            )
        finally:
            for one in sockets:
                one.close()

    def connect(self) -> socket.socket:
        """A connection for one request.

        Raises:
          OSError: the server has ended.
        """
        if self._door is None:
            raise ConnectionResetError("there is no server of forked processes")
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self._door, [b"\n"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        return ours

    def close(self) -> None:
        """End it; may be called twice."""
        process, self._process = self._process, None
        for one in (self._listener, self._door):
            if one is not None:
                one.close()
        self._listener = self._door = None
        if process is not None:
            process.kill()
            wait_for_killed(process)

    def forget(self) -> None:
        """In a fork of this process: leave the server to the process that started it."""
        self._process = None
        self.close()


@contextlib.contextmanager
def shared_imports() -> Iterator[None]:
    """Keep what is imported inside out of searches for garbage, which in a forked process would copy all of it."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()  # with its garbage, which is little: to look for it takes 0.2 s of a command's start
        gc.enable()


def run_server(become: Callable[[ForkRequest], None], *, load: Callable[[str], object]) -> None:
    """Serve until the owner is gone; in a forked process become what was asked for.

    The first argument of the program has the numbers of its sockets: the owner's, and one that listens.

    Args:
      load: imports what a request names, once.
    """
    doors = [socket.socket(fileno=int(number)) for number in sys.argv[1].split(",")]
    become_asked(_serve(doors, load), become)


def become_asked(asked: tuple[ForkRequest, list[int]] | None, become: Callable[[ForkRequest], None]) -> None:
    """In a forked process become what was asked for."""
    if asked is not None:
        request, files = asked
        request.settle(files)
        if "numpy.random" in sys.modules:  # `random` does so by itself
            sys.modules["numpy.random"].seed()
        become(request)


def send_request(connection: socket.socket, request: ForkRequest, files: Sequence[int]) -> None:
    """Raises OSError where nobody reads it."""
    text = json.dumps(asdict(request)).encode()
    socket.send_fds(connection, [len(text).to_bytes(LENGTH_BYTES, "big")], files)
    connection.sendall(text)


def _serve(doors: Sequence[socket.socket], load: Callable[[str], object]) -> tuple[ForkRequest, list[int]] | None:
    """In a forked process its request and files; None in the server, once the owner is gone."""
    running: dict[int, socket.socket] = {}
    loaded: set[str] = set()
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno())
    while True:
        ready = select.select([*doors, woken], [], [])[0]
        if woken in ready:
            woken.recv(1 << 10)
            _tell_ends(running)
        for door in doors:
            if door not in ready:
                continue
            asker = door.accept()[0] if door is not doors[0] else _passed(door)
            if asker is None:
                return None
            asked = read_request(asker)
            if asked is None:
                asker.close()
                continue
            if not loaded.issuperset(asked[0].imports):
                with shared_imports():
                    for name in asked[0].imports:
                        load(name)
                loaded.update(asked[0].imports)
            if _forked(asker, asked[1], running):
                for one in (*doors, woken, wakes, *running.values()):
                    one.close()
                return asked


def _forked(asker: socket.socket, files: Sequence[int], running: dict[int, socket.socket]) -> bool:
    """True in the forked process, which has answered; false in the server, which knows it as one that runs."""
    pid = fork_process()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        with asker:
            _answer(asker)
        return True
    if pid > 0:
        running[pid] = asker
    else:
        asker.close()
    for file in files:
        os.close(file)
    return False


def _tell_ends(running: dict[int, socket.socket]) -> None:
    """Collect the processes that have ended, and tell their exit codes to whoever still listens."""
    for pid in list(running):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            with running.pop(pid) as asker, contextlib.suppress(OSError):
                asker.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))


def _passed(door: socket.socket) -> socket.socket | None:
    """A connection from the owner; None once that is gone."""
    _, files, _, _ = socket.recv_fds(door, 1, 1)
    return socket.socket(fileno=files[0]) if files else None


def read_request(asker: socket.socket) -> tuple[ForkRequest, list[int]] | None:
    """None where it breaks off."""
    asker.settimeout(REQUEST_S)
    files: list[int] = []
    try:
        head, files, _, _ = socket.recv_fds(asker, LENGTH_BYTES, MAX_FILES)
        left, parts = int.from_bytes(head, "big"), []
        while left and (part := asker.recv(min(left, 1 << 16))):
            parts.append(part)
            left -= len(part)
        return ForkRequest(**json.loads(b"".join(parts))), files
    except (OSError, TypeError, ValueError):
        for file in files:
            os.close(file)
        return None


def fork_process() -> int:
    """As `os.fork`, but -1 where the system has no room for a process; the asker hears nothing."""
    try:
        return os.fork()
    except OSError:
        return -1


def _answer(asker: socket.socket) -> None:
    """Tell the id of this process, with a handle where the system has them; whoever asked may have ended."""
    handles: list[int] = []
    with contextlib.suppress(AttributeError, OSError):
        handles = [os.pidfd_open(os.getpid())]
    with contextlib.suppress(OSError):
        socket.send_fds(asker, [b"%d\n" % os.getpid()], handles)
    for handle in handles:
        os.close(handle)
