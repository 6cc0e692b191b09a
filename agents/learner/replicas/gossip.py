"""Gossip in lockstep: each replica steps alone, then averages its weights with a few peers; there is no centre.

Shape letter: P parameters held here.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.learner.replicas.compressors import Compressor, make_compressor
from league.agents.learner.replicas.config import GossipConfig
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.step_alone import shares_of, step_alone
from league.agents.learner.replicas.topologies import make_topology, receivers
from league.agents.learner.replicas.update_mode import PLACE, SteppedVector, StepResult


class Gossip:
    """Averages after the step, so that few replicas that all know each other agree at once.

    The consensus is the mean of all replicas, taken every `publish_every` updates; it changes none of them.

    Source: Lian et al. 2017, D-PSGD, algorithm 1 (its order of step and average is free, see section 3); Koloskova et
      al. 2019, CHOCO-SGD, algorithm 2, with a compression.
    """

    def __init__(self, replicas: ReplicaGroup, *, options: GossipConfig) -> None:
        self._replicas = replicas
        self._topology = make_topology(options.topology, place=f"{PLACE}.topology")
        self._topology(replicas.rank, replicas.size, 0)  # a torus that they do not fill is refused here
        compressor = make_compressor(options.compression, place=f"{PLACE}.compression") if replicas.size > 1 else None
        self._copies = None if compressor is None else PeerCopies(compressor, step=options.consensus_step)
        self._publish_every = options.publish_every
        self._consensus: Tensor | None = None
        self._rounds = 0
        self.replicas_differ = replicas.size > 1

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        values = vector.values
        if self._consensus is None:
            self.load(values, {})
        shares = shares_of(self._replicas, vector, sums)
        step_alone(vector, shares, learning_rate=learning_rate)
        if shares.is_step and self._replicas.size > 1:
            self._average(values)
            self._rounds += 1
            if self._rounds % self._publish_every == 0:
                mean = values.clone()
                self._replicas.add_up(mean)
                self._consensus = mean / self._replicas.size
        return StepResult(shares.stats, shares.norm, shares.skipped, self._replicas.take_bytes())

    def total(self, tensor: Tensor) -> Tensor:
        return self._replicas.total(tensor)

    def publish(self, values: Tensor) -> Tensor:
        """The newest mean of all replicas; the weights themselves of a replica alone."""
        return values if self._consensus is None or self._replicas.size == 1 else self._consensus

    def save(self) -> Mapping[str, Tensor]:
        """The number of averages so far; replicas continue from their mean, of which all copies are exact."""
        return {"rounds": torch.tensor(self._rounds)} if self._replicas.size > 1 else {}

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        self._consensus = values.clone()
        self._rounds = int(saved["rounds"]) if "rounds" in saved else 0
        if self._copies is not None:
            self._copies.start(values)

    def _average(self, values: Tensor) -> None:
        """One round with the peers, in place."""
        rank, size = self._replicas.rank, self._replicas.size
        weights = dict(self._topology(rank, size, self._rounds))
        takers = receivers(self._topology, rank, size, self._rounds)
        own = weights.pop(rank)
        message = values if self._copies is None else self._copies.message(values, number=self._rounds)
        received = {peer: torch.empty_like(message) for peer in weights}
        self._replicas.exchange(dict.fromkeys(takers, message), received)
        if self._copies is None:
            values.mul_(own)
            for peer, weight in weights.items():
                values.add_(received[peer], alpha=weight)
        else:
            weighed = [(own, message), *((weight, received[peer]) for peer, weight in weights.items())]
            self._copies.average(values, weighed, number=self._rounds)


class PeerCopies:
    """The copies that replicas have of each other's weights under a compression: this one's own, and the peers' mean.

    Fields:
      own: [P], what the peers know of this replica. mean: [P], the average of the copies of peers and of this replica.
    """

    def __init__(self, compressor: Compressor, *, step: float | None) -> None:
        self._compressor = compressor
        self._step = compressor.consensus_step if step is None else step

    def start(self, values: Tensor) -> None:
        """All replicas have these weights, and know it."""
        self.own, self.mean = values.clone(), values.clone()

    def message(self, values: Tensor, *, number: int) -> Tensor:
        """The vector that peers add to their copy of this replica's weights; what it leaves out, later ones hold."""
        return self._compressor.encode(values - self.own, number=number)

    def average(self, values: Tensor, weighed: list[tuple[float, Tensor]], *, number: int) -> None:
        """Take over messages with their weights, this replica's first, and go a part of the way to the mean."""
        for at, (weight, message) in enumerate(weighed):
            change = self._compressor.decode(message, number=number, like=values)
            self.mean.add_(change, alpha=weight)
            if at == 0:
                self.own += change
        values.add_(self.mean - self.own, alpha=self._step)
