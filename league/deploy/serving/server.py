"""Serves a policy on a unix socket of its user, or on a TCP address with a token, until a signal ends it."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from league.deploy.serving.app import PolicyApp, ServingConfig
from league.deploy.serving.served_policy import ServedPolicy
from league.http.address import AddressError, Listening
from league.http.listeners import remove_socket, tcp_listener, unix_listener
from league.http.server import ServerLimits, make_server
from league.http.token_file import new_token, token_in

LIMITS = ServerLimits(max_requests=2048, stop_s=10)


@dataclass(frozen=True)
class Address:
    """Where a policy is served. url: of its root. token: empty on a unix socket. socket_path: empty for TCP."""

    url: str
    token: str
    socket_path: str = ""


def serve_policy(
    policy: ServedPolicy,
    config: ServingConfig,
    *,
    where: Listening | Path,
    token_file: Path | None = None,
    ready: Callable[[Address], object] = lambda address: None,
) -> None:
    """Serve a policy; answers in hand are given before it ends.

    Args:
      where: a TCP address, or the path of a unix socket.
      token_file: holds the token for TCP; made where it is missing. None makes a token for this start alone.
      ready: called once requests are taken.
    Raises:
      AddressError: the address is not safe, or cannot be listened on. TokenFileError: the file holds no token.
    """
    with listening(where) as listener:
        tcp = where if isinstance(where, Listening) else None
        if tcp is None:
            address = Address("http://localhost", "", str(where))
        else:
            token = new_token() if token_file is None else token_in(token_file, make=True)
            address = Address(tcp.url(listener.getsockname()[1]), token)
        app = PolicyApp(policy, config, token=address.token, hosts=() if tcp is None else tcp.names)
        server = make_server(app, LIMITS, where=tcp)
        app.callers = lambda: len(server.server_state.connections)
        ready(address)  # connections queue in the listener from here on
        server.run(sockets=[listener])


@contextlib.contextmanager
def listening(where: Listening | Path) -> Iterator[socket.socket]:
    """A listening socket; that of a path is removed in the end.

    Raises:
      AddressError: it cannot be listened on.
    """
    if isinstance(where, Listening):
        with contextlib.closing(tcp_listener(where)) as listener:
            yield listener
        return
    try:
        listener = unix_listener(where)
    except OSError as error:
        raise AddressError(f"--listen unix:{where}: it cannot be listened on: {error.strerror or error}.") from error
    try:
        with contextlib.closing(listener):
            yield listener
    finally:
        remove_socket(where)
