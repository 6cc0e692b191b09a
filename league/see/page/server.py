"""Serves the page of runs: on this machine's loopback, or elsewhere with a certificate; always with a token."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from league.http.address import AddressError, Listening
from league.http.listeners import tcp_listener
from league.http.server import Server, ServerLimits, make_server
from league.http.token_file import Tokens, new_tokens
from league.see.page.app import make_page
from league.see.page.guard import Keys
from league.see.page.page_file import PageAddress
from league.see.page.runs.library import Library

PORT = 8420
"""Taken where nobody asks for another one and it is free."""
LIMITS = ServerLimits(max_requests=128)
SWITCH_S = 0.001
"""Seconds for which a computation may keep a request from running."""
NICER = 5
"""Steps by which the page stands behind training for the processor."""


def serve(
    path: Path,
    *,
    where: Listening | None = None,
    tokens: Tokens | None = None,
    command: str = "",
    ready: Callable[[PageAddress], object] = lambda address: None,
) -> None:
    """Serve the page until a signal ends it.

    Args:
      path: a run folder, or a folder of them. where: None for `PORT` of loopback, or a free one where that is taken.
      tokens: of the address; new ones by default. command: that serves it, for people.
      ready: called once the page can be opened.
    Raises:
      MissingRun, JournalError, StorageError: there is nothing to show. AddressError: the port is taken.
    """
    library = Library(path, command=command)
    with contextlib.closing(library):
        for name in library.folders() if len(library.folders()) == 1 else ():
            library.run(name)  # says at once what is wrong with it
        with contextlib.closing(listen(where)) as listener:
            where = where or Listening()
            port = listener.getsockname()[1]
            address = PageAddress(where.url(port), tokens or new_tokens())
            server = page_server(library, Keys(address.tokens, port, is_secure=bool(where.tls_cert)), where)
            sys.setswitchinterval(SWITCH_S)
            os.nice(NICER)
            ready(address)
            server.run(sockets=[listener])


def page_server(library: Library, keys: Keys, where: Listening) -> Server:
    """The server of a page; `run` it with a listening socket.

    Raises:
      AddressError: the certificate cannot be used.
    """
    return make_server(make_page(library, keys, hosts=where.names), LIMITS, where=where)


def listen(where: Listening | None) -> socket.socket:
    """A listening socket.

    Raises:
      AddressError: somebody else has that port, or the address is not safe.
    """
    if where is not None:
        return tcp_listener(where)
    with contextlib.suppress(AddressError):
        return tcp_listener(Listening(port=PORT))
    return tcp_listener(Listening())
