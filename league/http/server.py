"""An HTTP server with bounds and deadlines: requests at once, silent connections, start and stop.

It keeps no log of requests, since their addresses may hold secrets, and it believes no header about a caller's origin.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn

from league.http.address import AddressError, Listening

START_S, STOP_S = 10.0, 5.0
LOOK_S = 0.005
Server = uvicorn.Server
MIN_TLS = ssl.TLSVersion.TLSv1_2


@dataclass(frozen=True)
class ServerLimits:
    """The bounds of a server.

    Fields:
      max_requests: in hand at once; further ones are refused.
      idle_s: seconds after which a silent connection is closed.
      stop_s: longest wait for answers in hand when the server stops.
    """

    max_requests: int
    idle_s: int = 30
    stop_s: int = 1


def make_server(app: Callable[..., Any], limits: ServerLimits, *, where: Listening | None = None) -> Server:
    """The server of an application; `run` it with a listening socket.

    Args:
      app: of ASGI. where: the address, with its certificate; None on a unix socket.
    Raises:
      AddressError: the certificate or its key cannot be used.
    """
    is_tls = where is not None and where.tls_cert
    config = uvicorn.Config(
        app,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        proxy_headers=False,  # the address of a caller is the connection's, whatever its headers say
        ws="none",
        limit_concurrency=limits.max_requests,
        timeout_keep_alive=limits.idle_s,
        timeout_graceful_shutdown=limits.stop_s,
        ssl_certfile=where.tls_cert if where is not None and is_tls else None,
        ssl_keyfile=where.tls_key if where is not None and is_tls else None,
    )
    if where is not None and is_tls:
        try:
            config.load()
        except OSError as error:  # of the file system, or of TLS
            cert, key = where.keys[1:]
            raise AddressError(
                f"{cert} {where.tls_cert}, {key} {where.tls_key}: the certificate or its key cannot be used: {error}."
            ) from error
        assert config.ssl is not None
        config.ssl.minimum_version = MIN_TLS
    return Server(config)


@contextlib.contextmanager
def served_in_threads(servers: Sequence[tuple[Server, socket.socket]], *, name: str) -> Iterator[None]:
    """Run servers in threads of their own for as long as the block takes; signals stay with the main thread.

    Raises:
      AddressError: one has not started within `START_S`.
    """
    threads = [
        threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name=name, daemon=True)
        for server, listener in servers
    ]
    try:
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + START_S
        while not all(server.started for server, _ in servers):
            if time.monotonic() > deadline or not all(thread.is_alive() for thread in threads):
                raise AddressError(f"the {name} has not started within {START_S:g} s.")
            time.sleep(LOOK_S)
        yield
    finally:
        for server, _ in servers:
            server.should_exit = True
        for thread in threads:
            if thread.ident is not None:
                thread.join(STOP_S)
