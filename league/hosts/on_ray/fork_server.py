"""Makes the processes of a Ray of our own by forking one that has imported torch, Ray and the hosts.

A host's imports take two seconds of a processor and 170 MiB. Forked from here it starts in a tenth of a second, and
shares what was imported for as long as nobody writes to it. A raylet starts `worker_request` where it would start a
worker; that hands its arguments, environment and files to this server, over a socket in the closed folder of the run.

The server has one thread and never touches a GPU, for a fork copies neither threads nor the state of a driver. It ends
when the daemon's end of its standard input closes. The kernel ends what it has forked with it: hosts without it would
not be below the daemon, where their processor time counts. The next ones are started as Ray starts them.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from league.envs.workers.child_endings import wait_for_killed
from league.hosts.on_ray.worker_request import ADDRESS, LENGTH_BYTES, RAYLET
from league.processes.child_process import end_with_parent

ANY_JOB = "ffffffff"
"""Ray's id of the job of a worker that learns it with its first task."""

OOM_SCORE = "1000"
"""As Ray marks its workers: where memory runs out, the kernel ends these before the daemon."""

REQUEST_S = 10.0
"""Longest wait for a request to be whole; its sender has it ready."""


class ForkServer:
    """The daemon's end of the server. What it has forked ends with it.

    Args:
      folder: closed to others; the socket lies in it.
    """

    def __init__(self, folder: Path) -> None:
        self._address = folder / "fork"
        self._listener: socket.socket | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def listen(self) -> dict[str, str]:
        """Let requests come, which wait until the server has started and imported everything.

        Returns:
          the environment that tells `worker_request` where the server is.
        """
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._address))
        self._listener.listen()
        return {ADDRESS: str(self._address)}

    def start(self, raylet: int) -> None:
        """Start the server, which takes over the socket.

        Args:
          raylet: its process. Ray reads that, as it is imported, from the environment of a worker.
        """
        assert self._listener is not None
        with self._listener as listener:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(listener.fileno()), f"--folder={self._address.parent}/"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                env={**os.environ, RAYLET: str(raylet), "RAY_JOB_ID": ANY_JOB},
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

    def close(self) -> None:
        """End the server; may be called twice."""
        if self._listener is not None:
            self._listener.close()
        if self._process is not None:
            self._process.kill()
            wait_for_killed(self._process)
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process = None


@dataclass(frozen=True)
class ForkRequest:
    """A program to become.

    Fields:
      command: path and arguments. folder: to work in. files: standard input, output and error, as open here.
    """

    command: list[str]
    environment: dict[str, str]
    folder: str
    files: list[int]

    def close(self) -> None:
        """Close the files, which the forked process has too."""
        for file in self.files:
            os.close(file)

    def become(self, server: int) -> None:
        """Run the program in this process, to its end or that of the process `server`."""
        end_with_parent()
        if os.getppid() != server:
            return
        os.setpgid(0, 0)  # a raylet ends a worker's whole group with it
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for target, file in enumerate(self.files):
            os.dup2(file, target)
        self.close()
        os.environ.clear()
        os.environ.update(self.environment)
        os.chdir(self.folder)
        with contextlib.suppress(OSError):  # some containers cannot write there
            Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
        sys.argv = self.command
        runpy.run_path(self.command[0], run_name="__main__")


def serve(listener: socket.socket) -> ForkRequest | None:
    """Fork a process for every request, until standard input closes.

    Returns:
      in a forked process its request, None in the server.
    """
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            return None
        asker, _ = listener.accept()
        with asker:
            request = _read(asker)
            if request is None:
                continue
            forked = _fork()
            if forked == 0:
                listener.close()
                return request
            request.close()
            if forked > 0:
                with contextlib.suppress(OSError):  # it has ended meanwhile, and what it asked for runs
                    asker.sendall(b"\n")


def _read(asker: socket.socket) -> ForkRequest | None:
    """None where it breaks off: the raylet will ask again."""
    asker.settimeout(REQUEST_S)
    files: list[int] = []
    try:
        head, files, _, _ = socket.recv_fds(asker, LENGTH_BYTES, 3)
        left, parts = int.from_bytes(head, "big"), []
        while left and (part := asker.recv(left)):
            parts.append(part)
            left -= len(part)
        return ForkRequest(**json.loads(b"".join(parts)), files=files)
    except (OSError, TypeError, ValueError):
        for file in files:
            os.close(file)
        return None


def _fork() -> int:
    """As `os.fork`, but -1 where the system has no room for a process; the asker hears nothing and starts by itself."""
    try:
        return os.fork()
    except OSError:
        return -1


def main() -> None:
    """Import, then serve. Arguments: the number of the listening socket; the folder, by which the reaper knows us."""
    gc.disable()
    import numpy.random  # noqa: F401
    import ray._common.pydantic_compat
    import ray._private.workers.default_worker  # noqa: F401

    import league.hosts.on_ray.host_processes  # noqa: F401

    gc.collect()
    gc.freeze()  # else the first collection in a forked process would write to all that it shares
    gc.enable()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel collects what has ended
    server = os.getpid()
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        request = serve(listener)
    if request is not None:
        request.become(server)


if __name__ == "__main__":
    main()
