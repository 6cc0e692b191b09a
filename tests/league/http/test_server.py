"""The ground of the HTTP servers: listeners, bounds, start and stop, tokens."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from league.http import server as server_module
from league.http.address import AddressError, Listening, host_and_port, is_loopback
from league.http.listeners import remove_socket, tcp_listener, unix_listener
from league.http.server import ServerLimits, make_server, served_in_threads
from league.http.token_file import TokenFileError, known_tokens, remove_tokens, token_in, tokens_in
from league.store.storage import Storage

LIMITS = ServerLimits(max_requests=3, idle_s=1)


class App:
    """Answers at once; "/wait" is answered when `go` is set."""

    def __init__(self) -> None:
        self.go, self.waiting = threading.Event(), threading.Semaphore(0)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/wait":
            self.waiting.release()
            while not self.go.is_set():
                await asyncio.sleep(0.005)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"here"})


def test_a_listener_of_tcp_knows_its_protocol_and_its_host() -> None:
    """asyncio turns Nagle's algorithm off only where a listener knows that it speaks TCP."""
    with tcp_listener(Listening()) as listener:
        assert listener.proto == socket.IPPROTO_TCP
        assert listener.getsockname()[0] == "127.0.0.1"


def test_a_unix_socket_is_its_users_alone(tmp_path: Path) -> None:
    path = tmp_path / "it.sock"
    before = os.umask(0)
    try:
        listener = unix_listener(path)
        assert os.umask(0) == 0, "the umask of the process stays"
    finally:
        os.umask(before)
    with listener:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with pytest.raises(FileExistsError, match="listens there already"):
            unix_listener(path)
    unix_listener(path).close()  # in the place of one that nobody answers
    remove_socket(path)
    remove_socket(path)
    path.write_text("a file of the user")
    with pytest.raises(OSError, match="in use"):
        unix_listener(path)
    assert path.read_text() == "a file of the user"


def test_requests_beyond_the_bound_are_refused_and_the_others_answered() -> None:
    app = App()
    with tcp_listener(Listening()) as listener:
        port = listener.getsockname()[1]
        with served_in_threads([(make_server(app, LIMITS), listener)], name="test server"):
            url = f"http://127.0.0.1:{port}"
            waiting = [threading.Thread(target=httpx.get, args=(f"{url}/wait",)) for _ in range(2)]
            for thread in waiting:
                thread.start()
            for _ in waiting:
                assert app.waiting.acquire(timeout=60.0)
            assert httpx.get(url).status_code == 503
            app.go.set()
            for thread in waiting:
                thread.join(10.0)
            assert httpx.get(url).text == "here"


def test_a_silent_connection_is_closed() -> None:
    with tcp_listener(Listening()) as listener:
        limits = ServerLimits(max_requests=8, idle_s=0)
        with (
            served_in_threads([(make_server(App(), limits), listener)], name="test server"),
            socket.create_connection(listener.getsockname(), timeout=60.0) as caller,
        ):
            caller.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            answer = b""
            while part := caller.recv(4096):
                answer += part
    assert b"here" in answer
    assert not [line for line in answer.lower().splitlines() if line.startswith(b"server:")]


def test_threads_end_with_the_block_and_signals_stay_as_they_were() -> None:
    before = threading.active_count(), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with (
        tcp_listener(Listening()) as listener,
        served_in_threads([(make_server(App(), LIMITS), listener)], name="test server"),
    ):
        assert signal.getsignal(signal.SIGTERM) is before[1]
    assert (threading.active_count(), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_a_server_that_does_not_start_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "START_S", 0.1)
    server = make_server(App(), LIMITS)
    monkeypatch.setattr(server, "run", lambda **options: time.sleep(0.3))
    with (
        tcp_listener(Listening()) as listener,
        pytest.raises(AddressError, match="test server has not started"),
        served_in_threads([(server, listener)], name="test server"),
    ):
        pytest.fail("it started")


@pytest.mark.parametrize("text", ["", "8420", ":8420", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:65536", "h:-1", "h:²"])
def test_what_is_no_address_is_refused_with_its_option(text: str) -> None:
    with pytest.raises(AddressError, match="--listen"):
        Listening.at(text)


def test_addresses_of_ipv6_stand_in_brackets() -> None:
    assert host_and_port("[::1]:80") == ("::1", 80)
    assert Listening.at("[::1]:80").url(80) == "http://[::1]:80"
    assert is_loopback("::1") and is_loopback("[::1]") and is_loopback("127.8.8.8") and not is_loopback("::")


def test_an_address_in_use_is_reported() -> None:
    with tcp_listener(Listening()) as taken:
        where = Listening(port=taken.getsockname()[1], keys=("a.listen", "", ""))
        with pytest.raises(AddressError, match=r"^a\.listen: 127\.0\.0\.1:\d+ cannot be listened on"):
            tcp_listener(where)


def test_a_token_file_is_made_private_and_kept(tmp_path: Path) -> None:
    path = tmp_path / "token"
    with pytest.raises(TokenFileError, match="does not exist"):
        token_in(path, make=False)
    token = token_in(path, make=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert token_in(path, make=False) == token_in(path, make=True) == token and len(token) > 30
    for content in (b"short", b"\xff" * 40, b"two words, and more of them"):
        path.write_bytes(content)
        with pytest.raises(TokenFileError, match="holds no token"):
            token_in(path, make=True)


def test_the_tokens_of_a_run_stay_until_they_are_removed(tmp_path: Path) -> None:
    folder, storage = tmp_path / "tokens", Storage()
    assert known_tokens(folder) is None
    tokens = tokens_in(folder, storage=storage)
    assert tokens.operator != tokens.reader
    assert tokens_in(folder, storage=storage) == known_tokens(folder) == tokens
    remove_tokens(folder, storage=storage)
    again = tokens_in(folder, storage=storage)
    assert not {again.operator, again.reader} & {tokens.operator, tokens.reader}
