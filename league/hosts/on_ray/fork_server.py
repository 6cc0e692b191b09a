"""Makes the processes of a Ray of our own by forking one that has imported torch, Ray and the hosts.

A host's imports take two seconds of a processor and 170 MiB. Forked from here it starts in a tenth of a second, and
shares what was imported for as long as nobody writes to it. A raylet starts `worker_request` where it would start a
worker; that hands its arguments, environment and files to this server, over a socket in the closed folder of the run.

The server ends with the daemon. The kernel ends what it has forked with it: hosts without it would not be below the
daemon, where their processor time counts. The next ones are started as Ray starts them.

A command forks its own process early, once that has imported torch. The fork becomes the server: daemon and hosts share
one import of torch.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import subprocess
import sys
from pathlib import Path

from league.envs.plugins import load
from league.envs.workers.forks import ForkRequest, ForkServer, run_server, shared_imports
from league.envs.workers.sleeping_fork import SleepingFork
from league.hosts.on_ray.worker_request import ADDRESS, RAYLET
from league.processes.child_process import end_with_parent

ANY_JOB = "ffffffff"
"""Ray's id of the job of a worker that learns it with its first task."""

OOM_SCORE = "1000"
"""As Ray marks its workers: where memory runs out, the kernel ends these before the daemon."""


def _become_program(request: ForkRequest) -> None:
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder of the command is not where hosts look for code
    main()


early_fork = SleepingFork(_become_program, without="ray")  # that reads the environment as it is imported
"""Of a command, which holds it before it has played a game; it becomes the server of hosts."""


class HostForks:
    """The daemon's end of the server. What it has forked ends with it.

    Args:
      folder: closed to others; the socket lies in it. By its name in the command the reaper knows the server.
    """

    def __init__(self, folder: Path) -> None:
        self._address = folder / "fork"
        self._server = ForkServer(__name__, f"--folder={folder}/", options=["-P"], address=self._address)

    def listen(self) -> dict[str, str]:
        """Let requests come, which wait until the server has started and imported everything.

        Returns:
          the environment that tells `worker_request` where the server is.
        """
        self._server.listen()
        return {ADDRESS: str(self._address)}

    def start(self, raylet: int) -> None:
        """Start the server, which takes over the socket.

        Args:
          raylet: its process. Ray reads that, as it is imported, from the environment of a worker.
        """
        environment = {**os.environ, RAYLET: str(raylet), "RAY_JOB_ID": ANY_JOB}
        self._server.start(environment, stdout=subprocess.DEVNULL, wake=early_fork.wake)

    def close(self) -> None:
        """End the server; may be called twice."""
        self._server.close()


def main() -> None:
    """Serve, and in a forked process run its program to its end or that of the server."""
    with shared_imports():
        import numpy.random  # noqa: F401
        import ray._common.pydantic_compat
        import ray._private.workers.default_worker

        import league.hosts.on_ray.host_processes  # noqa: F401
    ray._raylet.setproctitle(" ".join((__spec__.name, *sys.argv[2:])))  # by it the reaper knows a fork too
    server = os.getpid()

    def become(request: ForkRequest) -> None:
        end_with_parent()
        if os.getppid() != server:
            return
        with contextlib.suppress(OSError):  # some containers cannot write there
            Path("/proc/self/oom_score_adj").write_text(OOM_SCORE)
        runpy.run_path(request.words[0], run_name="__main__")

    run_server(become, load=load)


if __name__ == "__main__":
    main()
