"""Serves a pool to workers: on loopback, or with a certificate elsewhere; always with a token."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from league.http.address import Listening
from league.http.listeners import tcp_listener
from league.http.server import ServerLimits, make_server, served_in_threads
from league.judge.pools.pool import Pool
from league.judge.pools.service.app import make_app

LIMITS = ServerLimits(max_requests=256)


@contextlib.contextmanager
def serving(pool: Pool, token: str, where: Listening) -> Iterator[str]:
    """Serve a pool for as long as the block takes; gives its URL.

    Raises:
      AddressError: the address is not safe, or cannot be listened on.
    """
    with contextlib.closing(tcp_listener(where)) as listener:
        server = make_server(make_app(pool, token, hosts=where.names), LIMITS, where=where)
        with served_in_threads([(server, listener)], name="pool server"):
            yield where.url(listener.getsockname()[1])
