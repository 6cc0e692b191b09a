"""Servers beyond this machine: only with a certificate, and only for clients that trust it."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from league.config.run_config import ControlConfig
from league.deploy.serving.client import PolicyClient, ServedPolicyError
from league.deploy.serving.served import client_of
from league.http.address import AddressError, Listening
from league.http.listeners import tcp_listener
from league.http.server import ServerLimits, make_server, served_in_threads
from league.http.trust import trust_of
from league.judge.contenders.contender import UnknownContender
from league.judge.pools.service.client import AnswerRefused, PoolClient
from league.see.page.app import make_page
from league.see.page.guard import Keys
from league.see.page.runs.library import Library
from league.see.page.server import LIMITS
from tests.league.commands import league
from tests.league.http.certificates import Certificates, make_certificates
from tests.league.see.page.page_runs import KEYS, OPERATOR, write_run

TOKEN = "a-token-of-some-length"
EVERYWHERE = "0.0.0.0:0"


async def facts(scope: Any, receive: Any, send: Any) -> None:
    """Answers as a served policy does, to those with the token."""
    right = (b"authorization", f"Bearer {TOKEN}".encode()) in scope["headers"]
    await send({"type": "http.response.start", "status": 200 if right else 401, "headers": []})
    await send({"type": "http.response.body", "body": b'{"name": "it"}' if right else b'{"error": "no token"}'})


@pytest.fixture(scope="module")
def server(certificates: Certificates) -> Iterator[tuple[str, ssl.SSLContext]]:
    """URL and TLS settings of a server."""
    where = Listening(tls_cert=certificates.cert, tls_key=certificates.key)
    with tcp_listener(where) as listener:
        made = make_server(facts, ServerLimits(max_requests=8), where=where)
        with served_in_threads([(made, listener)], name="test server"):
            assert made.config.ssl is not None
            yield where.url(listener.getsockname()[1]), made.config.ssl


def test_a_client_with_the_certificate_and_the_token_gets_in(
    server: tuple[str, ssl.SSLContext], certificates: Certificates
) -> None:
    with PolicyClient(server[0], token=TOKEN, ca_file=certificates.ca) as client:
        assert client.facts() == {"name": "it"}
    with PolicyClient(server[0], ca_file=certificates.ca) as client, pytest.raises(ServedPolicyError) as refused:
        client.facts()
    assert refused.value.status == 401


def test_a_contender_names_its_certificate(
    server: tuple[str, ssl.SSLContext], certificates: Certificates, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    with client_of(f"{server[0]}?token-file={tmp_path}/token&tls-ca={certificates.ca}") as client:
        assert client.facts() == {"name": "it"}
    for wrong in (f"{server[0]}?tls-ca=/no/such/file", f"{server[0]}?ca={certificates.ca}", "http://example.org:1"):
        with pytest.raises(UnknownContender):
            client_of(wrong)


def test_a_certificate_of_somebody_else_is_not_trusted(server: tuple[str, ssl.SSLContext], tmp_path: Path) -> None:
    others = make_certificates(tmp_path)
    for ca_file in (others.ca, ""):  # of another authority, and of the system
        with (
            PolicyClient(server[0], token=TOKEN, ca_file=ca_file) as client,
            pytest.raises(ServedPolicyError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            client.facts()


def test_a_certificate_for_another_name_is_not_trusted(
    server: tuple[str, ssl.SSLContext], certificates: Certificates
) -> None:
    port = int(server[0].rpartition(":")[2])
    trusted = trust_of(server[0], ca_file=certificates.ca)
    assert isinstance(trusted, ssl.SSLContext)
    with (
        socket.create_connection(("127.0.0.1", port), timeout=60.0) as plain,
        pytest.raises(ssl.SSLCertVerificationError, match="mismatch"),
    ):
        trusted.wrap_socket(plain, server_hostname="example.org")


def test_plain_http_gets_no_answer_at_a_port_of_tls(server: tuple[str, ssl.SSLContext]) -> None:
    with pytest.raises(httpx.TransportError):
        httpx.get(server[0].replace("https", "http"), headers={"authorization": f"Bearer {TOKEN}"}, timeout=60.0)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion:DeprecationWarning")  # it is asked for to see it refused
@pytest.mark.parametrize(("version", "is_taken"), [("TLSv1_1", False), ("TLSv1_2", True), ("TLSv1_3", True)])
def test_old_versions_of_tls_are_refused(
    server: tuple[str, ssl.SSLContext], certificates: Certificates, version: str, is_taken: bool
) -> None:
    client = _only(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), version)
    client.load_verify_locations(certificates.ca)
    lax = _only(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), version)
    lax.load_cert_chain(certificates.cert, certificates.key)
    assert _shake_hands(client, lax), "a server that allowed it would be reached"
    assert _shake_hands(client, server[1]) is is_taken


def _only(context: ssl.SSLContext, version: str) -> ssl.SSLContext:
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    return context


def _shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> bool:
    """Whether a client and a server come to terms."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    done = [False, False]
    for _ in range(10):
        for number, side in enumerate(sides):
            try:
                side.do_handshake()
                done[number] = True
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLError:
                return False
    return all(done)


def test_the_page_over_tls_has_a_cookie_for_tls_alone(certificates: Certificates, tmp_path: Path) -> None:
    library = Library(write_run(tmp_path / "made", leases=2).path)
    where = Listening(tls_cert=certificates.cert, tls_key=certificates.key)
    with tcp_listener(where) as listener:
        port = listener.getsockname()[1]
        page = make_page(library, Keys(KEYS.tokens, port, is_secure=True), hosts=where.names)
        trusted = trust_of(where.url(port), ca_file=certificates.ca)
        with (
            served_in_threads([(make_server(page, LIMITS, where=where), listener)], name="page"),
            httpx.Client(base_url=where.url(port), verify=trusted, timeout=60.0) as client,
        ):
            assert client.get("/api/v1/runs").status_code == 401
            same = {"origin": where.url(port)}
            entered = client.post("/api/v1/session", json={"token": OPERATOR.token}, headers=same)
            assert entered.status_code == 200 and "Secure" in entered.headers["set-cookie"]
            assert client.get("/api/v1/runs").status_code == 200
            other = {"origin": where.url(port).replace("https", "http")}
            assert client.get("/", headers=other).status_code == 403
    library.close()


@pytest.mark.parametrize(
    "command",
    [
        ("serve", "RUN", "--listen", EVERYWHERE),
        ("serve-policy", "RUN", "--listen", EVERYWHERE),
        ("pool", "serve", "RUN", "--listen", EVERYWHERE),
    ],
    ids=["page", "policy", "pool"],
)
@pytest.mark.parametrize("given", [(), ("--tls-cert", "CERT"), ("--tls-key", "KEY")], ids=["none", "cert", "key"])
def test_beyond_this_machine_both_files_are_needed(
    command: tuple[str, ...], given: tuple[str, ...], certificates: Certificates, tmp_path: Path
) -> None:
    files = {"CERT": certificates.cert, "KEY": certificates.key, "RUN": str(tmp_path)}
    said = league(*(files.get(word, word) for word in (*command, *given)))
    assert said.code == 2 and "--tls-cert" in said.err and "--tls-key" in said.err
    assert "Traceback" not in said.err and len(said.err.strip().splitlines()) == 1


@pytest.mark.parametrize("key", ["listen", "page_listen"])
def test_so_say_the_keys_of_the_control_door(key: str) -> None:
    (problem,) = ControlConfig(**{key: "0.0.0.0:8700"}).problems()  # type: ignore[arg-type]
    assert problem.startswith(f"{key}: ") and "control.tls_cert and control.tls_key" in problem
    assert ControlConfig(**{key: "0.0.0.0:8700"}, tls_cert="a", tls_key="b").problems() == []  # type: ignore[arg-type]


def test_a_certificate_that_cannot_be_used_is_reported(certificates: Certificates, tmp_path: Path) -> None:
    other = make_certificates(tmp_path / "other")
    for cert, key in (("/no/such/file", certificates.key), (certificates.cert, other.key), (certificates.ca, "")):
        where = Listening(tls_cert=cert, tls_key=key, keys=("a", "control.tls_cert", "control.tls_key"))
        with pytest.raises(AddressError, match=r"control\.tls_cert"):
            where.require_safe()
            make_server(facts, ServerLimits(max_requests=8), where=where)


@pytest.mark.parametrize(
    ("url", "ca_file", "problem"),
    [
        ("http://example.org:80", "", "in the clear"),
        ("http://192.168.0.1:80", "", "in the clear"),
        ("http://127.0.0.1.example.org", "", "in the clear"),
        ("http://127.0.0.1:80", "ca.pem", "is for https"),
        ("https://example.org", "/no/such/file", "cannot be used"),
        ("ftp://127.0.0.1", "", "is no URL"),
        ("https://", "", "is no URL"),
        ("http://[::1", "", "is no URL"),
    ],
)
def test_what_a_client_refuses_to_call(url: str, ca_file: str, problem: str) -> None:
    with pytest.raises(AddressError, match=problem):
        trust_of(url, ca_file=ca_file)


def test_the_worker_of_a_pool_does_not_wait_for_a_certificate_to_become_right(server: tuple[str, Any]) -> None:
    client = PoolClient(server[0], TOKEN, worker="w", pause=lambda s: pytest.fail("it waits"))
    with client, pytest.raises(AnswerRefused, match="not trusted"):
        client.hello()
