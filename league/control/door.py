"""The control door of a live run: HTTP on a unix socket of its user, and on a TCP address with a token where asked.

The server is a thread of the daemon's process with an event loop of its own; see `league.control.api` for what it says.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import uvicorn

from league.config.run_config import ControlConfig
from league.control.api import Queue, make_api
from league.control.door_file import DoorFile, new_door_file, write_door_file
from league.errors import LeagueError
from league.store.run_folder import RunFolder

START_S, STOP_S = 10.0, 5.0
MAX_REQUESTS = 32
"""Requests in hand at once; further ones are refused."""
IDLE_S = 5
"""Seconds after which a silent connection is closed."""


class DoorError(LeagueError):
    """The control door cannot be opened as configured."""


@contextlib.contextmanager
def open_door(
    folder: RunFolder, queue: Queue, config: ControlConfig, *, say: Callable[[str], object]
) -> Iterator[None]:
    """Serve the door for as long as the block takes. A run whose unix socket cannot be made continues without.

    Raises:
      DoorError: the configured address cannot be listened on.
    """
    door = new_door_file(folder, url=config.url)
    listeners: list[socket.socket] = []
    try:
        try:
            listeners.append(_unix_listener(Path(door.socket)))
        except OSError as error:
            say(f"{door.socket} cannot be made ({error.strerror}): this run has no control door on a unix socket.")
        if config.listen:
            listeners.append(_tcp_listener(config))
        write_door_file(folder, door)
        servers = [_server(folder, queue, door, config, listener) for listener in listeners]
        with _serving(servers, listeners):
            yield
    finally:
        for listener in listeners:
            listener.close()
        with contextlib.suppress(FileNotFoundError):
            Path(door.socket).unlink()
        folder.storage.remove(folder.door_path)


def _unix_listener(path: Path) -> socket.socket:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()  # of a daemon that died: the run's lock is ours
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _tcp_listener(config: ControlConfig) -> socket.socket:
    host, port = config.address
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on, which costs an answer 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise DoorError(f"control.listen: {config.listen} cannot be listened on: {error.strerror}.") from error
    return listener


def _server(
    folder: RunFolder, queue: Queue, door: DoorFile, config: ControlConfig, listener: socket.socket
) -> uvicorn.Server:
    is_unix = listener.family == socket.AF_UNIX
    tls = {"ssl_certfile": config.tls_cert, "ssl_keyfile": config.tls_key} if config.tls_cert and not is_unix else {}
    return uvicorn.Server(
        uvicorn.Config(
            make_api(folder, queue, door, needs_token=not is_unix, hosts=tuple(config.hosts)),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # the address of a caller is the connection's, whatever its headers say
            limit_concurrency=MAX_REQUESTS,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=1,
            **tls,  # type: ignore[arg-type]  # paths
        )
    )


@contextlib.contextmanager
def _serving(servers: Sequence[uvicorn.Server], listeners: Sequence[socket.socket]) -> Iterator[None]:
    threads = [
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="control-door", daemon=True)
        for server, listener in zip(servers, listeners, strict=True)
    ]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + START_S
    while not all(server.started for server in servers) and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        yield
    finally:
        for server in servers:
            server.should_exit = True
        for thread in threads:
            thread.join(STOP_S)
