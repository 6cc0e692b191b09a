"""Joining a Ray and ending one of our own; the process that ends what a killed daemon leaves."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from league.errors import RayHeadLost, RayUnguarded, RayUnreachable
from league.hosts.on_ray.cluster import LOCAL_ENVIRONMENT, Cluster, _to_the_log, demands_token
from league.operate.chaos.faults import helper_of
from league.operate.chaos.leftovers import command_line
from league.operate.chaos.plan import FORK_SERVER
from league.operate.chaos.plan import HEAD as HEAD_OF_RAY
from league.processes.reaper import Reaper, descendants
from league.store.lock import start_ticks
from tests.league.commands import ROOT, wait_until

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

DAEMON = """
import subprocess, sys, time
from pathlib import Path
from league.processes.reaper import Reaper
folder = Path(sys.argv[1])
folder.mkdir()
(folder / "socket").touch()
reaper = Reaper(folder)
reaper.start()
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid, flush=True)
command = input()
if command == "close":
    reaper.close()
    reaper.close()
    print("closed", flush=True)
    input()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_an_address_where_nobody_listens_is_refused_quickly() -> None:
    cluster = Cluster(f"127.0.0.1:{free_port()}", num_hosts=1, object_store_mb=80)
    start = time.monotonic()
    with pytest.raises(RayUnreachable, match="Connection refused"):
        cluster.start()
    assert time.monotonic() - start < 30.0
    cluster.close()


def test_a_client_without_its_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(RayUnreachable, match=r'pip install "ray\[client\]"'):
            Cluster(address, num_hosts=1, object_store_mb=80).start()


def test_what_ray_says_of_its_machines_is_one_line_of_the_log(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level("INFO", logger="league.hosts.on_ray.cluster")
    _to_the_log({"lines": ["Raylet is terminated.\n    [state-dump] many lines"], "is_err": False}, ignore_prefix=False)
    _to_the_log({"lines": []}, ignore_prefix=False)
    assert caplog.messages == ["Ray: Raylet is terminated."]
    assert capsys.readouterr().out == ""


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(RayUnreachable, match="nowhere:x"):
        Cluster("nowhere:x", num_hosts=1, object_store_mb=80).start()


def test_our_own_ray_lies_in_a_short_folder_of_its_own() -> None:
    one, two = (Cluster("local", num_hosts=1, object_store_mb=80) for _ in range(2))
    assert one.folder is not None
    assert one.folder != two.folder
    assert len(str(one.folder)) < 40
    assert not one.folder.exists()
    one.close()


def listening(pids: set[int]) -> dict[str, int]:
    """Address (hex, as the kernel writes it) and port -> process, of every socket on which one of these listens."""
    sockets: dict[str, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for link in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    sockets[str(link.readlink())] = pid
    found: dict[str, int] = {}
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in sockets:
                found[fields[1]] = sockets[f"socket:[{fields[9]}]"]
    return found


def test_every_process_of_our_own_ray_listens_on_loopback_alone(ray_cluster: Cluster) -> None:
    pids = {os.getpid(), *descendants(os.getpid())}
    found = listening(pids)
    assert len(set(found.values())) >= 3, "the driver, gcs_server and raylet at least"
    loopback = ("0100007F:", "0000000000000000FFFF00000100007F:", "00000000000000000000000001000000:")
    assert [address for address in found if not address.startswith(loopback)] == []


def test_our_own_ray_starts_no_process_that_a_run_does_not_need(ray_cluster: Cluster) -> None:
    running = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())]
    assert any(b"gcs_server" in command for command in running)
    assert not [command for command in running if b"monitor.py" in command or b"dashboard.py" in command]
    words = [command.split(b"\0") for command in running]
    agents = [
        command
        for command in words
        if any(word.endswith((b"dashboard/agent.py", b"agent/main.py")) for word in command)
    ]
    assert len(agents) == 2
    assert all(b"on_ray/idle_agent.py" in command[3] for command in agents), "Ray's own take 50 MiB each"


def test_chaos_finds_the_helpers_of_our_own_ray(ray_cluster: Cluster) -> None:
    commands = {target: command_line(helper_of(os.getpid(), target)) for target in (HEAD_OF_RAY, FORK_SERVER)}
    assert Path(commands[HEAD_OF_RAY].split()[0]).name == "gcs_server"
    assert f"--folder={ray_cluster.folder}/" in commands[FORK_SERVER]


def test_nobody_else_can_enter_the_folder_of_our_own_ray(ray_cluster: Cluster) -> None:
    assert ray_cluster.folder is not None
    assert ray_cluster.folder.stat().st_mode & 0o777 == 0o700
    assert sorted(path.name for path in ray_cluster.folder.iterdir()) == ["fork", "r"]
    sockets = list(ray_cluster.folder.glob("r/session_*/sockets/*"))
    assert sockets and max(len(str(path)) for path in sockets) < 108


INTERRUPTED = """
import os, signal, threading
from league.hosts.on_ray.cluster import Cluster

heard, has_started = [], threading.Event()
signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
handler = signal.getsignal(signal.SIGTERM)

def send():
    while not has_started.wait(0.01):
        os.kill(os.getpid(), signal.SIGTERM)

cluster = Cluster("local", num_hosts=1, object_store_mb=80)
sender = threading.Thread(target=send)
sender.start()
cluster.start()
has_started.set()
sender.join()
assert len(heard) > 10 and signal.getsignal(signal.SIGTERM) is handler
heard.clear()
os.kill(os.getpid(), signal.SIGTERM)
assert heard == [signal.SIGTERM]
cluster.close()
assert not cluster.folder.exists()
"""


def test_signals_that_come_while_ray_starts_are_ours() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


HEAD = """
import ray, sys
ray.init(address="local", num_cpus=1, include_dashboard=False, object_store_memory=80 << 20, log_to_driver=False,
         logging_level="CRITICAL", _temp_dir=sys.argv[1])
print(ray.get_runtime_context().gcs_address, flush=True)
input()
"""


def test_a_cluster_that_demands_no_token_is_refused_unless_allowed(ray_cluster: Cluster, tmp_path: Path) -> None:
    import ray

    assert demands_token(ray.get_runtime_context().gcs_address)
    folder = tempfile.mkdtemp(prefix="lg-")
    head = subprocess.Popen(
        [sys.executable, "-c", HEAD, f"{folder}/r"],
        env={**os.environ, **LOCAL_ENVIRONMENT, "RAY_AUTH_MODE": "disabled"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert head.stdout is not None
        address = head.stdout.readline().strip()
        with pytest.raises(RayUnguarded, match=f"{address} asks for no token.*runtime.allow_tokenless=true"):
            Cluster(address, num_hosts=1, object_store_mb=80).start()
    finally:
        head.communicate("\n", timeout=60)
        shutil.rmtree(folder)


@pytest.mark.parametrize("end", ["kill", "close"])
def test_what_a_daemon_leaves_is_ended_however_it_ends(end: str, tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert daemon.stdout is not None
    assert daemon.stdin is not None
    try:
        orphan = int(daemon.stdout.readline())
        wait_until(lambda: orphan in descendants(daemon.pid), "the child")
        if end == "kill":
            wait_until(lambda: _reaper_has_looked(daemon.pid, orphan), "a look at the daemon's processes")
            os.kill(daemon.pid, signal.SIGKILL)
        else:
            daemon.stdin.write("close\n")
            daemon.stdin.flush()
            assert daemon.stdout.readline() == "closed\n"
            assert start_ticks(orphan) == 0
        wait_until(lambda: start_ticks(orphan) == 0 and not folder.exists(), "the end of what was left", deadline_s=60)
    finally:
        daemon.kill()
        daemon.communicate()


def test_a_process_of_the_folder_that_no_look_saw_is_ended_and_a_reader_of_its_logs_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "ray"
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    unseen = subprocess.Popen([*sleep, f"--log-dir={folder}/logs"])
    reader = subprocess.Popen([*sleep, f"{folder}/logs/raylet.out"])
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(folder)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        daemon.communicate("close\n\n", timeout=60)
        assert unseen.wait(timeout=60) == -signal.SIGKILL
        assert reader.poll() is None
    finally:
        for process in (unseen, reader, daemon):
            process.kill()
            process.wait()


def test_what_ran_before_the_reaper_is_somebody_elses_with_all_below_it() -> None:
    sleep = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
    parent = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", parent, *sleep], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        below = int(other.stdout.readline())
        reaper = Reaper(None)
        reaper.start()
        with subprocess.Popen(sleep) as child:
            reaper.close()
            assert child.wait(timeout=60) == -signal.SIGKILL
        assert other.poll() is None
        assert start_ticks(below)
        os.kill(below, signal.SIGKILL)
        other.communicate(b"\n", timeout=60)


def _reaper_has_looked(daemon: int, orphan: int) -> bool:
    """The reaper takes its first look when its first wait of half a second is over; two waits are surely enough."""
    reapers = [pid for pid in descendants(daemon) if pid != orphan]
    if not reapers:
        return False
    ticks = int(Path("/proc/uptime").read_text().split(".")[0]) * os.sysconf("SC_CLK_TCK")
    return ticks - start_ticks(reapers[0]) > 3 * os.sysconf("SC_CLK_TCK")


def test_a_dead_control_store_is_reported_once_and_hosts_can_be_asked_after_that() -> None:
    cluster = Cluster("local", num_hosts=1, object_store_mb=80)
    with subprocess.Popen(["sleep", "60"]) as head:
        cluster._head = head
        assert cluster.check_head()
        head.kill()
        head.wait()
        with pytest.raises(RayHeadLost, match="league resume"):
            cluster.check_head()
        assert not cluster.check_head() and not cluster.has_head
