"""Rows of a player that another process keeps: what its learner asks of it, and the counts that come back.

Shape letters: B rows of a batch, W bytes of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.errors import FeederError


class RowsLostError(FeederError):
    """The host of rows is gone or does not answer. Whether it has taken what was pushed is not known."""


@dataclass(frozen=True)
class SourceReport:
    """Counts since the last report.

    Fields:
      chunks, rows: decoded. refused: invalid chunks; reason: of the last of them.
      decode_s: seconds of the decoding threads together. waited_s: seconds in which the learner waited for rows.
      idle_fraction: waited_s divided by the seconds since the last report, in [0, 1].
    """

    chunks: int = 0
    rows: int = 0
    refused: int = 0
    reason: str = ""
    decode_s: float = 0.0
    waited_s: float = 0.0
    idle_fraction: float = 0.0

    def plus(self, more: SourceReport) -> SourceReport:
        """Both together."""
        counts = (field.name for field in fields(self) if field.name != "reason")
        added = {name: getattr(self, name) + getattr(more, name) for name in counts}
        return replace(self, reason=more.reason or self.reason, **added)


@dataclass(frozen=True)
class RemoteBatch:
    """A batch that a host sampled.

    Fields:
      block: uint8 [B, W], whole rows. weights: float32 [B], of importance; None for a uniform sample.
      fresh_steps: as in `RowBlocks`.
      learnt: gives the errors of the rows, float32 [B], back to the host they came from; does not wait.
    """

    block: NDArray[np.uint8]
    weights: NDArray[np.float32] | None
    fresh_steps: int
    learnt: Callable[[NDArray[np.float32]], None]


class RemoteRows(Protocol):
    """The rows of one player and generation in one host. Any thread may call."""

    def wait(self, timeout_s: float) -> bool:
        """Wait until the host is there; whether it is."""
        ...

    def push(self, chunk: bytes, *, timeout_s: float) -> SourceReport:
        """Store the rows of a chunk; the host's counts since it last answered one. Errors as of `RowSource.push`.

        Raises:
          RowsLostError.
        """
        ...

    def batch(self, *, timeout_s: float) -> RemoteBatch | None:
        """The host's next batch; None where it has not enough rows within the deadline.

        Raises:
          RowsLostError.
          FeederError: the rows are those of the player's past self, or they have no place.
        """
        ...
