"""The protocol of a recorder: what an arena tells about recorded seats becomes rows of a record for a learner.

Shape letters: K slots of one turn, A actions, C core state size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.field_table import Record


class Restorable(Protocol):
    """Something whose state is plain arrays."""

    def save(self) -> dict[str, NDArray[np.generic]]:
        """The state, copied."""
        ...

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Continue from the arrays of `save`."""
        ...


@runtime_checkable
class RoundRecorder(Protocol):
    """A recorder of one seat in each game, which plays in rounds: each begins with new games from a seed of its own."""

    def next_round(self) -> int | None:
        """Seed of the round that is to begin now, None while one is played."""
        ...

    def take_cut(self) -> NDArray[np.int64]:
        """Rows whose episodes it has cut since the last call; their games have nothing more to do in the round."""
        ...


class Recorder(Restorable, Protocol):
    """Records the seats of an arena. `rows` are int64 [K], distinct numbers of (game, seat).

    `league.agents.unroll.builder.UnrollBuilder` cuts decisions into unrolls;
    `league.agents.unroll.episodes.EpisodeRecorder` counts what episodes earn.
    """

    def observe(
        self,
        rows: NDArray[np.int64],
        *,
        obs: Mapping[str, NDArray[np.generic]],
        action_mask: NDArray[np.bool_] | None,
        rewards: NDArray[np.float32],
        core: NDArray[np.float32] | None,
    ) -> Record | None:
        """Take what rows see before they act, and float32 [K] rewards since their last decisions.

        core: float32 [K, C], core states before this observation, None if C is 0.
        Returns the rows of the record that became complete, or None; so do the other methods.
        """
        ...

    def completes(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """bool [K], True where a row of the record ends with the next decision and another one begins after it."""
        ...

    def act(self, rows: NDArray[np.int64], **decided: NDArray[np.generic] | None) -> None:
        """Take the decisions of the rows just observed; fields that the recorder does not know are ignored."""
        ...

    def end(
        self,
        rows: NDArray[np.int64],
        *,
        rewards: NDArray[np.float32],
        terminated: NDArray[np.bool_],
        final_obs: Mapping[str, NDArray[np.generic]] | None,
    ) -> Record | None:
        """Close the last decisions of rows whose episodes ended, some before their first decision.

        final_obs: last observations of those that were cut off; None if none was.
        """
        ...

    def abandon(self, rows: NDArray[np.int64]) -> None:
        """Forget the last decisions of rows whose env failed: they have no result."""
        ...
