"""The stand-in for a raylet's agents: it notes their ports, and ends with the raylet."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from league.hosts.on_ray import idle_agent
from league.hosts.on_ray.idle_agent import DASHBOARD_PORTS, RUNTIME_ENV_PORT
from league.store.lock import start_ticks
from tests.league.commands import wait_until

NODE = "ab" * 28
RAYLET = """
import os, subprocess, sys
agent = subprocess.Popen([sys.executable, "-I", "-S", *sys.argv[1:]], env={"RAY_RAYLET_PID": str(os.getpid())})
print(agent.pid, flush=True)
input()
"""
"""Starts an agent as a raylet does, says its process id and lives until its input ends."""


def ports(folder: Path) -> dict[str, int]:
    """Name -> port, of the files that are there."""
    return {path.name.removesuffix(f"_{NODE}"): int(path.read_text()) for path in folder.glob(f"*_{NODE}")}


@pytest.mark.parametrize(
    ("agent", "names"), [("dashboard_agent", set(DASHBOARD_PORTS)), ("runtime_env_agent", {RUNTIME_ENV_PORT})]
)
def test_it_notes_the_ports_of_an_agent_and_ends_with_the_raylet(agent: str, names: set[str], tmp_path: Path) -> None:
    command = [idle_agent.__file__, agent, "of/ray.py", f"--node-id={NODE}", f"--session-dir={tmp_path}", "--head"]
    with subprocess.Popen(
        [sys.executable, "-S", "-c", RAYLET, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as raylet:
        assert raylet.stdout is not None
        pid = int(raylet.stdout.readline())
        wait_until(lambda: set(ports(tmp_path)) == names, "the files of its ports")
        for port in ports(tmp_path).values():
            if port > 0:
                with socket.socket() as caller:
                    assert caller.connect_ex(("127.0.0.1", port)) != 0, "nobody serves what it stands in for"
        assert start_ticks(pid)
        raylet.kill()
    wait_until(lambda: not start_ticks(pid), "its end")


def test_its_ports_are_those_of_ray() -> None:
    from ray import _raylet

    of_ray = {getattr(_raylet, name) for name in dir(_raylet) if name.endswith("_PORT_NAME")}
    assert {*DASHBOARD_PORTS, RUNTIME_ENV_PORT} == of_ray - {_raylet.GCS_SERVER_PORT_NAME}
    assert _raylet.get_port_filename(NODE, RUNTIME_ENV_PORT) == f"{RUNTIME_ENV_PORT}_{NODE}"
