"""Workers over HTTP: who may join, what is refused unread, and that a lost acknowledgement counts nothing twice."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import msgspec
import pytest

from league.hosts.on_ray.nodes.host_version import this_version
from league.http.address import AddressError, Listening
from league.judge.pools.core.records import BOT, BatchResult, PoolGame, PoolPolicy
from league.judge.pools.folder import PoolFolder
from league.judge.pools.pool import Pool, create_pool, open_pool
from league.judge.pools.service import client as client_module
from league.judge.pools.service.client import AnswerRefused, PoolClient, PoolServiceError
from league.judge.pools.service.messages import MAX_BODY_BYTES, VERSION_HEADER, Hello, version_mark
from league.judge.pools.service.run_command import serving, work
from tests.league.http.certificates import make_certificates
from tests.league.judge.pools.frozen_copies import frozen_copy, snapshot_folder

TOKEN = "t" * 32


class Served:
    """A pool that is being served, and its address."""

    def __init__(self, pool: Pool, url: str) -> None:
        self.pool, self.url = pool, url

    def client(self, **options) -> PoolClient:  # type: ignore[no-untyped-def]
        return PoolClient(self.url, TOKEN, worker="w", patience_s=2.0, **options)

    def post(self, path: str, body: bytes, **headers: str) -> httpx.Response:
        given = {"authorization": f"Bearer {TOKEN}", VERSION_HEADER: version_mark(this_version()), **headers}
        return httpx.post(f"{self.url}{path}", content=body, headers=given, timeout=10.0)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = PoolFolder(tmp_path_factory.mktemp("served") / "pool")
    create_pool(folder, PoolGame("tic_tac_toe", 2))
    snapshot_folder(folder.inbox / "p1", 1)
    with open_pool(folder) as pool, serving(pool, TOKEN, Listening()) as url:
        pool.join(PoolPolicy("bot:random", BOT, elo=0.0))
        pool.tend()
        yield Served(pool, url)


def test_a_worker_plays_what_it_is_given_and_its_games_count(served: Served) -> None:
    before = served.pool.state.finished
    turns = iter([True] * 40)
    stop = threading.Event()
    with served.client() as client:
        games = work(
            client,
            still=lambda: not stop.is_set(),
            idle=stop.wait,
            progress=lambda n: next(turns) and n > 20 and stop.set(),
        )
    assert games > 20
    assert served.pool.state.finished > before
    assert not served.pool.state.leases


def test_weights_are_verified_by_their_digest(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = frozen_copy(1).manifest.digest
    with served.client() as client:
        weights, manifest = client.weights(digest)
        assert (weights, manifest.digest) == (frozen_copy(1).weights, digest)
        with pytest.raises(AnswerRefused):
            client.weights("0" * 64)
        monkeypatch.setattr(client_module, "sha256_hex", lambda payload: "f" * 64)
        with pytest.raises(AnswerRefused, match="other weights"):
            client.weights(digest)
        monkeypatch.undo()
        monkeypatch.setattr(client_module, "MAX_WEIGHTS_BYTES", 100)
        with pytest.raises(AnswerRefused, match="more than 100"):
            client.weights(digest)


def test_an_answer_that_is_sent_again_is_refused_and_counts_once(served: Served) -> None:
    with served.client() as client:
        granted = client.lease()
        assert granted is not None
        lease = granted.lease
        result = BatchResult(lease.games, 0, 0, lease.games / 2, 0.1)
        games = int(served.pool.state.games.values[lease.home])
        with pytest.raises(AnswerRefused, match="token"):
            client.finish(dataclasses.replace(lease, token="another"), result)
        client.finish(lease, result)
        with pytest.raises(AnswerRefused, match="answered or given up before"):
            client.finish(lease, result)
        with pytest.raises(AnswerRefused):
            client.fail(lease, "late")
    assert int(served.pool.state.games.values[lease.home]) == games + lease.games


def test_a_worker_that_stops_gives_its_batch_back_and_blames_nobody(served: Served) -> None:
    with served.client() as client:
        granted = client.lease()
        assert granted is not None
        with pytest.raises(AnswerRefused, match="token"):
            client.fail(dataclasses.replace(granted.lease, token="another"), "x", gave_up=True)
        client.fail(granted.lease, "it was stopped", gave_up=True)
    assert not served.pool.state.leases and not served.pool.state.reasons


@pytest.mark.parametrize("token", ["", "wrong", TOKEN[:-1]])
def test_nothing_is_answered_without_the_token(served: Served, token: str) -> None:
    for method, path in (("POST", "/v1/hello"), ("POST", "/v1/lease"), ("GET", "/v1/weights/" + "0" * 64)):
        headers = {"authorization": f"Bearer {token}"} if token else {}
        answer = httpx.request(method, served.url + path, headers=headers, timeout=10.0)
        assert answer.status_code == 401
    with pytest.raises(AnswerRefused), PoolClient(served.url, token or "none", worker="w") as client:
        client.hello()


def test_another_version_may_not_join_and_hears_what_differs(served: Served) -> None:
    older = dataclasses.replace(this_version(), numpy="1.0")
    answer = served.post("/v1/hello", msgspec.json.encode(Hello("w", older)))
    assert answer.status_code == 409 and "numpy 1.0" in answer.json()["error"]
    answer = served.post("/v1/lease", b'{"worker": "w"}', **{VERSION_HEADER: version_mark(older)})
    assert answer.status_code == 409


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 422),
        (b"[]", 422),
        (b'{"worker": 3}', 422),
        (b'{"worker": "w", "more": 1}', 422),
        (b"\xff\xfe", 422),
        (b" " * (MAX_BODY_BYTES + 1), 413),
    ],
)
def test_misshapen_and_long_bodies_are_refused(served: Served, body: bytes, status: int) -> None:
    assert served.post("/v1/lease", body).status_code == status


def test_a_caller_by_another_name_is_refused(served: Served) -> None:
    assert served.post("/v1/lease", b'{"worker": "w"}', host="evil.example").status_code == 400


def test_a_pool_that_does_not_answer_is_named_after_a_while() -> None:
    now = [0.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    with (
        PoolClient(
            "http://127.0.0.1:9", TOKEN, worker="w", pause=pause, clock=lambda: now[0], patience_s=5.0
        ) as client,
        pytest.raises(PoolServiceError, match="does not answer"),
    ):
        client.hello()
    assert 5.0 < now[0] < 12.0


@pytest.mark.parametrize("listen", ["0.0.0.0:8710", "192.168.1.5:80", "example.org:80", "8710", "127.0.0.1:99999"])
def test_addresses_that_others_reach_need_a_certificate(listen: str) -> None:
    with pytest.raises(AddressError, match="--listen"):
        Listening.at(listen)
    with pytest.raises(AddressError, match="in the clear"):
        PoolClient("http://example.org:80", TOKEN, worker="w")


def test_a_worker_joins_over_tls_and_only_with_a_certificate_it_trusts(tmp_path: Path, served: Served) -> None:
    made = make_certificates(tmp_path)
    with serving(served.pool, TOKEN, Listening(tls_cert=made.cert, tls_key=made.key)) as url:
        assert url.startswith("https://")
        with PoolClient(url, TOKEN, worker="w", ca_file=made.ca) as client:
            assert client.hello().env_id == "tic_tac_toe"
        client = PoolClient(url, TOKEN, worker="w", patience_s=0.0)
        with client, pytest.raises(AnswerRefused, match="not trusted"):
            client.hello()
