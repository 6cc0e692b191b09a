"""Listening sockets: of TCP, and unix sockets that only their user can open."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

from league.http.address import AddressError, Listening

BACKLOG = 1024


def tcp_listener(where: Listening) -> socket.socket:
    """A socket that listens at an address.

    Raises:
      AddressError: the address is not safe, or cannot be listened on.
    """
    where.require_safe()
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    # Without the protocol's number asyncio leaves Nagle's algorithm on, which costs an answer 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((where.host, where.port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise AddressError(
            f"{where.keys[0]}: {where.host}:{where.port} cannot be listened on: {error.strerror or error}."
        ) from error
    return listener


def unix_listener(path: Path) -> socket.socket:
    """A unix socket of mode 0600 that listens; one that a killed server left there is replaced.

    Raises:
      OSError: the path does not do. FileExistsError: a server listens there.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        if path.is_socket():
            _require_silent(path)
            path.unlink()
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def remove_socket(path: Path) -> None:
    """Remove the file of a unix socket whose listener is closed."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def _require_silent(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as trial:
        if trial.connect_ex(str(path)) == 0:
            raise FileExistsError(f"{path}: a server listens there already")
