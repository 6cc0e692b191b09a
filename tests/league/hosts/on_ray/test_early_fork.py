"""A command's early fork: made before there is anything that a fork would break, it becomes the server of hosts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from league.store.lock import start_ticks
from tests.league.commands import wait_until
from tests.source_trees import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="hosts are forked on Linux alone"),
    pytest.mark.xdist_group("ray"),
]

BEGIN = """
import os, subprocess, sys
from pathlib import Path
import torch
from league.hosts.on_ray import worker_request
from league.hosts.on_ray.fork_server import HostForks, early_fork
torch.before_the_fork = True
folder, host = Path(sys.argv[1]), sys.argv[2]
with early_fork.held():
    asleep = early_fork.pid
    server = HostForks(folder)
    environment = {**os.environ, **server.listen(), worker_request.SETUP_WORKER: "", worker_request.RAYLET: "1"}
"""
START = """
    server.start(os.getpid())
    process = server._server._process
    subprocess.run([sys.executable, worker_request.__file__, host], env=environment, check=True)
    while not Path(host + ".said").exists():
        pass
    print(process.pid == asleep, Path(f"/proc/{process.pid}/cmdline").read_text().replace(chr(0), " "), flush=True)
"""
HOST = """
import pathlib, sys, threading, torch
said = f"{hasattr(torch, 'before_the_fork')} {threading.active_count()}"
pathlib.Path(__file__ + ".new").write_text(said)
pathlib.Path(__file__ + ".new").rename(__file__ + ".said")
"""
COMMAND = """
import os, sys, threading
from league.envs.workers import sleeping_fork
from league.hosts.on_ray.fork_server import early_fork
fork_process = sleeping_fork.fork_process

def fork():
    import torch
    print("torch" if torch.cuda.is_initialized() else "", len(os.listdir("/proc/self/task")), flush=True)
    print(*sorted(thread.name for thread in threading.enumerate()), sep=",", flush=True)
    return fork_process()

def run(daemon):
    print("asleep in training:", early_fork.pid, flush=True)
    os._exit(0)

sleeping_fork.fork_process = fork
from league.cli.main import main
from league.run.daemon import Daemon
Daemon.run = run
sys.argv = ["league", "train", "tic_tac_toe", "--env-steps", "100", "--run-dir", sys.argv[1]]
main()
"""


def run(text: str, *arguments: object, code: int = 0) -> str:
    """What a program writes, that ends with this code."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", text, *map(str, arguments)]
    ended = subprocess.run(command, check=False, env=environment, stdout=subprocess.PIPE, text=True, timeout=240)
    assert ended.returncode == code
    return ended.stdout


@pytest.fixture
def host(tmp_path: Path) -> Path:
    path = tmp_path / "host.py"
    path.write_text(HOST)
    return path


def test_a_server_forked_early_shares_what_its_owner_had_imported(tmp_path: Path, host: Path) -> None:
    is_fork, words = run(BEGIN + START, tmp_path, host).split(maxsplit=1)
    assert is_fork == "True"
    assert words.split()[:2] == ["league.hosts.on_ray.fork_server", f"--folder={tmp_path}/"], "as the reaper looks for"
    assert Path(f"{host}.said").read_text() == "True 1"


def test_where_the_fork_has_died_a_server_starts_by_itself(tmp_path: Path, host: Path) -> None:
    killed = "    os.kill(asleep, 9)\n    os.waitid(os.P_PID, asleep, os.WEXITED | os.WNOWAIT)"
    assert run(BEGIN + killed + START, tmp_path, host).split()[0] == "False"
    assert Path(f"{host}.said").read_text() == "False 1"


def test_where_ray_was_imported_before_a_server_starts_by_itself(tmp_path: Path, host: Path) -> None:
    """Its hosts would not find the Ray that starts later."""
    assert run("import ray" + BEGIN + START, tmp_path, host).split()[0] == "False"


def test_it_ends_with_a_killed_daemon(tmp_path: Path, host: Path) -> None:
    end = "    print(process.pid, flush=True)\n    os.kill(os.getpid(), 9)"
    server = int(run(BEGIN + START + end, tmp_path, host, code=-9).split()[-1])
    wait_until(lambda: not start_ticks(server), "its end")


def test_a_command_forks_before_it_has_pools_of_threads_and_needs_no_fork_in_one_process(tmp_path: Path) -> None:
    tasks, names, asleep = run(COMMAND, tmp_path / "run").splitlines()[:3]
    assert (tasks.strip(), names) == ("3", "MainThread,calls,first output"), "two that hold nothing hosts need"
    assert asleep == "asleep in training: 0"
