"""Cuts a network into stages: times its blocks, minimises the slowest stage, and predicts bubble and memory.

Shape letters: S stages, M microbatches, b rows of one microbatch, T unroll length.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from league.agents.learner.algorithms.objective import LossWeights, Objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.pipeline.schedules import ideal_bubble, makespan
from league.agents.learner.pipeline.stages import Stage, cut_network, even_cut
from league.agents.learner.pipeline_config import LOOPED_SCHEDULES
from league.agents.learner.step.backend import Placement
from league.agents.nets.network import Network, NetworkOutput

REPEATS = 3

BYTES_PER_PARAMETER = 16
"""Bytes per parameter: weight, gradient and Adam's two moments in float32."""


@dataclass(frozen=True)
class BlockCost:
    """The cost of one block for one microbatch.

    Fields:
      name: of the block.
      forward_s, backward_s: seconds; the last block's include the loss.
      saved_bytes: kept for the backward pass. parameter_bytes: weights, gradients and optimizer state.
    """

    name: str
    forward_s: float
    backward_s: float
    saved_bytes: int
    parameter_bytes: int


@dataclass(frozen=True)
class PipelinePlan:
    """A cut into stages, with its predicted costs.

    Fields:
      schedule, num_microbatches, stages_per_worker: as configured.
      cut: [S] blocks of each stage.
      stages: [S] costs of each stage's blocks.
    """

    schedule: str
    num_microbatches: int
    stages_per_worker: int
    cut: tuple[int, ...]
    stages: tuple[tuple[BlockCost, ...], ...]

    @property
    def forward_s(self) -> list[float]:
        """[S] seconds."""
        return [sum(block.forward_s for block in stage) for stage in self.stages]

    @property
    def backward_s(self) -> list[float]:
        """[S] seconds."""
        return [sum(block.backward_s for block in stage) for stage in self.stages]

    @property
    def predicted_bubble(self) -> float:
        """Idle fraction of the workers' time, in [0, 1): of this cut for gpipe and 1f1b, else of equal stages."""
        if self.schedule in LOOPED_SCHEDULES:
            return ideal_bubble(
                self.schedule,
                num_stages=len(self.cut),
                num_microbatches=self.num_microbatches,
                stages_per_worker=self.stages_per_worker,
            )
        span = makespan(
            self.schedule,
            forward_s=self.forward_s,
            backward_s=self.backward_s,
            num_microbatches=self.num_microbatches,
        )
        work = self.num_microbatches * (sum(self.forward_s) + sum(self.backward_s))
        return 1.0 - work / (len(self.cut) * span) if span else 0.0

    def memory_bytes(self, stage: int) -> int:
        """Memory of a stage: parameters with optimizer state, and the saved tensors of the microbatches in flight."""
        in_flight = self.num_microbatches
        if self.schedule != "gpipe":
            in_flight = min(self.num_microbatches, len(self.cut) - stage)
        return sum(block.parameter_bytes + in_flight * block.saved_bytes for block in self.stages[stage])

    def describe(self) -> str:
        """Describes the cut in lines of text."""
        ideal = ideal_bubble(
            self.schedule,
            num_stages=len(self.cut),
            num_microbatches=self.num_microbatches,
            stages_per_worker=self.stages_per_worker,
        )
        lines = [
            f"pipeline of {len(self.cut)} stages, {self.schedule}, {self.num_microbatches} microbatches: predicted "
            f"bubble {self.predicted_bubble:.0%} ({ideal:.0%} with equal stages)"
        ]
        for index, blocks in enumerate(self.stages):
            names = " + ".join(block.name for block in blocks)
            lines.append(
                f"  stage {index}: {names}; forward {1e3 * self.forward_s[index]:.2f} ms, "
                f"backward {1e3 * self.backward_s[index]:.2f} ms, memory {self.memory_bytes(index) / 2**20:.1f} MiB"
            )
        return "\n".join(lines)


def plan_pipeline(
    network: Network,
    objective: Objective,
    batch: Batch,
    config: LearnerConfig,
    placement: Placement,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> PipelinePlan:
    """Plan the cut of `config.pipeline.stage_cut`, or the one whose slowest stage is fastest.

    Args:
      network: on the placement's device.
      batch: one microbatch, of the size used in training.
      clock: seconds.
    Raises:
      ValueError: the network has fewer blocks than stages.
    """
    costs = measure_blocks(network, objective, batch, placement, clock=clock)
    pipeline = config.pipeline
    cut = pipeline.stage_cut or balance([cost.forward_s + cost.backward_s for cost in costs], pipeline.stages)
    cut_network(network, cut)
    ends = list(itertools.accumulate(cut))
    stages = tuple(tuple(costs[end - size : end]) for size, end in zip(cut, ends, strict=True))
    return PipelinePlan(pipeline.schedule, config.microbatches, pipeline.stages_per_worker, tuple(cut), stages)


def balance(seconds: Sequence[float], num_stages: int) -> tuple[int, ...]:
    """Numbers of consecutive blocks, [num_stages], that minimise the time of the slowest stage.

    Raises:
      ValueError: there are fewer blocks than stages.
    """
    even_cut(len(seconds), num_stages)
    stats = [0.0, *itertools.accumulate(seconds)]
    # best[end]: slowest stage and cut of the first `end` blocks; each round adds one stage.
    best: dict[int, tuple[float, tuple[int, ...]]] = {end: (stats[end], (end,)) for end in range(1, len(stats))}
    for stages in range(2, num_stages + 1):
        best = {
            end: min(
                (max(best[start][0], stats[end] - stats[start]), (*best[start][1], end - start))
                for start in range(stages - 1, end)
            )
            for end in range(stages, len(stats))
        }
    return best[len(seconds)][1]


def measure_blocks(
    network: Network,
    objective: Objective,
    batch: Batch,
    placement: Placement,
    *,
    clock: Callable[[], float] = time.perf_counter,
) -> list[BlockCost]:
    """Time a few forward and backward passes of every block and take the shortest; gradients stay unchanged."""
    stages = cut_network_into_blocks(network)
    batch = _with_precomputed(network, objective, batch, placement)
    features: Tensor | None = None
    costs = []
    for stage in stages:
        forward_s, backward_s, saved = float("inf"), float("inf"), 0
        for _ in range(REPEATS):
            given = None if features is None else features.detach().requires_grad_()
            saved, result, seconds = _forward(stage, given, objective, batch, placement=placement, clock=clock)
            forward_s = min(forward_s, seconds)
            backward_s = min(backward_s, _backward(stage, given, result, placement, clock))
        module = stage.blocks[0].module
        size = BYTES_PER_PARAMETER * sum(parameter.numel() for parameter in module.parameters())
        costs.append(BlockCost(stage.blocks[0].name, forward_s, backward_s, saved, size))
        features = result
    return costs


def cut_network_into_blocks(network: Network) -> list[Stage]:
    """Make each block its own stage, also those without parameters."""
    count = len(network.blocks)
    return [Stage(index, count, (block,), flat=network.core_size == 0) for index, block in enumerate(network.blocks)]


def _forward(
    stage: Stage,
    features: Tensor | None,
    objective: Objective,
    batch: Batch,
    *,
    placement: Placement,
    clock: Callable[[], float],
) -> tuple[int, Tensor, float]:
    """Run a forward pass; returns bytes kept for the backward pass, features or loss, and seconds."""
    kept: dict[int, int] = {}
    own = {parameter.data_ptr() for parameter in stage.modules.parameters()}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if tensor.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    _settle(placement)
    start = clock()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        with placement.autocast():
            result = stage.run(features, batch)
        if isinstance(result, NetworkOutput):
            result = objective.loss(result, batch, LossWeights(entropy_cost=0.1, advantage_scale=1.0)).total
    _settle(placement)
    return sum(kept.values()), result, clock() - start


def _backward(
    stage: Stage, features: Tensor | None, result: Tensor, placement: Placement, clock: Callable[[], float]
) -> float:
    """Time a backward pass in seconds; the parameters' gradients stay unchanged."""
    wanted: list[Tensor | nn.Parameter] = list(stage.modules.parameters())
    if features is not None:
        wanted.append(features)
    if not result.requires_grad:
        return 0.0
    gradient = torch.ones_like(result)
    _settle(placement)
    start = clock()
    torch.autograd.grad(result, wanted, gradient, allow_unused=True)
    _settle(placement)
    return clock() - start


@torch.no_grad()
def _with_precomputed(network: Network, objective: Objective, batch: Batch, placement: Placement) -> Batch:
    with placement.autocast():
        output = network(
            batch.obs,
            resets=batch.resets,
            core=batch.core,
            action_mask=batch.action_mask,
            host_resets=batch.host_resets,
        )
    precomputed = {
        **objective.precomputed(batch, current=output, total=lambda tensor: tensor),
        **objective.target_precomputed(batch, target=output),
    }
    return batch.with_precomputed(precomputed)


def _settle(placement: Placement) -> None:
    if placement.device.type == "cuda":
        torch.cuda.synchronize(placement.device)
