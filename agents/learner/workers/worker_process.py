"""The process of a worker: reads requests from one descriptor, and ends when its parent does."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import traceback
from multiprocessing.connection import Connection

from league.agents.learner.workers.build_worker import make_worker
from league.agents.learner.workers.worker import WorkerSetup
from league.agents.learner.workers.worker_group import Failed


def main(descriptor: int, lifeline: int) -> None:
    """Serve until the other end closes or something raises.

    Args:
      descriptor: of the connection for requests; the first message is a `WorkerSetup`.
      lifeline: never carries a byte; its end of file means that the parent is gone.
    """
    shared: list[str] = []
    threading.Thread(target=_end_with_parent, args=(lifeline, shared), daemon=True).start()
    connection = Connection(descriptor)
    try:
        setup: WorkerSetup = connection.recv()
        if setup.folder:
            shared.append(setup.folder)
        worker = make_worker(setup)
        while True:
            request = connection.recv()
            connection.send(worker.handle(request))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        os._exit(0)
    except Exception:  # a process boundary: the learner reports what happened here
        connection.send(Failed(traceback.format_exc(limit=-3).strip()))
        # No return: the destructors of a broken process group may wait for peers that wait for this process.
        os._exit(1)


def _end_with_parent(lifeline: int, shared: list[str]) -> None:
    """End once the parent is gone, and remove the memory that it had shared: nobody else does."""
    os.read(lifeline, 1)
    for folder in shared:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
