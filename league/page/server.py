"""Serves the page of runs on this machine's loopback."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import uvicorn

from league.errors import LeagueError
from league.page.app import make_page
from league.page.guard import Keys, new_token
from league.page.page_file import HOST, PageAddress
from league.page.runs.library import Library

PORT = 8420
"""Taken where nobody asks for another one and it is free."""
MAX_REQUESTS = 128
IDLE_S = 30
STOP_S = 1
SWITCH_S = 0.001
"""Seconds for which a computation may keep a request from running."""
NICER = 5
"""Steps by which the page stands behind training for the processor."""


def serve(
    path: Path,
    *,
    port: int | None = None,
    token: str = "",
    ready: Callable[[PageAddress], object] = lambda address: None,
) -> None:
    """Serve the page until a signal ends it.

    Args:
      path: a run folder, or a folder of them. port: None for `PORT`, or a free one where that is taken.
      token: of the address; a new one by default. ready: called once the page can be opened.
    Raises:
      MissingRun, JournalError, StorageError: there is nothing to show. LeagueError: the port is taken.
    """
    library = Library(path)
    with contextlib.closing(library):
        for name in library.folders() if len(library.folders()) == 1 else ():
            library.run(name)  # says at once what is wrong with it
        listener = listen(port)
        address = PageAddress(listener.getsockname()[1], token or new_token())
        keys = Keys(address.token, f"league-page-{address.port}")
        sys.setswitchinterval(SWITCH_S)
        os.nice(NICER)
        server = page_server(library, keys)
        with contextlib.closing(listener):
            ready(address)
            server.run(sockets=[listener])


def page_server(library: Library, keys: Keys) -> uvicorn.Server:
    """The server of a page; `run` it with a listening socket."""
    return uvicorn.Server(
        uvicorn.Config(
            make_page(library, keys),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            limit_concurrency=MAX_REQUESTS,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=STOP_S,
        )
    )


def listen(port: int | None) -> socket.socket:
    """A listening socket on loopback.

    Raises:
      LeagueError: somebody else has that port.
    """
    for wanted in (PORT, 0) if port is None else (port,):
        # Without the protocol's number asyncio leaves Nagle's algorithm on, which costs an answer 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, wanted))
            listener.listen(128)
        except OSError as error:
            listener.close()
            if port is not None:
                raise LeagueError(f"--port {port}: {error.strerror}; leave it out for a free one.") from error
            continue
        return listener
    raise LeagueError(f"no port of {HOST} is free.")
