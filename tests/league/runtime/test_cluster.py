"""Joining a Ray and ending one of our own; the process that ends what a killed daemon leaves."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from league.errors import RayUnreachable
from league.runtime.cluster import Cluster
from league.runtime.reaper import descendants
from league.store.lock import start_ticks
from tests.league.commands import ROOT, wait_until

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

DAEMON = """
import subprocess, sys, time
from pathlib import Path
from league.runtime.reaper import Reaper
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
    assert time.monotonic() - start < 10.0
    cluster.close()


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
        wait_until(lambda: start_ticks(orphan) == 0 and not folder.exists(), "the end of what was left", deadline_s=20)
    finally:
        daemon.kill()
        daemon.communicate()


def _reaper_has_looked(daemon: int, orphan: int) -> bool:
    """The reaper takes its first look when its first wait of half a second is over; two waits are surely enough."""
    reapers = [pid for pid in descendants(daemon) if pid != orphan]
    if not reapers:
        return False
    ticks = int(Path("/proc/uptime").read_text().split(".")[0]) * os.sysconf("SC_CLK_TCK")
    return ticks - start_ticks(reapers[0]) > 3 * os.sysconf("SC_CLK_TCK")
