"""Worker processes forked from one that has imported everything: the imports of a stage take ten seconds of a core.

The server is a child of the learner with one thread, without a GPU: a fork copies neither threads nor the state of a
driver. It ends when the learner's end of its socket closes. What it has forked is its child, so that it tells the exit
codes; it does not end with it. One server serves all groups of a process, also those that follow lost ones.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from league.envs.guard.settings import working_folder
from league.envs.plugins import load
from league.envs.workers.child_endings import wait_for_killed

CAN_FORK = sys.platform == "linux" and hasattr(os, "pidfd_open")
MAX_REQUEST_BYTES = 1 << 17
START_S = 300.0
"""Longest wait for a forked process, the imports of the server before it included."""

WORKER = "league.agents.learner.workers.worker_process:main"
STAGES = "league.agents.learner.pipeline.torch_pipeline:TorchPipelineBackend"
"""Imported before the first fork of a worker, and of one with stages."""

GONE = -int(signal.SIGKILL)
"""Exit code of a process whose server is gone, so that nobody knows better."""


class ForkedProcess:
    """A forked process: as much of `subprocess.Popen` as a worker group needs.

    Args:
      handle: file descriptor of the process, which it owns. exit_code: tells it once the process has ended.
    """

    def __init__(self, pid: int, handle: int, exit_code: Callable[[], int]) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._handle, self._exit_code = handle, exit_code
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, handle)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        if self.returncode is None and self._is_over(0.0):
            with self._lock:
                if self.returncode is None:
                    self.returncode = self._exit_code()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, waited for so many seconds.

        Raises:
          subprocess.TimeoutExpired: it still runs.
        """
        self._is_over(timeout)
        code = self.poll()
        if code is None:
            raise subprocess.TimeoutExpired(["a forked worker"], timeout or 0.0)
        return code

    def kill(self) -> None:
        """End it; nothing where it has ended."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, signal.SIGKILL)

    def _is_over(self, timeout_s: float | None) -> bool:
        ends = select.poll()
        ends.register(self._handle, select.POLLIN)
        return bool(ends.poll(None if timeout_s is None else 1000.0 * timeout_s))


class WorkerForks:
    """The learner's end of the server, which starts with the first process that is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """True if there is a server: it has imported what its first process needs."""
        return self._process is not None and self._process.poll() is None

    def fork(self, files: Sequence[int], environment: Mapping[str, str], *, stages: bool) -> ForkedProcess:
        """A process that serves as a worker.

        Args:
          files: descriptors of its connection and its lifeline. environment: of the process.
          stages: True if it holds stages of a pipeline.
        Raises:
          OSError: there is none in time.
        """
        request = {
            "environment": dict(environment),
            "folder": str(working_folder()),
            "path": sys.path,
            "names": [WORKER, STAGES] if stages else [WORKER],
        }
        with self._lock:
            try:
                answer, handles = self._ask(request, files)
            except OSError:
                self.close()
                raise
            pid, server = answer["pid"], self._process
        return ForkedProcess(pid, handles[0], lambda: self._exit_code(pid, server))

    def _exit_code(self, pid: int, server: object) -> int:
        """The exit code of a process that has ended, as its server tells it once."""
        with self._lock:
            if server is not self._process:
                return GONE
            try:
                return int(self._ask({"ended": pid}, ())[0]["code"])
            except OSError:
                self.close()
                return GONE

    def close(self) -> None:
        """End the server, and nothing that it has forked; the next process starts another."""
        if self._asked is not None and self._process is not None:
            self._asked.close()
            self._process.kill()
            wait_for_killed(self._process)
        self._asked = self._process = None

    def forget(self) -> None:
        """In a fork of this process: leave the server to the process that started it."""
        if self._asked is not None:
            self._asked.close()
        self._lock, self._asked, self._process = threading.Lock(), None, None

    def _ask(self, request: Mapping[str, Any], files: Sequence[int]) -> tuple[dict[str, Any], list[int]]:
        if self._asked is None:
            self._asked, self._process = _started()
        socket.send_fds(self._asked, [json.dumps(request).encode()], files)
        answer, handles, _, _ = socket.recv_fds(self._asked, MAX_REQUEST_BYTES, 1)
        if not answer:
            raise ConnectionResetError("the server of forked workers has ended")
        return json.loads(answer), handles


SERVER = WorkerForks()
os.register_at_fork(after_in_child=SERVER.forget)


def _started() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """The learner's end of a socket to a new server, and its process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.settimeout(START_S)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", __name__, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
        )
    return ours, process


@dataclass(frozen=True)
class _Fork:
    """In a forked process: what it was asked to be."""

    request: Mapping[str, Any]
    files: Sequence[int]

    def become(self) -> None:
        """Serve as a worker; never returns."""
        try:
            os.setsid()
            os.environ.clear()
            os.environ.update(self.request["environment"])
            sys.path[:] = self.request["path"]
            with contextlib.suppress(OSError):
                os.chdir(self.request["folder"])
            load(WORKER)(*self.files)
        except Exception:  # a process boundary: what is below this is the server
            traceback.print_exc()
        finally:
            os._exit(1)


def _serve(asked: socket.socket) -> _Fork | None:
    """Answer until the other end closes; in a forked process what was asked of it, None in the server."""
    while True:
        message, files, _, _ = socket.recv_fds(asked, MAX_REQUEST_BYTES, 2)
        if not message:
            return None
        request = json.loads(message)
        if "ended" in request:
            code = os.waitstatus_to_exitcode(os.waitpid(request["ended"], 0)[1])
            asked.send(json.dumps({"code": code}).encode())
            continue
        _import(request["names"])
        pid = os.fork()
        if pid == 0:
            asked.close()
            return _Fork(request, files)
        handle = os.pidfd_open(pid)
        socket.send_fds(asked, [json.dumps({"pid": pid}).encode()], [handle])
        for file in (handle, *files):
            os.close(file)


def _import(names: Sequence[str]) -> None:
    """Import once what is not there yet, and take it out of searches for garbage, which would copy what is shared."""
    if not sys.modules.keys() >= {name.partition(":")[0] for name in names}:
        gc.disable()
        for name in names:
            load(name)
        gc.collect()
        gc.freeze()
        gc.enable()


def main() -> None:
    """Serve. Argument: the number of the socket."""
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        found = _serve(asked)
    if found is not None:
        found.become()


if __name__ == "__main__":
    main()
