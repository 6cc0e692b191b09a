"""Workers that are forked: they see the present of their learner, tell their end, and outlive the server."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from league.agents.learner.workers.forked_workers import CAN_FORK, SERVER, WORKER, _become
from league.envs.workers.forks import GONE, ForkedProcess, ForkRequest

pytestmark = [
    pytest.mark.skipif(not CAN_FORK, reason="workers are forked on Linux alone"),
    pytest.mark.xdist_group("forked workers"),
]


class Worker:
    """A forked worker that has not got its setup yet, and our ends of its sockets."""

    def __init__(self) -> None:
        self.ours, theirs = socket.socketpair()
        self.lifeline, watched = socket.socketpair()
        with theirs, watched:
            files = (theirs.fileno(), watched.fileno())
            self.process = SERVER.fork(files, os.environ, stages=False)

    def __enter__(self) -> ForkedProcess:
        return self.process

    def __exit__(self, *_: Any) -> None:
        self.process.kill()
        self.ours.close()
        self.lifeline.close()


def test_a_worker_has_the_environment_the_folder_and_the_path_of_now(tmp_path: Path) -> None:
    asked = ForkRequest([WORKER], {"ALONE": "yes"}, str(tmp_path), (43, 44), path=["/here", "/there"])

    def main(*files: int) -> None:
        found = (dict(os.environ), str(Path.cwd()), tuple(sys.path), tuple(os.read(file, 9) for file in files))
        wanted = (asked.environment, asked.folder, tuple(asked.path), (b"requests", b"lifeline"))
        os._exit(7 if found == wanted else 8)

    pipes = [os.pipe() for _ in asked.numbers]
    for (_, end), text in zip(pipes, (b"requests", b"lifeline"), strict=True):
        os.write(end, text)
    forked = os.fork()
    if forked == 0:
        sys.modules[WORKER.partition(":")[0]] = SimpleNamespace(main=main)  # type: ignore[assignment]
        asked.settle([begin for begin, _ in pipes])
        _become(asked)
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 7
    for pipe in pipes:
        for file in pipe:
            os.close(file)


def test_the_exit_code_of_a_worker_is_known() -> None:
    worker = Worker()
    assert worker.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        worker.process.wait(0.05)
    worker.ours.close()
    assert (worker.process.wait(60.0), worker.process.poll()) == (0, 0)
    worker.process.kill()  # of one that has ended: nothing
    with Worker() as process:
        process.kill()
        assert process.wait(60.0) == -signal.SIGKILL
    lost = Worker()
    lost.lifeline.close()
    assert lost.process.wait(60.0) == 1, "its learner is gone"


def test_a_server_that_is_killed_costs_no_worker_and_the_next_one_starts() -> None:
    with Worker() as old:
        server = SERVER._server._process
        assert server is not None
        server.kill()
        server.wait(60.0)
        assert old.poll() is None
        with pytest.raises(OSError), Worker():
            pass
        with Worker() as young:
            assert young.poll() is None
        old.kill()
        assert old.wait(60.0) == GONE


def test_a_fork_of_the_learner_leaves_the_server_to_it() -> None:
    with Worker():
        assert SERVER.is_running
        copy = os.fork()
        if copy == 0:
            os._exit(1 if SERVER.is_running else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]) == 0
    with Worker() as process:
        assert process.poll() is None
