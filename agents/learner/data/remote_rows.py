"""Rows of a player that another process keeps: what its learner asks of it.

Shape letters: B rows of a batch, W bytes of a row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.data.source_counts import SourceReport
from league.agents.learner.errors import FeederError


class RowsLostError(FeederError):
    """The host of rows is gone or does not answer. Whether it has taken what was pushed is not known."""


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
