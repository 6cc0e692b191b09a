"""Gradients of the library pipeline in real processes against plain autograd in one, in float32 and float64."""

from __future__ import annotations

import dataclasses
import datetime
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.multiprocessing.spawn import spawn

from benchmarks.learner.policies import CONTROL, GAME, SIZES, build_lstm, build_transformer
from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch, batch_from
from league.agents.learner.pipeline.stages import boundaries_of, cut_network, even_cut
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.replicas.replica_group import ProcessReplicas
from league.agents.learner.step.backend import Placement, SingleBackend, make_backend
from league.agents.nets.network import Network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec

CPU = torch.device("cpu")
ROWS, STEPS = 24, 6
DEADLINE = datetime.timedelta(seconds=60)
COEFFICIENTS = LossWeights(entropy_cost=0.1, advantage_scale=0.7)
BUILDERS = {"lstm": build_lstm, "transformer": build_transformer}
GAMES = {"categorical": GAME, "box": CONTROL}


@dataclass(frozen=True)
class Case:
    """One comparison.

    Fields:
      net, head: keys of `BUILDERS` and `GAMES`. dtype: "float32" or "float64".
      backend: of the learner, or "data parallel": every process learns from its own rows.
      stages, schedule, microbatches: as in the learner's config.
    """

    net: str
    head: str
    dtype: str
    backend: str
    stages: int
    schedule: str
    microbatches: int

    @property
    def name(self) -> str:
        """As it stands in the table."""
        return f"{self.net}, {self.head}, {self.backend} {self.schedule} S={self.stages} M={self.microbatches}"


def let_float64_through() -> None:
    """Networks answer in float32 whatever they compute in; in this process float64 stays what it is."""
    plain: Any = torch.Tensor.float

    def answer(tensor: Tensor) -> Any:
        return tensor if tensor.dtype == torch.float64 else plain(tensor)

    torch.Tensor.float = answer  # type: ignore[method-assign,assignment]


def network_of(case: Case) -> Network:
    """The case's network; its last layer scaled up, so that ratios differ from 1 and clips bite."""
    network = BUILDERS[case.net](GAMES[case.head], SIZES, seed=1)
    with torch.no_grad():
        for name, parameter in network.blocks[-1].module.named_parameters():
            if name.endswith("weight"):
                parameter.mul_(30.0)
    return network.to(getattr(torch, case.dtype))


def batch_of(case: Case, network: Network) -> Batch:
    """Unrolls with resets, masks, ends, invalid and unlearnt steps."""
    spec = GAMES[case.head]
    unrolls = synthetic_unrolls(UnrollSpec.of(spec, network, unroll_length=STEPS), rows=ROWS, seed=3)
    batch = batch_from(unrolls, oldest_version=0, device=CPU)
    learn = batch.learn.clone()
    learn[::5, ::2] = False
    dtype = getattr(torch, case.dtype)

    def cast(tensor: Tensor) -> Tensor:
        return tensor.to(dtype) if tensor.is_floating_point() else tensor

    floats: dict[str, Any] = {
        name: cast(getattr(batch, name)) for name in ("core", "actions", "log_probs", "rewards", "discounts")
    }
    obs = {name: cast(field) for name, field in batch.obs.items()}
    return dataclasses.replace(batch, obs=obs, learn=learn, **floats)


def largest_difference(case: Case, *, worker: int = 0, group: dist.ProcessGroup | None = None) -> float:
    """Of the gradients that this process computes, relative to the largest gradient of the whole network."""
    placement = Placement(dtype=getattr(torch, case.dtype), device=CPU)
    plain = network_of(case)
    batch = batch_of(case, plain)
    base = LearnerConfig(batch_rows=ROWS, unroll_length=STEPS)
    objective = make_objective(base, plain.head)
    SingleBackend(plain, objective, base, placement).accumulate([batch], COEFFICIENTS)
    network = network_of(case)
    if case.backend == "data parallel":
        _accumulate_in_parallel(network, batch, placement, worker)
    else:
        _accumulate_in_stages(case, network, batch, placement, worker=worker, group=group)
    expected = dict(plain.named_parameters())
    scale = max(float(parameter.grad.abs().max()) for parameter in expected.values() if parameter.grad is not None)
    worst = 0.0
    for name, parameter in network.named_parameters():
        reference = expected[name].grad
        if parameter.grad is not None and reference is not None:
            worst = max(worst, float((parameter.grad - reference).abs().max()) / scale)
    return worst


def _accumulate_in_parallel(network: Network, batch: Batch, placement: Placement, worker: int) -> None:
    rows_each = batch.num_rows // dist.get_world_size()
    config = LearnerConfig()
    backend = SingleBackend(network, make_objective(config, network.head), config, placement)
    backend.accumulate([batch.rows(worker * rows_each, (worker + 1) * rows_each)], COEFFICIENTS)
    replicas = ProcessReplicas(dist.group.WORLD)
    for parameter in network.parameters():
        assert parameter.grad is not None, "every parameter takes part"
        replicas.add_up(parameter.grad)


def _accumulate_in_stages(
    case: Case, network: Network, batch: Batch, placement: Placement, *, worker: int, group: dist.ProcessGroup | None
) -> None:
    pipeline = PipelineConfig(backend=case.backend, stages=case.stages, schedule=case.schedule)
    config = LearnerConfig(batch_rows=ROWS, unroll_length=STEPS, microbatches=case.microbatches, pipeline=pipeline)
    objective = make_objective(config, network.head)
    stages = cut_network(network, even_cut(len(network.blocks), case.stages)) if case.stages > 1 else ()
    boundaries = boundaries_of(stages, batch, placement)
    backend = make_backend(
        network,
        objective,
        config,
        dataclasses.replace(placement, worker=worker, pipe_group=group, boundaries=boundaries),
    )
    backend.accumulate(batch.microbatches(case.microbatches), COEFFICIENTS)
    backend.close()


def _rank(rank: int, num_ranks: int, cases: Sequence[Case], folder: str) -> None:
    """The life of one process: all cases, one after the other; the worst of all ranks lands in a file of rank 0."""
    prepare_process()
    let_float64_through()
    init = f"file://{folder}/rendezvous"
    dist.init_process_group("gloo", init_method=init, rank=rank, world_size=num_ranks, timeout=DEADLINE)
    worst = torch.zeros(len(cases), dtype=torch.float64)
    for at, case in enumerate(cases):
        worst[at] = largest_difference(case, worker=rank, group=dist.group.WORLD)
    dist.all_reduce(worst, op=dist.ReduceOp.MAX)
    if rank == 0:
        Path(folder, "worst").write_text(" ".join(str(value) for value in worst.tolist()))
    dist.barrier()
    # Not a return: the transport's threads now and then abort a process that destroys them in the wrong order.
    os._exit(0)


def run_in_processes(cases: Sequence[Case], num_ranks: int) -> Iterator[tuple[Case, float]]:
    """Every case with the largest difference over all ranks."""
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo" if sys.platform == "linux" else "lo0")
    with tempfile.TemporaryDirectory() as folder:
        spawn(_rank, args=(num_ranks, cases, folder), nprocs=num_ranks)  # type: ignore[no-untyped-call]
        values = [float(text) for text in Path(folder, "worst").read_text().split()]
    return zip(cases, values, strict=True)
