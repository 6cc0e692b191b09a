"""Asynchronous gossip: each replica averages its weights with one random peer at a time and waits for nobody.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.replicas.config import GossipConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, FreeTally
from league.agents.learner.replicas.gossip import Gossip
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.shared_vector import SharedVector, TornVectorError
from league.agents.learner.replicas.topologies import make_topology
from league.agents.learner.replicas.update_mode import PLACE, SteppedVector, StepResult, UpdateMode


def gossip(replicas: ReplicaGroup, *, options: GossipConfig) -> UpdateMode:
    """The mode of one replica of a free group, or of one in lockstep."""
    if isinstance(replicas, FreeReplicas):
        return AsynchronousGossip(replicas, options=options)
    return Gossip(replicas, options=options)


class AsynchronousGossip:
    """A replica computes with a copy of its weights, which its peers may average with theirs meanwhile.

    Two replicas that average hold the locks of both, taken in the order of their numbers; the kernel frees those of a
    process that ends. The consensus is the mean of all replicas. The optimizer's moments stay with their replica.

    Source: Lian et al. 2018, Asynchronous decentralized parallel stochastic gradient descent (AD-PSGD), algorithm 1.
    """

    replicas_differ = False
    shared_values: SharedVector | None = None

    def __init__(self, replicas: FreeReplicas, *, options: GossipConfig) -> None:
        memory = replicas.memory
        self._member, self._members = replicas.member, memory.members
        self._topology = make_topology(options.topology, place=f"{PLACE}.topology")
        self._weights = [memory.vector(f"weights-{member}") for member in range(memory.members)]
        self._locks = [memory.folder / f"lock-{member}" for member in range(memory.members)]
        self._rng = np.random.default_rng(replicas.member + 1)
        self._rounds = 0

    def start(self, values: Tensor) -> None:
        """Let the peers know the weights that this replica was built with, if it is the first with its number."""
        own = self._weights[self._member]
        if own.version == 0:
            own.write(_array(values), version=1)

    def begin(self, values: Tensor) -> None:
        """Copy this replica's weights, which its peers have changed."""
        with self._locked(self._member):
            values.copy_(torch.from_numpy(self._weights[self._member].values))

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        """Average with one peer, then step with the gradient of the weights before; as in the protocol."""
        *columns, squared_norm = torch.cat([sums, vector.squared_norm()]).tolist()
        stats = LossStats(*columns)
        if not math.isfinite(squared_norm) or stats.steps == 0.0:
            return StepResult(LossStats(), squared_norm, skipped=int(not math.isfinite(squared_norm)))
        own, peer = self._weights[self._member], self._peer()
        with self._locked(self._member, *([] if peer is None else [peer])):
            mean = own.values if peer is None else self._mean_with(self._weights[peer])
            vector.values.copy_(torch.from_numpy(mean))
            norm = vector.step(count=stats.steps, squared_norm=squared_norm, learning_rate=learning_rate)
            own.write(_array(vector.values), version=own.version + 1)
        self._rounds += 1
        return StepResult(stats, norm, bytes_sent=0 if peer is None else 2 * own.values.nbytes)

    def total(self, tensor: Tensor) -> Tensor:
        """The tensor itself."""
        return tensor

    def publish(self, values: Tensor) -> Tensor:
        """Of a replica, its weights; of the leader, the mean of all that have some and are not torn."""
        if self._member >= 0:
            return values
        known = []
        for weights in self._weights:
            with contextlib.suppress(TornVectorError):
                read, version = weights.read()
                if version:
                    known.append(read)
        if not known:
            return values
        return torch.from_numpy(np.mean(known, axis=0, dtype=np.float64).astype(np.float32))

    def save(self) -> Mapping[str, Tensor]:
        """The number of averages so far; all replicas continue from their mean."""
        return {"rounds": torch.tensor(self._rounds)}

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        own = self._weights[self._member]
        with self._locked(self._member):
            own.write(_array(values), version=own.version + 1)
        self._rounds = int(saved["rounds"]) if "rounds" in saved else 0

    def take_tally(self) -> FreeTally:
        """Nothing to tell."""
        return FreeTally()

    def close(self) -> None:
        """Does nothing."""

    def _peer(self) -> int | None:
        """A random neighbour that has weights; None if there is none."""
        neighbours = self._topology(self._member, self._members, self._rounds)
        peers = [peer for peer in neighbours if peer != self._member and self._weights[peer].version]
        return int(self._rng.choice(peers)) if peers else None

    def _mean_with(self, peer: SharedVector) -> NDArray[np.float32]:
        """Replace a peer's weights by the mean with this replica's, and return it; those of a torn peer stay."""
        own = self._weights[self._member].values
        try:
            theirs, version = peer.read(timeout_s=0.0)
        except TornVectorError:  # it was killed while it wrote, and will start again from the consensus
            return own
        mean = 0.5 * (own + theirs)
        peer.write(mean, version=version + 1)
        return mean

    @contextlib.contextmanager
    def _locked(self, *members: int) -> Iterator[None]:
        """Context in which nobody else changes the weights of these replicas."""
        with contextlib.ExitStack() as held:
            for member in sorted(members):
                file = held.enter_context(self._locks[member].open("a"))
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _array(values: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = values.detach().cpu().numpy()
    return array
