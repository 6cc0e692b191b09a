"""The fork server: what it forks is the program that was asked for, with everything imported."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from league.hosts.on_ray import worker_request
from league.hosts.on_ray.cluster import LOCAL_ENVIRONMENT, Cluster
from league.hosts.on_ray.fork_server import HostForks
from league.processes.reaper import descendants
from league.store.lock import start_ticks
from tests.league.commands import wait_until

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="hosts are forked on Linux alone"),
    pytest.mark.xdist_group("ray"),
]

PROGRAM = """
import json, os, sys, threading
import ray
torch = sys.modules["torch"]
print(json.dumps({
    "arguments": sys.argv[1:],
    "folder": os.getcwd(),
    "environment": dict(os.environ),
    "process": os.getpid(),
    "group": os.getpgid(0),
    "parent": os.getppid(),
    "threads": len(os.listdir("/proc/self/task")),
    "is_cuda_initialized": torch.cuda.is_initialized(),
    "id": ray.WorkerID.from_random().hex(),
    "is_imported": "league.hosts.on_ray.host_processes" in sys.modules,
    "files": [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3, 64) if os.path.exists(f"/proc/self/fd/{fd}")],
}), flush=True)
if sys.argv[1:] == ["wait"]:
    sys.stdin.read()
sys.exit("said to standard error")
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of requests to a server."""
    server = HostForks(tmp_path_factory.mktemp("f"))
    environment = server.listen()
    server.start(os.getpid())
    yield environment
    server.close()
    server.close()


def request(
    environment: dict[str, str], *arguments: str, folder: Path, program: str = PROGRAM, **more: Any
) -> subprocess.Popen[str]:
    """A request as a raylet starts it; the forked process writes to its pipes."""
    path = folder / "program.py"
    path.write_text(program)
    options = ["--language=PYTHON", "--serialized-runtime-env-context={}"]
    return subprocess.Popen(
        [sys.executable, worker_request.__file__, str(path), *arguments, *options],
        env={
            **os.environ,
            "ASKED_BY": "a test",
            worker_request.RAYLET: str(os.getpid()),
            worker_request.SETUP_WORKER: "",
            **environment,
            **more,
        },
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_it_forks_the_program_that_was_asked_for(served: dict[str, str], tmp_path: Path) -> None:
    outputs = [request(served, "--a=1", "b c", folder=tmp_path).communicate(timeout=60) for _ in range(2)]
    said = [json.loads(output) for output, _ in outputs]
    for one in said:
        assert one["arguments"] == ["--a=1", "b c"]
        assert one["folder"] == str(tmp_path)
        assert one["environment"]["ASKED_BY"] == "a test"
        assert not {worker_request.ADDRESS, worker_request.SETUP_WORKER} & set(one["environment"])
        assert one["group"] == one["process"], "a raylet ends the whole group of a worker"
        assert one["is_imported"]
        assert one["threads"] == 1, "of a second one a fork would copy the locks alone"
        assert not one["is_cuda_initialized"]
        assert not [link for link in one["files"] if link.startswith("socket:")]
    assert len({one["id"] for one in said}) == 2, "what Ray draws at random is not what another process draws"
    assert all("said to standard error" in errors for _, errors in outputs)


def test_a_request_that_breaks_off_costs_nothing_but_itself(served: dict[str, str], tmp_path: Path) -> None:
    for sent in (b"", b"\0\0\0\7{", b"\0\0\0\1{", b"\0\0\0\2{}", b"\0\0\0\0017"):
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(served[worker_request.ADDRESS])
            asker.sendall(sent)
    output, _ = request(served, folder=tmp_path).communicate(timeout=60)
    assert json.loads(output)["is_imported"]


def test_ray_gives_no_worker_up_that_still_waits_for_a_slow_import() -> None:
    """Its driver would wait forever for one of the first workers that was given up."""
    seconds = int(LOCAL_ENVIRONMENT["RAY_worker_register_timeout_seconds"])
    assert seconds > worker_request.ANSWER_S >= 240.0


def test_without_a_server_a_worker_starts_as_ray_starts_it(tmp_path: Path) -> None:
    setup_worker = tmp_path / "setup_worker.py"
    setup_worker.write_text("import os, sys; print(*sys.argv[1:]); print(sorted(os.environ))")
    gone = {worker_request.ADDRESS: str(tmp_path / "gone"), worker_request.SETUP_WORKER: str(setup_worker)}
    output, errors = request(gone, "--a=1", folder=tmp_path).communicate(timeout=60)
    arguments, names = output.splitlines()
    assert arguments.split()[1:] == ["--a=1", "--language=PYTHON", "--serialized-runtime-env-context={}"]
    assert worker_request.ADDRESS not in names
    assert not errors
    orphan = request({**gone, worker_request.RAYLET: "1"}, folder=tmp_path)
    assert orphan.communicate(timeout=60) == ("", ""), "with its raylet dead it starts nothing"


def test_what_it_has_forked_ends_with_it(tmp_path: Path) -> None:
    server = HostForks(tmp_path)
    environment = server.listen()
    server.start(os.getpid())
    with request(environment, "wait", folder=tmp_path) as asker:
        assert asker.stdout is not None
        forked = json.loads(asker.stdout.readline())["process"]
        asker.wait()
        assert start_ticks(forked)
        server.close()
        wait_until(lambda: not start_ticks(forked), "its end")


DAEMON = """
import os, sys
from pathlib import Path
from league.hosts.on_ray.fork_server import HostForks
server = HostForks(Path(sys.argv[1]))
server.listen()
server.start(os.getpid())
print(server._server._process.pid, flush=True)
input()
"""


def test_it_ends_with_a_killed_daemon(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as daemon:
        assert daemon.stdout is not None
        server = int(daemon.stdout.readline())
        daemon.kill()
    wait_until(lambda: not start_ticks(server), "its end")


def test_the_hosts_of_our_own_ray_are_forked(ray_cluster: Cluster) -> None:
    import ray

    folder = f"--folder={ray_cluster.folder}/".encode()
    servers = [pid for pid in descendants(os.getpid()) if folder in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(servers) == 1

    @ray.remote
    class Host:
        def processes(self) -> tuple[int, int]:
            return os.getpid(), os.getppid()

    host = Host.remote()
    process, parent = ray.get(host.processes.remote(), timeout=60)
    assert parent == servers[0]
    assert Path(f"/proc/{process}/oom_score_adj").read_text().strip() == "1000"
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: process not in descendants(os.getpid()), "its end; the server collects it")
