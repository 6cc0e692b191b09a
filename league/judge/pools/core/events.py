"""Events of a rating pool; its state is the fold of these events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from league.judge.pools.core.records import BatchLease, BatchResult, PoolGame, PoolPolicy, PoolTest


@dataclass(frozen=True)
class PoolCreated:
    """The first event of a pool."""

    game: PoolGame


@dataclass(frozen=True)
class PoolOpened:
    """A process took the pool over. token: of the leases that it grants; those of others before stay as they are."""

    token: str


@dataclass(frozen=True)
class PolicyAdded:
    """A policy joined; its weights are stored."""

    policy: PoolPolicy


@dataclass(frozen=True)
class BatchGranted:
    """A worker received a lease."""

    lease: BatchLease


@dataclass(frozen=True)
class BatchFinished:
    """The answer to a lease was counted."""

    lease_id: int
    token: str
    result: BatchResult


@dataclass(frozen=True)
class BatchFailed:
    """A worker could not play a lease. reason: one sentence; it counts against both policies."""

    lease_id: int
    reason: str


@dataclass(frozen=True)
class BatchExpired:
    """A lease was given up without a result."""

    lease_id: int
    reason: str


@dataclass(frozen=True)
class PoolTestBegun:
    """A test was taken up."""

    test: PoolTest


@dataclass(frozen=True)
class PoolTestEnded:
    """A test ended; its games stay in the ratings. outcome, why: as in `PoolTestAccount`."""

    number: int
    outcome: str
    why: str


@dataclass(frozen=True)
class StateCarried:
    """The first event of a later journal file: the whole state that the file before it ended with."""

    state: dict[str, object]


PoolEvent = (
    PoolCreated
    | PoolOpened
    | PolicyAdded
    | BatchGranted
    | BatchFinished
    | BatchFailed
    | BatchExpired
    | PoolTestBegun
    | PoolTestEnded
    | StateCarried
)

EVENTS: Mapping[str, type] = {
    kind.__name__: kind
    for kind in (
        PoolCreated,
        PoolOpened,
        PolicyAdded,
        BatchGranted,
        BatchFinished,
        BatchFailed,
        BatchExpired,
        PoolTestBegun,
        PoolTestEnded,
        StateCarried,
    )
}
"""Kind in the journal -> event. A kind is never taken away."""
