"""Stands in for the two agents that a raylet starts and waits for, where nobody would ever ask them: 100 MiB less.

The dashboard's agent serves metrics, jobs and logs; the other one prepares runtime environments. A Ray of our own has
none of these. Its raylet only reads the files in which they note their ports, and ends with them. This script writes
the files and lives as long as the raylet. It is run by path, without site packages: the standard library alone.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

LOOK_S = 1.0
"""Between two looks at the raylet."""

UNUSED = -1
"""The port that Ray's own agent notes for a service that it does not offer."""

DASHBOARD_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port")
RUNTIME_ENV_PORT = "runtime_env_agent_port"


def note_port(name: str, port: int, *, session_dir: Path, node_id: str) -> None:
    """Write the file of a port, which the raylet reads as soon as it is there."""
    path = session_dir / f"{name}_{node_id}"
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    temporary.write_text(str(port))
    temporary.replace(path)


def main(agent: str, *options: str) -> None:
    """Note the ports of an agent, then wait for the end of the raylet.

    Args:
      agent: "dashboard_agent" or "runtime_env_agent". options: of Ray's own command line.
    """
    raylet = int(os.environ["RAY_RAYLET_PID"])
    named = dict(option.removeprefix("--").partition("=")[::2] for option in options)
    session_dir, node_id = Path(named["session-dir"]), named["node-id"]
    if agent == "dashboard_agent":
        for name in DASHBOARD_PORTS:
            note_port(name, UNUSED, session_dir=session_dir, node_id=node_id)
        _outlive(raylet)
        return
    with socket.socket() as unanswered:  # a real port is demanded; whoever calls it is refused
        unanswered.bind(("127.0.0.1", 0))
        note_port(RUNTIME_ENV_PORT, unanswered.getsockname()[1], session_dir=session_dir, node_id=node_id)
        _outlive(raylet)


def _outlive(raylet: int) -> None:
    while os.getppid() == raylet:
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main(*sys.argv[1:])
