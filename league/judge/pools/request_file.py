"""Requests that lie in the inbox of a pool as files, so that they reach one that another process works on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.judge.pools.core.rules import BeginTest, EndTest, PoolRefused
from league.store.storage import Storage

SUFFIX = ".request.json"
MAX_REQUEST_BYTES = 1 << 14


@dataclass(frozen=True)
class PoolRequest:
    """A request. test: one to begin; None for none. withdraw: number of one to end; 0 for none."""

    test: BeginTest | None = None
    withdraw: int = 0

    @property
    def command(self) -> BeginTest | EndTest:
        """The command of the pool that it asks for."""
        return self.test if self.test is not None else EndTest(self.withdraw, "withdrawn")


def read_request(file: Path) -> PoolRequest:
    """The request in a file.

    Raises:
      PoolRefused: it is none.
    """
    try:
        return msgspec.json.decode(Storage().read_bytes(file, max_bytes=MAX_REQUEST_BYTES), type=PoolRequest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PoolRefused(f"{file.name} is no request: {error}") from error


def write_request(request: PoolRequest, file: Path) -> None:
    """Put a request into a file."""
    Storage().atomic_write_bytes(file, msgspec.json.encode(request))
