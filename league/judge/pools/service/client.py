"""A worker's side of the messages: every request within a deadline, sent again while the pool does not answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Self, TypeVar

import httpx
import msgspec

from league.errors import LeagueError
from league.hosts.on_ray.nodes.host_version import this_version
from league.http.trust import trust_of
from league.judge.pools.core.records import BatchLease, BatchResult, GrantedBatch, PoolGame
from league.judge.pools.service.messages import (
    MAX_BODY_BYTES,
    MAX_MANIFEST_BYTES,
    MAX_WEIGHTS_BYTES,
    VERSION_HEADER,
    AskLease,
    Fail,
    Finish,
    Hello,
    Welcome,
    WorkerRefusal,
    version_mark,
)
from league.store.snapshots import SnapshotManifest, sha256_hex

TIMEOUT_S = 60.0
PATIENCE_S = 600.0
"""Time for which a worker waits for a pool that does not answer, such as one that is being started again."""
FIRST_PAUSE_S, MAX_PAUSE_S = 0.1, 10.0

Record = TypeVar("Record")


class PoolServiceError(LeagueError):
    """A pool does not answer, or has nobody left to play."""


class AnswerRefused(PoolServiceError):  # noqa: N818
    """The pool answered, and its answer is no, for good."""


class PoolClient:
    """The connection of one worker to a pool.

    Args:
      url: http of loopback, or https. token: of the pool. worker: a name for people.
      ca_file: certificates to trust in the place of the system's; empty for the system's.
      still: asked before a request is repeated; says no once the worker is to end.
      pause: waits so many seconds. clock: monotonic seconds.
    Raises:
      AddressError: the URL would carry the token in the clear, or the file cannot be used.
    """

    def __init__(
        self,
        url: str,
        token: str,
        *,
        worker: str,
        ca_file: str = "",
        still: Callable[[], bool] = lambda: True,
        pause: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        patience_s: float = PATIENCE_S,
    ) -> None:
        version = this_version()
        self._http = httpx.Client(
            base_url=url,
            headers={"authorization": f"Bearer {token}", VERSION_HEADER: version_mark(version)},
            timeout=TIMEOUT_S,
            verify=trust_of(url, ca_file=ca_file),
            trust_env=False,  # a proxy of the environment would see the token
        )
        self.url = url
        self._worker = worker
        self._version = version
        self._still = still
        self._pause = pause
        self._clock = clock
        self._patience_s = patience_s

    def hello(self) -> PoolGame:
        """Join; returns the game.

        Raises:
          AnswerRefused: the versions differ, or the token is not the pool's. PoolServiceError: no pool answers.
        """
        return self._read(self._post("/v1/hello", Hello(self._worker, self._version)), Welcome).game

    def lease(self) -> GrantedBatch | None:
        """A batch to play; None where there is none. Raises as `hello`."""
        answer = self._post("/v1/lease", AskLease(self._worker))
        return None if answer.status_code == httpx.codes.NO_CONTENT else self._read(answer, GrantedBatch)

    def finish(self, lease: BatchLease, result: BatchResult) -> None:
        """Send a result until it is durable. Raises AnswerRefused where it does not count, and as `hello`."""
        self._post("/v1/finish", Finish(lease.lease_id, lease.token, result))

    def fail(self, lease: BatchLease, reason: str, *, gave_up: bool = False, lacks: str = "") -> None:
        """Say that a lease was not played; gave_up, lacks: as in `Fail`. Raises as `finish`."""
        self._post("/v1/fail", Fail(lease.lease_id, lease.token, reason[:1000], gave_up, lacks))

    def weights(self, digest: str) -> tuple[bytes, SnapshotManifest]:
        """Weights and manifest of a snapshot, verified.

        Raises:
          AnswerRefused: the pool has them not, or sent others. PoolServiceError: as `hello`.
        """
        manifest = self._read(self._get(f"/v1/manifest/{digest}", MAX_MANIFEST_BYTES), SnapshotManifest)
        weights = self._get(f"/v1/weights/{digest}", MAX_WEIGHTS_BYTES).content
        if sha256_hex(weights) != digest or manifest.digest != digest:
            raise AnswerRefused(f"{self.url} sent other weights than those of the digest {digest[:16]}....")
        return weights, manifest

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _post(self, path: str, record: object) -> httpx.Response:
        body = msgspec.json.encode(record)
        return self._sent(lambda: self._limited("POST", path, body, MAX_BODY_BYTES))

    def _get(self, path: str, max_bytes: int) -> httpx.Response:
        return self._sent(lambda: self._limited("GET", path, b"", max_bytes))

    def _limited(self, method: str, path: str, body: bytes, max_bytes: int) -> httpx.Response:
        """One request, whose answer may not be longer than that."""
        with self._http.stream(method, path, content=body) as answer:
            chunks, size = [], 0
            for chunk in answer.iter_bytes():
                size += len(chunk)
                if size > max_bytes:
                    raise AnswerRefused(f"{self.url}{path} answered with more than {max_bytes} bytes.")
                chunks.append(chunk)
        return httpx.Response(answer.status_code, content=b"".join(chunks))

    def _sent(self, send: Callable[[], httpx.Response]) -> httpx.Response:
        """Send a request until it is answered. Doing a thing twice changes nothing, so that each may be repeated."""
        deadline, pause_s = self._clock() + self._patience_s, FIRST_PAUSE_S
        while True:
            try:
                answer = send()
            except httpx.TransportError as error:
                problem = str(error) or type(error).__name__
                if "CERTIFICATE_VERIFY_FAILED" in problem:  # as no later try changes
                    raise AnswerRefused(f"the certificate of {self.url} is not trusted: {problem}.") from error
            else:
                if answer.is_success:
                    return answer
                problem = _sentence(answer)
                if answer.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                    raise AnswerRefused(problem)
            if not self._still() or self._clock() > deadline:
                raise PoolServiceError(f"the pool at {self.url} does not answer: {problem}.")
            self._pause(pause_s)
            pause_s = min(2.0 * pause_s, MAX_PAUSE_S)

    def _read(self, answer: httpx.Response, kind: type[Record]) -> Record:
        try:
            return msgspec.json.decode(answer.content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise AnswerRefused(f"{self.url} answered with no {kind.__name__}: {error}.") from error


def _sentence(answer: httpx.Response) -> str:
    try:
        return msgspec.json.decode(answer.content, type=WorkerRefusal).error
    except (msgspec.DecodeError, UnicodeDecodeError):
        return f"it answered {answer.status_code}"
