"""A fork that sleeps leaves what is its parent's, becomes what it is asked for, and ends whatever becomes of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from league.envs.workers.child_endings import wait_for_killed
from league.envs.workers.forks import GONE
from league.envs.workers.sleeping_fork import OwnFork
from tests.league.commands import wait_until
from tests.source_trees import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hosts are forked on Linux alone")

BEGIN = """
import json, os, signal, subprocess, sys, threading, time
import numpy.random
from league.envs.workers.forks import ForkRequest
from league.envs.workers.sleeping_fork import SleepingFork

def become(request):
    said = {"threads": len(os.listdir("/proc/self/task")), "drawn": numpy.random.random(), "group": os.getpgid(0)}
    files = [f"/proc/self/fd/{number}" for number in range(200) if number != 2]
    said["files"] = sorted({os.readlink(file) for file in files if os.path.exists(file)})
    print("a line of the fork", file=sys.stderr)
    os.write(60, json.dumps(said).encode())
    sys.exit(7)

def woken(fork):
    ours, theirs = os.pipe()
    process = fork.wake(ForkRequest(["a", "b"], {**os.environ}, "/", [60]), [theirs])
    os.close(theirs)
    return process, ours

fork = SleepingFork(become)
"""


def program(text: str, **given: object) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    pipe, command = subprocess.PIPE, [sys.executable, "-c", BEGIN + text]
    return subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, text=True, **given)  # type: ignore[call-overload, no-any-return]


def run(text: str) -> list[str]:
    """The lines that a program wrote, which ended well."""
    with program(text) as process:
        try:
            output, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    return output.splitlines()


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


@pytest.fixture
def asleep() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A program with a fork that sleeps, and the fork."""
    text = """
signal.signal(signal.SIGTERM, lambda *_: print("the handler of the parent", flush=True))
with fork.held():
    print(fork.pid, flush=True)
    sys.stdin.readline()
"""
    with program(text, start_new_session=True) as process:
        assert process.stdout is not None
        yield process, int(process.stdout.readline())
        process.kill()


def test_it_becomes_what_it_is_asked_for_without_the_files_and_threads_of_its_parent() -> None:
    lines = run("""
lock, other = open("/proc/self/status"), os.pipe()
over = threading.Event()
def write():
    while not over.is_set():
        sys.stderr.write("a line of a thread\\n")
        sys.stderr.flush()
threading.Thread(target=write, daemon=True).start()
threading.Thread(target=lambda: sys.stdin.read(), daemon=True).start()
with fork.held():
    asleep = fork.pid
    process, ours = woken(fork)
    assert process.pid == asleep and fork.pid == 0 and fork.wake(None, ()) is None
    said = json.loads(os.read(ours, 1000))
    assert process.wait(30) == process.poll() == 7
    over.set()
assert said["threads"] == 1
assert said["group"] == asleep, "Ctrl-C does not reach it"
assert said["drawn"] != numpy.random.random()
print(*said["files"], sep="\\n")
""")
    assert [line.split(":")[0] for line in lines] == ["/dev/null", "pipe"], "the one that came with the request"


def test_no_reader_of_a_pipe_waits_for_it() -> None:
    run("""
ours, theirs = os.pipe()
with fork.held():
    os.close(theirs)
    assert os.read(ours, 1) == b""
""")


def test_the_output_of_its_parent_ends_with_that(asleep: tuple[subprocess.Popen[str], int]) -> None:
    process, _ = asleep
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    assert process.wait(60) == 0
    assert process.stdout.read() == ""


def test_it_ends_with_its_killed_parent(asleep: tuple[subprocess.Popen[str], int]) -> None:
    process, pid = asleep
    process.kill()
    wait_until(lambda: is_gone(pid), "its end")


def test_a_signal_to_the_group_of_its_parent_does_not_reach_it(asleep: tuple[subprocess.Popen[str], int]) -> None:
    process, pid = asleep
    assert process.stdout is not None
    os.killpg(process.pid, signal.SIGTERM)
    assert process.stdout.readline() == "the handler of the parent\n"
    assert not is_gone(pid)


def test_a_signal_to_it_runs_no_handler_of_its_parent(asleep: tuple[subprocess.Popen[str], int]) -> None:
    process, pid = asleep
    os.kill(pid, signal.SIGTERM)
    wait_until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z", "its end")
    assert process.communicate("\n", timeout=60) == ("", "")
    assert process.returncode == 0


def test_one_that_was_killed_is_not_woken() -> None:
    run("""
with fork.held():
    os.kill(fork.pid, signal.SIGKILL)
    os.waitid(os.P_PID, fork.pid, os.WEXITED | os.WNOWAIT)
    assert woken(fork)[0] is None
""")


def test_one_that_nobody_wakes_is_collected() -> None:
    run("""
with fork.held():
    pid = fork.pid
assert not os.path.exists(f"/proc/{pid}")
fork.close()
""")


def test_one_that_somebody_else_has_collected_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass
    fork = OwnFork(process.pid)
    fork.kill()
    assert fork.poll() == GONE
    assert wait_for_killed(fork)
