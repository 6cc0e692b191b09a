"""One worker of a group: a replica's stages, joined to the other workers by process groups. Independent of transport.

Its host (a child process, a Ray actor) makes one `GroupWorker` from its setup and passes requests to `handle`.

Shape letters: R replicas, W workers of one replica's pipeline. Rank = replica * W + place in the pipeline.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import nn
from torch.distributed import ProcessGroup

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.errors import PeersLostError
from league.agents.learner.pipeline.stages import cut_network
from league.agents.learner.replicas.free_replicas import FreeTally
from league.agents.learner.replicas.replica_group import ProcessReplicas
from league.agents.learner.replicas.update_mode import make_update_mode
from league.agents.learner.step.backend import Boundary, Placement, make_backend
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.learner.step.updater import LocalUpdater, UpdateInputs, UpdateResult
from league.agents.learner.workers.row_memory import StoredRows
from league.agents.nets.blocks import Block
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network
from league.agents.restart_state import Arrays, is_averaged
from league.agents.torch_runtime import keep_float32, prepare_process
from league.agents.unroll.unroll import Unrolls
from league.agents.weights import Layout
from league.envs.plugins import load
from league.envs.protocol import EnvSpec

BUILDER = "league.agents.nets.network:build_network"


@dataclass(frozen=True)
class NetworkPlan:
    """The arguments from which every worker builds the same network.

    Fields:
      spec, config, seed: arguments of the builder. builder: "module:attribute" with the signature of `build_network`.
    """

    spec: EnvSpec
    config: NetworkConfig
    seed: int
    builder: str = BUILDER

    def build(self) -> Network:
        """Build the network, freshly initialised, on the CPU."""
        return cast(Network, load(self.builder)(self.spec, self.config, seed=self.seed))


@dataclass(frozen=True)
class WorkerSetup:
    """The arguments that start a worker.

    Fields:
      plan: of the network; config: of the learner, with `stage_cut` filled in.
      rank: of this worker among `config.pipeline.num_workers`.
      dtype: name of the compute type; device: "cpu" or "cuda:0".
      boundaries: output of each stage.
      rendezvous: address at which the workers meet, an init_method of torch.distributed.
      folder: of the memory that the members of a free group share; empty for other groups.
    """

    plan: NetworkPlan
    config: LearnerConfig
    rank: int
    dtype: str
    device: str
    boundaries: tuple[Boundary, ...]
    rendezvous: str
    folder: str = ""


@dataclass(frozen=True)
class Update:
    """Request to learn from rows: answered with an `Updated`.

    Fields:
      rows: themselves, or where a member of a free group finds them.
      gives_weights: True if the answer shall hold the new weights: a separate request costs as much as an update.
    """

    rows: Unrolls | StoredRows
    inputs: UpdateInputs
    gives_weights: bool


@dataclass(frozen=True)
class Updated:
    """The result of an update, and float32 [P] of this worker's parameters after it, or None if not requested.

    Fields:
      tally: of a free mode.
    """

    result: UpdateResult
    weights: NDArray[np.float32] | None
    tally: FreeTally = field(default_factory=FreeTally)


@dataclass(frozen=True)
class PeersLost:
    """Answer to an update that another replica's end has broken off; this worker keeps its weights for a `Save`."""

    text: str


@dataclass(frozen=True)
class Gradients:
    """Request for the gradient of rows, without a step: answered with `GradientAnswer`."""

    rows: Unrolls
    inputs: UpdateInputs


@dataclass(frozen=True)
class GradientAnswer:
    """Sums over the whole batch, and the gradient float32 [P] of this worker's parameters."""

    stats: LossStats
    vector: NDArray[np.float32]


@dataclass(frozen=True)
class Describe:
    """Request for a `Description`."""


@dataclass(frozen=True)
class Description:
    """The section of the network that a worker holds.

    Fields:
      layout: of its parameters. needs_obs: True if any of its blocks reads observations.
      device_type: "cpu" or "cuda". replicas_differ: as of its update mode.
    """

    layout: Layout
    needs_obs: bool
    device_type: str
    replicas_differ: bool


@dataclass(frozen=True)
class GiveWeights:
    """Request for float32 [P] of this worker's parameters."""


@dataclass(frozen=True)
class Save:
    """Request for the arrays of this worker's optimizer and update mode.

    Fields:
      averaged_only: True for those alone that are averaged over replicas.
    """

    averaged_only: bool = False


@dataclass(frozen=True)
class Load:
    """Request to continue from arrays of this worker's parameters: answered with None."""

    saved: Arrays


@dataclass(frozen=True)
class Rejoin:
    """Request to a member of a free group that was lost to continue beside the others: answered with None."""

    saved: Arrays


Request = Update | Gradients | Describe | GiveWeights | Save | Load | Rejoin
Answer = Updated | PeersLost | GradientAnswer | Description | NDArray[np.float32] | Arrays | None


class GroupWorker:
    """Joins the group in its constructor, which returns when all workers have joined."""

    def __init__(self, setup: WorkerSetup) -> None:
        config, device = setup.config, torch.device(setup.device)
        if device.type == "cpu":
            prepare_process()
        else:
            keep_float32()
            torch.cuda.set_device(device)
        dist.init_process_group(
            "nccl" if device.type == "cuda" else "gloo",
            init_method=setup.rendezvous,
            rank=setup.rank,
            world_size=config.pipeline.num_workers,
            timeout=datetime.timedelta(seconds=config.pipeline.stage_timeout_s),
        )
        pipe_group, replica_group = _groups(setup)
        warm_up((pipe_group, replica_group), device)
        placement = Placement(
            dtype=getattr(torch, setup.dtype),
            device=device,
            worker=setup.rank % config.pipeline.pipeline_workers,
            pipe_group=pipe_group,
            boundaries=setup.boundaries,
        )
        network = setup.plan.build()
        blocks = _own_blocks(network, config, placement)
        own = nn.ModuleDict({"parts": nn.ModuleDict({block.name: block.module for block in blocks})}).to(device)
        objective = make_objective(config, network.head)
        optimizer = FlatOptimizer(own, config, keep_target=objective.passes.target, pipe_group=pipe_group)
        mode = make_update_mode(config.pipeline.update_mode, ProcessReplicas(replica_group))
        self._description = Description(
            optimizer.layout,
            any("obs" in block.side_inputs for block in blocks),
            device_type=device.type,
            replicas_differ=mode.replicas_differ,
        )
        self._updater = LocalUpdater(
            backend=make_backend(network, objective, config, placement),
            objective=objective,
            optimizer=optimizer,
            heads=network.blocks[-1].module,
            mode=mode,
            placement=placement,
            config=config,
        )

    def handle(self, request: Request) -> Answer:
        """Serve a request; every worker of a group gets the same requests in the same order."""
        try:
            return answer_of(self._updater, self._description, request)
        except PeersLostError as error:
            # Replicas that wait for this one notice it now. In a thread: the end of a broken group may wait for peers.
            threading.Thread(target=dist.destroy_process_group, daemon=True).start()
            return PeersLost(str(error))

    def close(self) -> None:
        """Leave the group."""
        self._updater.close()
        if dist.is_initialized():
            dist.destroy_process_group()


def answer_of(updater: LocalUpdater, description: Description, request: Request) -> Answer:
    """The answer of a worker with this updater."""
    match request:
        case Update(rows, inputs, gives_weights):
            result = updater.update([rows.open() if isinstance(rows, StoredRows) else rows], inputs)
            return Updated(result, updater.weights() if gives_weights else None)
        case Gradients(rows, inputs):
            stats = updater.gradients([rows], inputs)
            return GradientAnswer(stats, updater.gradient_vector())
        case Describe():
            return description
        case GiveWeights():
            return updater.weights()
        case Save(averaged_only):
            saved = updater.save()
            return {name: saved[name] for name in filter(is_averaged, saved)} if averaged_only else saved
        case Load(saved) | Rejoin(saved):
            updater.load(saved)
            return None


def warm_up(groups: Iterable[ProcessGroup | None], device: torch.device) -> None:
    """Connect the members of each group before the first batch.

    With shapes given in advance the library sends nothing first. NCCL would then build its communicator inside
    a mixed batch of sends and receives, where two workers may wait for each other.
    """
    for group in groups:
        if group is not None:
            dist.all_reduce(torch.zeros(1, device=device), group=group)


def _own_blocks(network: Network, config: LearnerConfig, placement: Placement) -> list[Block]:
    """The blocks that this worker trains."""
    if config.pipeline.backend_name != "torch_pipeline":
        return list(network.blocks)
    stages = cut_network(network, config.pipeline.stage_cut)
    return [block for stage in stages[placement.worker :: config.pipeline.pipeline_workers] for block in stage.blocks]


def _groups(setup: WorkerSetup) -> tuple[ProcessGroup | None, ProcessGroup | None]:
    """The group of this worker's pipeline, and that of the workers with the same stages in the other replicas.

    Every worker makes every group, its own or not, in the same order: the library demands it.
    """
    workers, replicas = setup.config.pipeline.pipeline_workers, setup.config.pipeline.replicas
    replica, place = divmod(setup.rank, workers)
    pipe_group = replica_group = None
    for index in range(replicas):
        group = dist.new_group([index * workers + at for at in range(workers)]) if workers > 1 else None
        pipe_group = group if index == replica else pipe_group
    for at in range(workers):
        group = dist.new_group([index * workers + at for index in range(replicas)]) if replicas > 1 else None
        replica_group = group if at == place else replica_group
    return pipe_group, replica_group
