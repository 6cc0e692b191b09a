"""The control door of a live run: HTTP on a unix socket of its user, and on a TCP address with a token where asked.

The server is a thread of the daemon's process with an event loop of its own; `league.run.control.api` has its answers.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from league.config.run_config import ControlConfig
from league.http.address import Listening
from league.http.listeners import remove_socket, tcp_listener, unix_listener
from league.http.server import ServerLimits, make_server, served_in_threads
from league.http.token_file import tokens_in
from league.run.control.api import Queue, make_api
from league.run.control.door_file import new_door_file, write_door_file
from league.store.run_folder import RunFolder

LIMITS = ServerLimits(max_requests=32, idle_s=5)
KEYS = ("control.listen", "control.tls_cert", "control.tls_key")


@contextlib.contextmanager
def open_door(
    folder: RunFolder, queue: Queue, config: ControlConfig, *, say: Callable[[str], object]
) -> Iterator[None]:
    """Serve the door for as long as the block takes. A run whose unix socket cannot be made continues without.

    Raises:
      AddressError: the configured address cannot be listened on, or not with its certificate.
      TokenFileError, StorageError: the tokens of the run cannot be used.
    """
    door = new_door_file(folder, url=config.url)
    path = Path(door.socket)
    where = _address(config)
    tokens = None if where is None else tokens_in(folder.tokens_path, storage=folder.storage)
    listeners: list[socket.socket] = []
    try:
        try:
            remove_socket(path)  # of a daemon that died: the run's lock is ours
            listeners.append(unix_listener(path))
        except OSError as error:
            say(f"{path} cannot be made ({error.strerror}): this run has no control door on a unix socket.")
        if where is not None:
            listeners.append(tcp_listener(where))
        servers = []
        for listener in listeners:
            is_unix = listener.family == socket.AF_UNIX
            hosts = () if where is None else where.names
            api = make_api(folder, queue, tokens=None if is_unix else tokens, hosts=hosts)
            servers.append((make_server(api, LIMITS, where=None if is_unix else where), listener))
        write_door_file(folder, door)
        with served_in_threads(servers, name="control door"):
            yield
    finally:
        for listener in listeners:
            listener.close()
        remove_socket(path)
        folder.storage.remove(folder.door_path)


def _address(config: ControlConfig) -> Listening | None:
    if not config.listen:
        return None
    host, port = config.address
    return Listening(host, port, config.tls_cert, config.tls_key, config.hosts, KEYS)
