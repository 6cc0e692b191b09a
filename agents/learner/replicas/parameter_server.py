"""Replicas that push gradients to the shards of a parameter server and fetch weights from them.

Shape letter: P parameters of the network.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.replicas.all_reduce import AllReduce
from league.agents.learner.replicas.free_config import ParameterServerConfig
from league.agents.learner.replicas.free_replicas import FreeReplicas, FreeTally, GroupMemory
from league.agents.learner.replicas.parameter_shard import Push
from league.agents.learner.replicas.replica_group import ReplicaGroup
from league.agents.learner.replicas.server_rules import LossOutliers, part_bounds
from league.agents.learner.replicas.shard_link import ShardLink, ShardLostError
from league.agents.learner.replicas.shared_vector import SharedVector, TornVectorError
from league.agents.learner.replicas.update_mode import SteppedVector, StepResult, UpdateMode

Answer = TypeVar("Answer")


def weights_of(memory: GroupMemory, shards: int) -> list[SharedVector]:
    """The slices of the weights, which the shards write."""
    return [
        memory.vector(f"weights-{index}", stop - start)
        for index, (start, stop) in enumerate(part_bounds(memory.size, shards))
    ]


def gradient_of(memory: GroupMemory, member: int) -> SharedVector:
    """The gradient [P] of a replica, which it writes."""
    return memory.vector(f"gradient-{member}")


def socket_of(memory: GroupMemory, shard: int) -> Path:
    """Where a shard listens."""
    return memory.folder / f"shard-{shard}"


def parameter_server(replicas: ReplicaGroup, options: ParameterServerConfig) -> UpdateMode:
    """The mode of one replica of a free group; of a replica alone, one that steps by itself."""
    return ParameterServer(replicas, options) if isinstance(replicas, FreeReplicas) else AllReduce(replicas)


class ParameterServer:
    """A replica's side: gradients out, weights in.

    The norm is clipped before the gradient is cut into slices. A shard that is lost leaves its slice as it was fetched
    last, until it is there again.

    Source: Dean et al. 2012, Large scale distributed deep networks, section 4.1 and algorithm 7.1.
    """

    replicas_differ = False
    shared_values: SharedVector | None = None

    def __init__(self, replicas: FreeReplicas, options: ParameterServerConfig) -> None:
        memory = replicas.memory
        self._memory = memory
        self._member = replicas.member
        self._options = options
        self._outliers = LossOutliers(options.outlier_deviations)
        self._bounds = part_bounds(memory.size, options.shards)
        self._weights = weights_of(memory, options.shards)
        self._fetched = [0] * options.shards
        self._links: dict[int, ShardLink] = {}
        self._gradient = gradient_of(memory, self._member)
        self._accrued_count, self._batches = 0.0, 0
        self._lags, self._lost, self._dropped, self._bytes = list[int](), set[int](), 0, 0

    def start(self, values: Tensor) -> None:
        """Nothing: the shards were built with the same weights."""

    def begin(self, values: Tensor) -> None:
        """Wait until this batch may begin, and fetch the weights where it is time."""
        for shard in self._connect():
            if self._options.on_stale == "wait":
                self._ask(shard, ShardLink.begin)
        if self._batches % self._options.fetch_every == 0:
            self._fetch(values)
        self._batches += 1

    def step(self, vector: SteppedVector, sums: Tensor, *, learning_rate: float) -> StepResult:
        """Push the gradient where it is time; as in the protocol."""
        *columns, squared_norm = torch.cat([sums, vector.squared_norm()]).tolist()
        stats = LossStats(*columns)
        norm = vector.clip(count=stats.steps, squared_norm=squared_norm)
        if not math.isfinite(norm) or stats.steps == 0.0:
            self._push(None)
            return StepResult(LossStats(), norm, skipped=int(not math.isfinite(norm)))
        if self._outliers.is_outlier((stats.policy + stats.value) / stats.steps):
            self._push(None)
            self._dropped += 1
            return StepResult(LossStats(), norm)
        if not self._accrued_count:
            self._gradient.values[:] = 0.0
        self._gradient.values += vector.gradients.cpu().numpy()
        self._accrued_count += stats.steps
        if self._options.fetch_every > 1:
            vector.values.sub_(vector.gradients, alpha=learning_rate)
        if self._batches % self._options.push_every:
            return StepResult(stats, norm, unshared=self._accrued_count)
        count, self._accrued_count = self._accrued_count, 0.0
        kept = self._push(count, learning_rate)
        return StepResult(stats if kept else LossStats(), norm, bytes_sent=self._take_bytes())

    def total(self, tensor: Tensor) -> Tensor:
        """The tensor itself."""
        return tensor

    def publish(self, values: Tensor) -> Tensor:
        """Of a replica, what it has fetched; of the leader, the weights of the shards.

        A shard that ended in the middle of a step leaves the numbers of `values`.
        """
        if self._member >= 0:
            return values
        consensus = values.detach().cpu().clone()
        self._read(consensus)
        return consensus

    def save(self) -> Mapping[str, Tensor]:
        """Nothing: the shards hold the moments."""
        return {}

    def load(self, values: Tensor, saved: Mapping[str, Tensor]) -> None:
        """Forget gradients that were not pushed."""
        self._accrued_count, self._batches = 0.0, 0
        self._connect()

    def take_tally(self) -> FreeTally:
        tally = FreeTally(tuple(self._lags), self._dropped, tuple(sorted(self._lost)))
        self._lags, self._lost, self._dropped = [], set(), 0
        return tally

    def close(self) -> None:
        """Leave the shards; may be called twice."""
        for link in self._links.values():
            link.close()
        self._links = {}

    def _connect(self) -> list[int]:
        """Connect to the shards that are there; returns their numbers."""
        for shard in range(self._options.shards):
            if shard not in self._links:
                path = socket_of(self._memory, shard)
                with contextlib.suppress(ShardLostError):
                    self._links[shard] = ShardLink(path, rank=self._member, timeout_s=self._memory.timeout_s)
        self._lost.update(set(range(self._options.shards)) - set(self._links))
        return list(self._links)

    def _ask(self, shard: int, action: Callable[[ShardLink], Answer]) -> Answer | None:
        """The answer of a shard; None if it is lost."""
        link = self._links.get(shard)
        if link is None:
            return None
        try:
            return action(link)
        except ShardLostError:
            link.close()
            del self._links[shard]
            self._lost.add(shard)
            return None

    def _fetch(self, values: Tensor) -> None:
        """Replace the weights by those of the shards."""
        on_host = values.detach().cpu()  # the same memory on a CPU
        self._fetched = self._read(on_host)
        if on_host.data_ptr() != values.data_ptr():
            values.copy_(on_host)
        self._bytes += 4 * self._memory.size

    def _read(self, values: Tensor) -> list[int]:
        """Replace a vector on the CPU by the shards' weights; returns the version of each slice."""
        versions = list(self._fetched)
        for shard, ((start, stop), weights) in enumerate(zip(self._bounds, self._weights, strict=True)):
            with contextlib.suppress(TornVectorError):
                read, versions[shard] = weights.read()
                values[start:stop] = torch.from_numpy(read)
        return versions

    def _push(self, count: float | None, learning_rate: float = 0.0) -> bool:
        """Tell every shard about the gradient in this replica's memory, None for nothing; False if none took it."""
        for shard, version in enumerate(self._fetched):
            push = None if count is None else Push(version, count, learning_rate)
            self._ask(shard, lambda link, push=push: link.push(push))  # type: ignore[misc]
        verdicts = [self._ask(shard, ShardLink.verdict) for shard in range(self._options.shards)]
        answers = [verdict for verdict in verdicts if verdict is not None]
        if count is None:
            return False
        self._bytes += 4 * self._memory.size
        taken = [verdict.lag for verdict in answers if verdict.weight]
        self._lags += taken
        self._dropped += not taken
        return bool(taken)

    def _take_bytes(self) -> int:
        taken, self._bytes = self._bytes, 0
        return taken
