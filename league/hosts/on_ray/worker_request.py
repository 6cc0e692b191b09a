"""Asks the fork server for a worker process; a raylet runs it where it would run Ray's own `setup_worker`.

Without a server, or once that has ended, it becomes what Ray would have started, unless the raylet has ended too. It is
run by path, and imports the standard library alone: it is the whole start of a host, beside a fork.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path

ADDRESS = "LEAGUE_FORK_SERVER"
"""The variable with the path of the server's socket."""

SETUP_WORKER = "LEAGUE_SETUP_WORKER"
"""The variable with the path of the script that Ray would have started."""

RAYLET = "RAY_RAYLET_PID"
"""The variable with the process id of the raylet."""

ANSWER_S = 290.0
"""Longest wait for the server, which may be importing still; the raylet gives a worker up a little later."""

SETUP_OPTIONS = ("--language=", "--serialized-runtime-env-context=")
"""Said by a raylet to `setup_worker` alone."""


def ask(address: str, command: list[str]) -> bool:
    """Hand a command over to the server at an address, as a `ForkRequest` of `envs/workers/forks.py`.

    Returns:
      False if there is no server any more.

    Raises:
      TimeoutError: it did not answer in time.
    """
    numbers = [0, 1, 2]
    request = {"words": command, "environment": dict(os.environ), "folder": str(Path.cwd()), "numbers": numbers}
    text = json.dumps(request).encode()
    with socket.socket(socket.AF_UNIX) as server:
        server.settimeout(ANSWER_S)
        try:
            server.connect(address)
            socket.send_fds(server, [len(text).to_bytes(4, "big")], numbers)
            server.sendall(text)
            return bool(server.recv(1))
        except (ConnectionError, FileNotFoundError):
            return False


def main(arguments: list[str]) -> None:
    """Become a worker, by a fork of the server or by itself."""
    address, setup_worker = os.environ.pop(ADDRESS), os.environ.pop(SETUP_WORKER)
    command = [argument for argument in arguments if not argument.startswith(SETUP_OPTIONS)]
    if not ask(address, command) and os.getppid() == int(os.environ[RAYLET]):
        os.execv(sys.executable, [sys.executable, setup_worker, *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
