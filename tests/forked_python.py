"""Python programs for tests, forked from one process that has imported what they import.

A command's imports take four to five seconds of a core, most of them torch's; forked, it begins at once. In all else
the program is as if started by itself: its own session, folder, environment, files, signals, seeds and way to its end.
What differs: it is no child of the process that asks for it, and /proc shows the environment and words of the server.
A server imports when it is first asked, and ends with the process that has made it.
"""

from __future__ import annotations

import os
import random
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

from league.envs.workers.forks import ForkedProcess, ForkRequest, ForkServer, run_server

ROOT = Path(__file__).parent.parent
ADDRESS = "TESTS_FORKED_PYTHON"
"""Variable with the path of the server's socket: the processes of one run of tests share one server."""
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
        server = ForkServer(__name__, address=Path(folder.name, kind))
        server.listen()
        server.start({**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}, folder=ROOT)
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
        request = ForkRequest(args, dict(env), str(cwd), list(numbers), PRELOADED[self._kind])
        try:
            self._server.connect(f"{os.environ[ADDRESS]}/{self._kind}")
            self._forked = ForkedProcess(self._server, request, files)
            self.pid = self._forked.pid
            self._child_created = True
        finally:
            self._close_pipe_fds(from_us, to_us, out_read, out_write, err_read, err_write)  # type: ignore[attr-defined]

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        """The exit code, None while it runs."""
        self.returncode = self._forked.poll()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        self.returncode = self._forked.wait(timeout)
        return self.returncode


def look_briefly() -> None:
    """Let new runs play their game at random for as long as those of the least budget do, in all of this process.

    Two seconds of a core, as runs of large budgets take, would be minutes in all tests.
    """
    from league.config.auto import measure

    measure.MAX_PLAY_S, measure.MAX_LOAD_S = measure.MIN_PLAY_S, LOAD_S


def _become(request: ForkRequest) -> None:
    """Make this forked process one that has just been started, and run its program."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    buffering = 1 if request.environment.get("PYTHONUNBUFFERED") else -1
    sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115 - as long as the process
    sys.stdout = sys.__stdout__ = open(1, "w", buffering, closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = ["-c", *request.words[1:]]
    paths = request.environment.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = ["", *(path for path in paths if path and path not in sys.path)]
    random.seed()
    np.random.seed()
    if "torch" in sys.modules:
        look_briefly()
        sys.modules["torch"].seed()
    program = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(request.words[0], "<string>", "exec"), program.__dict__)


if __name__ == "__main__":
    run_server(_become, load=__import__)
