"""Worker processes forked from one that has imported everything: the imports of a stage take ten seconds of a core.

The server is a child of the learner. It ends with that, but what it has forked does not end with it. One server serves
all groups of a process, also those that follow lost ones.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence

from league.envs.guard.settings import working_folder
from league.envs.plugins import load
from league.envs.workers.forks import ForkedProcess, ForkRequest, ForkServer, run_server

CAN_FORK = sys.platform == "linux" and hasattr(os, "pidfd_open")

WORKER = "league.agents.learner.workers.worker_process:main"
STAGES = "league.agents.learner.pipeline.torch_pipeline:TorchPipelineBackend"
"""Imported before the first fork of a worker, and of one with stages."""


class WorkerForks:
    """The learner's end of the server, which starts with the first process that is asked for."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._server = ForkServer(__name__)

    @property
    def is_running(self) -> bool:
        """True if there is a server: it has imported what its first process needs."""
        return self._server.is_running

    def fork(self, files: Sequence[int], environment: Mapping[str, str], *, stages: bool) -> ForkedProcess:
        """A process that serves as a worker.

        Args:
          files: descriptors of its connection and its lifeline. environment: of the process.
          stages: True if it holds stages of a pipeline.
        Raises:
          OSError: there is none in time.
        """
        request = ForkRequest(
            words=[WORKER],
            environment=dict(environment),
            folder=str(working_folder()),
            numbers=files,
            imports=[WORKER, STAGES] if stages else [WORKER],
            path=sys.path,
        )
        with self._lock:
            try:
                if not self._server.has_started:
                    path = os.pathsep.join(filter(None, sys.path))
                    self._server.start({**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"})
                return ForkedProcess(self._server.connect(), request, files)
            except OSError:
                self._server.close()
                raise

    def forget(self) -> None:
        """In a fork of this process: leave the server to the process that started it."""
        self._lock = threading.Lock()
        self._server.forget()


SERVER = WorkerForks()
os.register_at_fork(after_in_child=SERVER.forget)


def _become(request: ForkRequest) -> None:
    """Serve as a worker; never returns."""
    try:
        load(WORKER)(*request.numbers)
    except Exception:  # a process boundary: what is below this is the server
        traceback.print_exc()
    finally:
        os._exit(1)


if __name__ == "__main__":
    run_server(_become, load=load)
