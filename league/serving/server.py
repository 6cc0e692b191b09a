"""Serves a policy on a unix socket of its user, or on a TCP address with a token, until a signal ends it."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from league.errors import LeagueError
from league.serving.app import PolicyApp, ServingConfig
from league.serving.served_policy import ServedPolicy
from league.store.storage import Storage

UNIX = "unix:"
DEFAULT_LISTEN = "127.0.0.1:8421"
MAX_CONNECTIONS = 2048
IDLE_S = 30
"""Seconds after which a silent connection is closed."""
STOP_S = 10
"""Longest wait for answers in hand when the server stops."""
BACKLOG = 1024
MAX_TOKEN_BYTES = 1 << 12


class ServingError(LeagueError):
    """A policy cannot be served as asked."""


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
    listen: str = DEFAULT_LISTEN,
    token_file: Path | None = None,
    hosts: tuple[str, ...] = (),
    ready: Callable[[Address], object] = lambda address: None,
) -> None:
    """Serve a policy; answers in hand are given before it ends.

    Args:
      listen: "HOST:PORT" (port 0 for a free one) or "unix:PATH". hosts: further names by which it may be called.
      token_file: holds the token for TCP; made where it is missing. None makes a token for this start alone.
      ready: called once requests are taken.
    Raises:
      ServingError: the address cannot be listened on.
    """
    with _listener(listen) as (listener, is_unix):
        token = "" if is_unix else _token(token_file)
        host = listener.getsockname()[0] if not is_unix else "localhost"
        app = PolicyApp(policy, config, token=token, hosts=(host, *hosts))
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=False,
                proxy_headers=False,
                ws="none",
                limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=IDLE_S,
                timeout_graceful_shutdown=STOP_S,
            )
        )
        app.callers = lambda: len(server.server_state.connections)
        address = (
            Address("http://localhost", "", listen.removeprefix(UNIX)) if is_unix else _tcp_address(listener, token)
        )
        ready(address)  # connections queue in the listener from here on
        server.run(sockets=[listener])


def _tcp_address(listener: socket.socket, token: str) -> Address:
    host, port = listener.getsockname()[:2]
    return Address(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", token)


@contextlib.contextmanager
def _listener(listen: str) -> Iterator[tuple[socket.socket, bool]]:
    """A listening socket, and whether it is a unix socket of this user alone.

    Raises:
      ServingError.
    """
    is_unix = listen.startswith(UNIX)
    try:
        listener = _unix(Path(listen.removeprefix(UNIX))) if is_unix else _tcp(listen)
    except OSError as error:
        raise ServingError(f"--listen {listen}: it cannot be listened on ({error.strerror or error}).") from error
    try:
        yield listener, is_unix
    finally:
        listener.close()
        if is_unix:
            with contextlib.suppress(FileNotFoundError):
                Path(listen.removeprefix(UNIX)).unlink()


def _unix(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    if path.is_socket():  # left by a server that was killed, unless somebody answers
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as trial:
            if trial.connect_ex(str(path)) == 0:
                listener.close()
                raise ServingError(f"--listen {UNIX}{path}: a server listens there already.")
        path.unlink()
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def _tcp(listen: str) -> socket.socket:
    host, colon, port = listen.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ServingError(f"--listen {listen}: give HOST:PORT, such as {DEFAULT_LISTEN}, or {UNIX}PATH.")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, int(port)))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def _token(file: Path | None) -> str:
    """The token in a file, which is made where it is missing; a new one without a file.

    Raises:
      ServingError: the file holds no token.
    """
    if file is None:
        return secrets.token_urlsafe(32)
    storage = Storage()
    try:
        token = storage.read_bytes(file, max_bytes=MAX_TOKEN_BYTES).decode("ascii").strip()
    except FileNotFoundError:
        token = secrets.token_urlsafe(32)
        storage.atomic_write_bytes(file, token.encode() + b"\n", private=True)
    except UnicodeDecodeError as error:
        raise ServingError(f"--token-file {file} holds no token of letters and digits.") from error
    if len(token) < 16:
        raise ServingError(f"--token-file {file} holds a token of {len(token)} characters, 16 are the least.")
    return token
