"""Serves a pool to workers: on loopback, or with a certificate elsewhere; always with a token."""

from __future__ import annotations

import contextlib
import ipaddress
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from league.errors import LeagueError
from league.pool.pool import Pool
from league.pool.service.app import make_app
from league.store.storage import Storage

START_S, STOP_S = 10.0, 5.0
MAX_REQUESTS = 256
IDLE_S = 30
MIN_TOKEN, MAX_TOKEN_BYTES = 16, 1 << 10


class PoolServiceError(LeagueError):
    """The pool cannot be served, or joined, as asked."""


@dataclass(frozen=True)
class Listening:
    """Where a pool is served.

    Fields:
      host, port: port 0 takes a free one. tls_cert, tls_key: files in PEM, both or neither.
      hosts: names by which it may be called, beside loopback's and `host`.
    """

    host: str = "127.0.0.1"
    port: int = 0
    tls_cert: str = ""
    tls_key: str = ""
    hosts: tuple[str, ...] = ()

    def require_safe(self) -> None:
        """Refuse an address that other machines reach without a certificate.

        Raises:
          PoolServiceError: the token would travel in the clear.
        """
        if bool(self.tls_cert) != bool(self.tls_key):
            raise PoolServiceError("--tls-cert needs --tls-key, and the key its certificate: give both or neither.")
        if not self.tls_cert and not is_loopback(self.host):
            raise PoolServiceError(
                f"--listen {self.host}: other machines reach it, and the token would travel in the clear; give "
                "--tls-cert and --tls-key, or listen on 127.0.0.1."
            )


def is_loopback(host: str) -> bool:
    """True if only this machine reaches that host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def listening_at(text: str, *, tls_cert: str, tls_key: str, hosts: tuple[str, ...]) -> Listening:
    """The address that "HOST:PORT" says.

    Raises:
      PoolServiceError: it says none, or one that is not safe.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not host or not port.isdecimal() or int(port) >= 1 << 16:
        raise PoolServiceError(f"--listen {text!r} is not HOST:PORT, as in 127.0.0.1:8710.")
    found = Listening(host, int(port), tls_cert, tls_key, hosts)
    found.require_safe()
    return found


def token_of(path: Path, *, make: bool, storage: Storage | None = None) -> str:
    """The token in a file.

    Args:
      make: whether to write a new one, for this user alone, where there is no file.
    Raises:
      PoolServiceError: there is none, or it is too short. StorageError: it cannot be read or written.
    """
    storage = storage or Storage()
    try:
        token = storage.read_bytes(path, max_bytes=MAX_TOKEN_BYTES).decode(errors="replace").strip()
    except FileNotFoundError as error:
        if not make:
            raise PoolServiceError(f"{path} does not exist: copy the token of the pool there.") from error
        token = secrets.token_urlsafe(32)
        storage.atomic_write_bytes(path, token.encode(), private=True)
    if len(token) < MIN_TOKEN:
        raise PoolServiceError(f"{path} holds no token of at least {MIN_TOKEN} characters.")
    return token


@contextlib.contextmanager
def serving(pool: Pool, token: str, where: Listening) -> Iterator[str]:
    """Serve a pool for as long as the block takes; gives its URL.

    Raises:
      PoolServiceError: the address is not safe, or cannot be listened on.
    """
    where.require_safe()
    listener = _listener(where)
    port = listener.getsockname()[1]
    tls = {"ssl_certfile": where.tls_cert, "ssl_keyfile": where.tls_key} if where.tls_cert else {}
    config = uvicorn.Config(
        make_app(pool, token, hosts=(where.host, *where.hosts)),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=MAX_REQUESTS,
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=1,
        **tls,  # type: ignore[arg-type]  # paths
    )
    try:
        server = uvicorn.Server(config)
        config.load()
    except OSError as error:
        listener.close()
        raise PoolServiceError(
            f"--tls-cert {where.tls_cert}: the certificate or its key cannot be read: {error}."
        ) from error
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="pool-server", daemon=True)
    thread.start()
    deadline = time.monotonic() + START_S
    while not server.started and thread.is_alive() and time.monotonic() < deadline:
        time.sleep(0.005)
    try:
        shown = f"[{where.host}]" if ":" in where.host else where.host
        yield f"{'https' if where.tls_cert else 'http'}://{shown}:{port}"
    finally:
        server.should_exit = True
        thread.join(STOP_S)
        listener.close()


def _listener(where: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited: no answer waits for an acknowledgement
    try:
        listener.bind((where.host, where.port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise PoolServiceError(
            f"--listen {where.host}:{where.port} cannot be listened on: {error.strerror}."
        ) from error
    return listener
