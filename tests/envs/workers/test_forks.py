"""Servers of forked processes: one protocol, whatever they fork, and their ends."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy.random
import pytest

from league.envs.workers.forks import GONE, ForkedProcess, ForkRequest, ForkServer, run_server
from tests.source_trees import ROOT, name_of, sources

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="handles of processes are of Linux alone")

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
OWNER = f"""
import os, sys
from tests.envs.workers.test_forks import *
server = ForkServer({__name__!r})
server.start(ENVIRONMENT)
ours, theirs = os.pipe()
print(server._process.pid, forked(server, "wait", theirs).pid, flush=True)
input()
"""


def become(request: ForkRequest) -> None:
    """The program of what is forked here: it writes its modules, or waits for a signal."""
    if request.words == ["modules"]:
        os.write(request.numbers[0], b"wave" if "wave" in sys.modules else b"")
        sys.exit(7)
    if request.words == ["draw"]:
        os.write(request.numbers[0], numpy.random.bytes(8))
        sys.exit(0)
    signal.pause()


def forked(server: ForkServer, word: str, *files: int, imports: tuple[str, ...] = ()) -> ForkedProcess:
    request = ForkRequest([word], ENVIRONMENT, str(ROOT), [60 + file for file in files], imports)
    return ForkedProcess(server.connect(), request, files)


@pytest.fixture
def server() -> Iterator[ForkServer]:
    """One that only its owner asks."""
    server = ForkServer(__name__)
    server.start(ENVIRONMENT)
    yield server
    server.close()
    server.close()


def is_over(pid: int) -> bool:
    """Gone, or a zombie that nobody has collected yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_process_has_its_files_at_their_numbers_and_what_was_asked_to_be_imported(server: ForkServer) -> None:
    for imports, expected in (((), b""), (("wave",), b"wave"), ((), b"wave")):
        ours, theirs = os.pipe()
        process = forked(server, "modules", theirs, imports=imports)
        os.close(theirs)
        with os.fdopen(ours, "rb") as said:
            assert said.read() == expected
        assert (process.wait(60.0), process.poll()) == (7, 7)


def test_what_numpy_draws_at_random_in_one_fork_is_not_what_it_draws_in_another(server: ForkServer) -> None:
    ours, theirs = os.pipe()
    for _ in range(2):
        assert forked(server, "draw", theirs).wait(60.0) == 0
    first, second = os.read(ours, 8), os.read(ours, 8)
    os.close(ours)
    os.close(theirs)
    assert first != second


def test_a_server_in_a_fork_knows_the_ends_of_several(server: ForkServer) -> None:
    first, second = (forked(server, "wait") for _ in range(2))
    with pytest.raises(subprocess.TimeoutExpired):
        first.wait(0.05)
    second.kill()
    assert second.wait(60.0) == -signal.SIGKILL
    assert first.poll() is None and server.is_running
    os.kill(first.pid, signal.SIGTERM)
    assert first.wait(60.0) == -signal.SIGTERM
    first.kill()  # of one that has ended: nothing


def test_a_request_that_breaks_off_costs_nothing_but_itself(server: ForkServer) -> None:
    for sent in (b"", b"\0\0\0\7{", b"\0\0\0\1{", b"\0\0\0\2{}", b"\0\0\0\0017"):
        with server.connect() as asker:
            asker.sendall(sent)
    process = forked(server, "wait")
    process.kill()
    assert process.wait(60.0) == -signal.SIGKILL


def test_a_process_outlives_a_killed_server_and_its_end_is_seen(server: ForkServer) -> None:
    process = forked(server, "wait")
    assert server._process is not None
    server._process.kill()
    server._process.wait(60.0)
    assert not server.is_running and server.has_started
    with pytest.raises(OSError):
        forked(server, "wait")
    assert process.poll() is None
    process.kill()
    assert process.wait(60.0) == GONE


def test_a_server_ends_with_its_killed_owner_and_what_it_has_forked_does_not() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as owner:
        assert owner.stdout is not None
        server, process = map(int, owner.stdout.readline().split())
        owner.kill()
    wait_until(lambda: is_over(server))
    assert not is_over(process)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: is_over(process))


def test_who_asks_an_address_is_served_as_the_owner_is(tmp_path: Path) -> None:
    server = ForkServer(__name__, address=tmp_path / "server")
    server.listen()
    server.start(ENVIRONMENT)
    asker = socket.socket(socket.AF_UNIX)
    asker.connect(str(tmp_path / "server"))
    process = ForkedProcess(asker, ForkRequest(["wait"], ENVIRONMENT, str(ROOT), ()), ())
    process.kill()
    assert process.wait(60.0) == -signal.SIGKILL
    server.close()


def test_a_fork_of_the_owner_leaves_the_server_to_it(server: ForkServer) -> None:
    copy = os.fork()
    if copy == 0:
        server.forget()
        server.close()
        os._exit(0)
    os.waitpid(copy, 0)
    assert server.is_running


def test_processes_are_forked_in_one_file() -> None:
    forks = [name_of(path) for path in sources() if re.search(r"\bos\.fork\(", path.read_text())]
    assert forks == ["envs/workers/forks.py"]


if __name__ == "__main__":
    run_server(become, load=__import__)
