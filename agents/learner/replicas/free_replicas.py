"""A replica on a clock of its own as its update mode sees it: alone, with memory that it shares with the others.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from torch import Tensor

from league.agents.learner.replicas.shared_vector import SharedVector
from league.agents.learner.replicas.update_mode import UpdateMode, make_update_mode
from league.envs.component_choice import Component


@dataclass(frozen=True)
class GroupMemory:
    """The memory, sockets and deadline that the members of a group on one machine share.

    Fields:
      folder: of the mapped files and sockets. size: P. members: replicas of the group.
      timeout_s: after which a member without an answer counts as lost.
    """

    folder: Path
    size: int
    members: int
    timeout_s: float

    def vector(self, name: str, size: int | None = None) -> SharedVector:
        """The shared vector of that name, of P numbers where none is given; created where there is none."""
        return SharedVector(self.folder / name, self.size if size is None else size)


class FreeReplicas:
    """A `ReplicaGroup` of this replica alone, since nobody is waited for.

    Fields:
      member: number of this replica among those of the group; -1 in the process that leads them.
    """

    rank, size = 0, 1

    def __init__(self, memory: GroupMemory, *, member: int) -> None:
        self.memory = memory
        self.member = member

    def add_up(self, vector: Tensor) -> None:
        """As in the protocol."""

    def total(self, tensor: Tensor) -> Tensor:
        return tensor

    def gather(self, message: Tensor) -> list[Tensor]:
        return [message]

    def exchange(self, sent: Mapping[int, Tensor], received: Mapping[int, Tensor]) -> None:
        """As in the protocol."""

    def take_bytes(self) -> int:
        return 0


@dataclass(frozen=True)
class FreeTally:
    """Lags, discards and losses of a free mode in the last batch.

    Fields:
      lags: of its gradients where they were applied, in steps. dropped: gradients that were discarded.
      lost_shards: numbers of the parts of the server that did not answer.
    """

    lags: tuple[int, ...] = ()
    dropped: int = 0
    lost_shards: tuple[int, ...] = ()


class FreeMode(UpdateMode, Protocol):
    """An update mode whose replicas take the next batch when they are idle.

    Built like the others, with a `FreeReplicas`. The process that leads the group builds one as well, for `publish`.

    Fields:
      shared_values: memory of the weights [P] that this replica trains in; None for memory of its own.
    """

    shared_values: SharedVector | None

    def start(self, values: Tensor) -> None:
        """Once, with the weights [P] that the replica was built with."""
        ...

    def begin(self, values: Tensor) -> None:
        """Before a batch: bring the weights [P] up to date; may wait."""
        ...

    def take_tally(self) -> FreeTally:
        """The tally since the last call."""
        ...

    def close(self) -> None:
        """Leave the others; may be called twice."""
        ...


def make_free_mode(choice: Component, replicas: FreeReplicas) -> FreeMode:
    """As `make_update_mode`, of a mode whose replicas run on clocks of their own."""
    return cast(FreeMode, make_update_mode(choice, replicas))
