"""The messages between a pool and its workers: JSON of fixed records, within caps, over HTTP.

- POST /v1/hello: Hello to Welcome, or 409 with a sentence where the versions differ.
- POST /v1/lease: AskLease to GrantedBatch, or 204 where there is nothing to play.
- POST /v1/finish: Finish to 204 once the answer is durable, or 409 where it does not count, for good.
- POST /v1/fail: Fail to 204, or 409 as above.
- GET /v1/manifest/DIGEST: a SnapshotManifest.
- GET /v1/weights/DIGEST: the bytes of its weights.
"""

from __future__ import annotations

import hashlib

import msgspec

from league.hosts.on_ray.nodes.host_version import HostVersion
from league.judge.pools.core.records import BatchResult, PoolGame

MAX_BODY_BYTES = 1 << 16
MAX_MANIFEST_BYTES = 1 << 20
MAX_WEIGHTS_BYTES = 1 << 30
VERSION_HEADER = "x-league-version"


class Hello(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The first message of a worker. worker: a name for people."""

    worker: str
    version: HostVersion


class Welcome(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The answer to a worker that may join. game: what it will play."""

    game: PoolGame


class AskLease(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A worker is free. worker: as in `Hello`."""

    worker: str


class Finish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The result of a lease; sent again until it is answered."""

    lease_id: int
    token: str
    result: BatchResult


class Fail(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A lease that was not played. reason: one sentence.

    Fields:
      gave_up: by choice, so that nobody is to blame. lacks: name of a policy that the worker has not; else empty.
    """

    lease_id: int
    token: str
    reason: str
    gave_up: bool = False
    lacks: str = ""


class WorkerRefusal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The reason of a refused request, one sentence."""

    error: str


def version_mark(version: HostVersion) -> str:
    """A short digest of versions, for the header of each request after the first."""
    return hashlib.sha256(msgspec.json.encode(version)).hexdigest()[:16]
