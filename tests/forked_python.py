"""Python programs for tests, forked from one process that has imported what they import.

A command's imports take four to five seconds of a core, most of them torch's; forked, it begins at once. In all else
the program is as if started by itself: its own session, folder, environment, files, signals, seeds and way to its end.
What differs: it is no child of the process that asks for it, and /proc shows the environment and words of the server.
A server imports when it is first asked, and ends with the process that has made it.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
ADDRESS = "TESTS_FORKED_PYTHON"
"""Variable with the path of the server's socket: the processes of one run of tests share one server."""
LENGTH_BYTES = 8
LOAD_S = 0.05
"""Seconds for which runs of tests look for other programs on the machine."""
COMMAND = "from league.cli.main import main; main()"
PRELOADED = {
    "commands": ("league.cli.main", "league.run.launch", "league.run.session", "league.judge.pools.run"),
    "games": ("league.envs.workers.child", "tests.envs.crash_games"),
}
"""Kind of a server -> what its programs import: those with games have no torch, whose memory would be theirs."""

_held: list[object] = []
"""The folder of the sockets and the servers, which last as long as this process."""


def start_servers() -> None:
    """Start the servers for this process and those that it starts from now on; nothing where there are some."""
    if ADDRESS in os.environ:
        return
    folder = tempfile.TemporaryDirectory(prefix="league-forks-")
    _held.append(folder)
    for kind in PRELOADED:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{folder.name}/{kind}")
            listener.listen()
            server = subprocess.Popen(
                [sys.executable, "-m", __name__, str(listener.fileno()), kind],
                cwd=ROOT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,  # it ends when this closes, however this process ends
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )
        _held.append(server)
    os.environ[ADDRESS] = folder.name


class ForkedPython(subprocess.Popen[str]):
    """A program of Python, as `Popen` of `[sys.executable, "-c", code, *arguments]` in a session of its own.

    Args:
      code: runs as `__main__`. env: all of its environment. kind: of the server.
      files: `stdin`, `stdout`, `stderr` and `pass_fds` as of `Popen`.
    """

    def __init__(
        self,
        code: str,
        *arguments: str,
        env: Mapping[str, str],
        cwd: Path = ROOT,
        kind: str = "commands",
        **files: Any,
    ) -> None:
        start_servers()
        self._kind = kind
        self._server = socket.socket(socket.AF_UNIX)
        super().__init__([code, *arguments], cwd=cwd, env=env, text=True, start_new_session=True, **files)

    def _execute_child(self, args: Any, *given: Any) -> None:  # type: ignore[override]
        """Let the server fork; the pipes are made by `Popen`."""
        _, _, _, passed, cwd, env, _, _, _, from_us, to_us, out_read, out_write, err_read, err_write, *_ = given
        numbers = {0: from_us, 1: out_write, 2: err_write, **{file: file for file in passed}}
        files = [number if file == -1 else file for number, file in numbers.items()]
        plain = {"words": args, "folder": str(cwd), "environment": dict(env), "numbers": list(numbers)}
        request = json.dumps(plain).encode()
        try:
            self._server.connect(f"{os.environ[ADDRESS]}/{self._kind}")
            socket.send_fds(self._server, [len(request).to_bytes(LENGTH_BYTES, "big")], files)
            self._server.sendall(request)
            self.pid = int(self._line())
            self._child_created = True
        finally:
            self._close_pipe_fds(from_us, to_us, out_read, out_write, err_read, err_write)  # type: ignore[attr-defined]

    def _line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            more = self._server.recv(1)
            if not more:
                raise RuntimeError("the server of forked programs has ended")
            line += more
        return line.decode()

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        """The exit code, None while it runs."""
        if self.returncode is None and select.select([self._server], [], [], 0.0)[0]:
            self._reap()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self.returncode is None:
            if not select.select([self._server], [], [], timeout)[0]:
                assert timeout is not None
                raise subprocess.TimeoutExpired(self.args, timeout)
            self._reap()
        assert self.returncode is not None
        return self.returncode

    def _reap(self) -> None:
        self.returncode = int(self._line())
        self._server.close()


def look_briefly() -> None:
    """Let new runs play their game at random for as long as those of the least budget do, in all of this process.

    Two seconds of a core, as runs of large budgets take, would be minutes in all tests.
    """
    from league.config.auto import measure

    measure.MAX_PLAY_S, measure.MAX_LOAD_S = measure.MIN_PLAY_S, LOAD_S


def _served(listener: socket.socket, kind: str) -> tuple[dict[str, Any], list[int]]:
    """Fork a process for every request, until standard input closes; returns its request and files in each of them."""
    running: dict[int, socket.socket] = {}
    woken, wakes = socket.socketpair()
    wakes.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno())
    while True:
        ready, _, _ = select.select([listener, woken, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(0)
        if woken in ready:
            woken.recv(1 << 10)
            for pid in list(running):
                ended, status = os.waitpid(pid, os.WNOHANG)
                if ended:
                    with running.pop(pid) as asker, contextlib.suppress(OSError):
                        asker.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        if listener in ready:
            asker, _ = listener.accept()
            head, files, _, _ = socket.recv_fds(asker, LENGTH_BYTES, 32)
            request = json.loads(asker.recv(int.from_bytes(head, "big"), socket.MSG_WAITALL))
            _import(kind)
            pid = os.fork()
            if pid == 0:
                os.setsid()
                asker.sendall(b"%d\n" % os.getpid())
                signal.set_wakeup_fd(-1)
                for one in (listener, woken, wakes, asker, *running.values()):
                    one.close()
                return request, files
            running[pid] = asker
            for file in files:
                os.close(file)


def _import(kind: str) -> None:
    """Import what the programs do, once; what was made stays out of every search for garbage."""
    if PRELOADED[kind][-1] in sys.modules:
        return
    gc.disable()
    for name in PRELOADED[kind]:
        __import__(name)
    if kind == "commands":
        look_briefly()
    gc.collect()
    gc.freeze()
    gc.enable()


def _become(request: dict[str, Any], files: list[int]) -> None:
    """Make this forked process one that has just been started."""
    for number in (signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    spare = [fcntl.fcntl(file, fcntl.F_DUPFD, 1000) for file in files]  # beyond all numbers that are asked for
    for file in files:
        os.close(file)
    for number, file in zip(request["numbers"], spare, strict=True):
        os.dup2(file, number)
        os.close(file)
    buffering = 1 if request["environment"].get("PYTHONUNBUFFERED") else -1
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115 - as long as the process
    sys.stdout = sys.__stdout__ = open(1, "w", buffering, closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv = ["-c", *request["words"][1:]]
    paths = request["environment"].get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = ["", *(path for path in paths if path and path not in sys.path)]
    random.seed()
    np.random.seed()
    if "torch" in sys.modules:
        sys.modules["torch"].seed()


def main() -> None:
    """Serve; in a forked process run its program. Arguments: the number of the listening socket; the kind."""
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        request, files = _served(listener, sys.argv[2])
    _become(request, files)
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(request["words"][0], "<string>", "exec"), program.__dict__)


if __name__ == "__main__":
    main()
