"""Workers that are forked: they see the present of their learner, tell their end, and outlive the server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from league.agents.learner.workers.forked_workers import CAN_FORK, GONE, ForkedProcess, ForkServer
from tests.league.commands import wait_until

pytestmark = [
    pytest.mark.skipif(not CAN_FORK, reason="workers are forked on Linux alone"),
    pytest.mark.xdist_group("forked workers"),
]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    made = ForkServer()
    yield made
    made.close()


class Worker:
    """A forked worker that has not got its setup yet, and our ends of its sockets."""

    def __init__(self, server: ForkServer, **environment: str) -> None:
        self.ours, theirs = socket.socketpair()
        self.lifeline, watched = socket.socketpair()
        with theirs, watched:
            files = (theirs.fileno(), watched.fileno())
            self.process = server.fork(files, {**os.environ, **environment}, stages=False)

    def __enter__(self) -> ForkedProcess:
        return self.process

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.ours.close()
        self.lifeline.close()


def test_a_worker_has_the_environment_and_the_folder_of_now(
    server: ForkServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Worker(server):
        pass
    monkeypatch.chdir(tmp_path)
    with Worker(server, OF_THIS_TEST="yes") as process:
        here = Path(f"/proc/{process.pid}")
        wait_until(lambda: os.getsid(process.pid) == process.pid, "a session of its own")
        wait_until(lambda: (here / "cwd").resolve() == tmp_path, "the folder")


def test_the_end_of_a_worker_is_told(server: ForkServer) -> None:
    worker = Worker(server)
    assert worker.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(0.05)
    worker.ours.close()
    assert (worker.process.wait(60.0), worker.process.poll()) == (0, 0)
    worker.process.kill()  # of one that has ended: nothing
    with Worker(server) as process:
        process.kill()
        assert process.wait(60.0) == -signal.SIGKILL
    lost = Worker(server)
    lost.lifeline.close()
    assert lost.process.wait(60.0) == 1, "its learner is gone"


def test_a_server_that_is_killed_costs_no_worker_and_the_next_one_starts(server: ForkServer) -> None:
    with Worker(server) as old:
        assert server._process is not None
        server._process.kill()
        server._process.wait(60.0)
        assert old.poll() is None
        with pytest.raises(OSError), Worker(server):
            pass
        with Worker(server) as young:
            assert young.poll() is None
        old.kill()
        assert old.wait(60.0) == GONE
