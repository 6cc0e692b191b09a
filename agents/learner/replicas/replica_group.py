"""The replicas of one network as one of them sees the others: sums, exchanges, and the bytes that these send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import ProcessGroup

from league.agents.learner.errors import PeersLostError


class ReplicaGroup(Protocol):
    """R replicas in lockstep: all of them call the same methods in the same order, with tensors of the same size.

    Every method that talks to others raises PeersLostError where one of them is gone.

    Fields:
      rank: number of this replica, from 0. size: R.
    """

    rank: int
    size: int

    def add_up(self, vector: Tensor) -> None:
        """Replace a vector by the sum over all replicas, in place."""
        ...

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over all replicas as a new tensor: for counts and statistics, whose few bytes are not counted."""
        ...

    def gather(self, message: Tensor) -> list[Tensor]:
        """The messages of all replicas, by rank."""
        ...

    def exchange(self, sent: Mapping[int, Tensor], received: Mapping[int, Tensor]) -> None:
        """Send a message to each peer of `sent` and fill the tensors of `received` with those of these peers."""
        ...

    def take_bytes(self) -> int:
        """Bytes that this replica has sent since the last call."""
        ...


class ProcessReplicas:
    """The replicas of a process group; only this one where there is none.

    A sum counts as a ring's: each replica sends (R - 1) / R of the vector twice, so that R of them send exactly
    2 (R - 1) vectors. A gathered message counts once for each receiver.
    """

    def __init__(self, group: ProcessGroup | None) -> None:
        self._group = group
        self.rank = 0 if group is None else dist.get_rank(group)
        self.size = 1 if group is None else dist.get_world_size(group)
        self._bytes = 0

    def add_up(self, vector: Tensor) -> None:
        if self._group is not None:
            with lost_peers():
                dist.all_reduce(vector, group=self._group)
            self._bytes += ring_bytes(vector.nbytes, rank=self.rank, size=self.size)

    def total(self, tensor: Tensor) -> Tensor:
        """As in the protocol; the tensor itself of a replica alone."""
        return total_over(tensor, self._group)

    def gather(self, message: Tensor) -> list[Tensor]:
        if self._group is None:
            return [message]
        gathered = [torch.empty_like(message) for _ in range(self.size)]
        with lost_peers():
            dist.all_gather(gathered, message, group=self._group)
        self._bytes += message.nbytes * (self.size - 1)
        return gathered

    def exchange(self, sent: Mapping[int, Tensor], received: Mapping[int, Tensor]) -> None:
        group = self._group
        if group is None:
            return
        places = {peer: dist.get_global_rank(group, peer) for peer in {*sent, *received}}
        transfers = [dist.P2POp(dist.isend, tensor, places[peer], group) for peer, tensor in sent.items()]
        transfers += [dist.P2POp(dist.irecv, tensor, places[peer], group) for peer, tensor in received.items()]
        with lost_peers():
            for transfer in dist.batch_isend_irecv(transfers):
                transfer.wait()
        self._bytes += sum(tensor.nbytes for tensor in sent.values())

    def take_bytes(self) -> int:
        taken, self._bytes = self._bytes, 0
        return taken


def ring_bytes(vector_bytes: int, *, rank: int, size: int) -> int:
    """Bytes that a replica sends in a ring's all-reduce; over all ranks they add up to 2 (R - 1) vectors exactly."""
    share, rest = divmod(2 * (size - 1) * vector_bytes, size)
    return share + (rank < rest)


def total_over(tensor: Tensor, group: ProcessGroup | None) -> Tensor:
    """The sum of a tensor over a process group, as a new tensor; the tensor itself if there is no group.

    Raises:
      PeersLostError: one of them is gone.
    """
    if group is None:
        return tensor
    summed = tensor.clone()
    with lost_peers():
        dist.all_reduce(summed, group=group)
    return summed


@contextmanager
def lost_peers() -> Iterator[None]:
    """Context of a collective, whose failure means that a peer is gone: a worker survives it and keeps its weights."""
    try:
        yield
    except RuntimeError as error:
        raise PeersLostError(f"a peer is gone: {error}") from error
