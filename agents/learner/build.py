"""Builds a learner from its config: wires network, device, precision and backend together."""

from __future__ import annotations

import dataclasses
import logging
import time

import numpy as np
import torch

from league.agents.learner.algorithms.objective import learns_from, make_objective
from league.agents.learner.config import PRECISIONS, LearnerConfig
from league.agents.learner.data.batch import batch_from
from league.agents.learner.evolution.evolution_updater import make_evolving
from league.agents.learner.gradient_check import BATCH_SEED, check_gradients, tolerance
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline.partition import plan_pipeline
from league.agents.learner.pipeline.stages import boundaries_of, cut_network
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.replicas.config import replica_problems
from league.agents.learner.replicas.free_config import free_problems
from league.agents.learner.replicas.replica_group import ProcessReplicas
from league.agents.learner.replicas.update_mode import make_update_mode
from league.agents.learner.step.backend import Boundary, Placement, make_backend
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.learner.step.updater import LocalUpdater, Updater
from league.agents.learner.workers.distributed_updater import UpdaterGroup
from league.agents.learner.workers.free_group import FreeGroup
from league.agents.learner.workers.thread_group import ThreadWorkerGroup
from league.agents.learner.workers.worker import NetworkPlan, WorkerSetup
from league.agents.learner.workers.worker_group import ProcessWorkerGroup, WorkerGroupLauncher
from league.agents.nets.config import NetworkConfig
from league.agents.nets.kernels.dense import CPU_BFLOAT16
from league.agents.nets.network import Network, build_network
from league.agents.restart_state import weights_alone
from league.agents.torch_runtime import keep_float32, with_own_defaults
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import FlatParameters, Layout, Weights, WeightsError, layout_of, require_finite
from league.envs.component_choice import given_options, kind_of
from league.envs.protocol import EnvSpec

logger = logging.getLogger(__name__)

TIMED_ROWS, FEW_ROWS = 1024, 64
"""Rows of a pass that is timed, and of one where so many of them would take longer than `LONGEST_PASS_S`."""
TIMED_PASSES, LONGEST_PASS_S = 5, 0.3
MIN_SPEED_UP = 1.1
"""bfloat16 must be this much faster than float32 to be chosen: otherwise the rounding gains nothing."""


def build_learner(
    spec: EnvSpec,
    network_config: NetworkConfig,
    config: LearnerConfig,
    *,
    seed: int,
    dtype: torch.dtype,
    teacher: Weights | None = None,
    launcher: WorkerGroupLauncher = ProcessWorkerGroup,
    stage_device: torch.device | None = None,
    run_seed: int = 0,
) -> Learner:
    """Build a learner with freshly initialised weights, on the GPU if there is one.

    Args:
      spec: the game.
      network_config, config: settings.
      seed: of the initial weights.
      dtype: compute type of the forward pass (see `choose_dtype`).
      teacher: weights of the teacher of `config.teacher_cost`, of the same network.
      launcher: starts workers if the config needs any.
      stage_device: device of those workers; None for a GPU each if this machine has as many, else the CPU.
      run_seed: of what all hosts of a run make alike: the noise of evolution strategies.
    Raises:
      ValueError: a setting is impossible; the message lists all.
      WeightsError: the teacher is of another network, or not finite.
      StageError: a worker did not come up.
      GradientCheckError: the backend's gradients are wrong.
    """
    updater, layout = build_updater(
        NetworkPlan(spec, network_config, seed),
        config,
        dtype=dtype,
        teacher=teacher,
        launcher=launcher,
        stage_device=stage_device,
        run_seed=run_seed,
    )
    try:
        return Learner(updater, layout, config, teacher=None if teacher is None else teacher.vector)
    except BaseException:
        updater.close()
        raise


@with_own_defaults
def build_updater(
    plan: NetworkPlan,
    config: LearnerConfig,
    *,
    dtype: torch.dtype,
    teacher: Weights | None = None,
    launcher: WorkerGroupLauncher = ProcessWorkerGroup,
    stage_device: torch.device | None = None,
    run_seed: int = 0,
) -> tuple[Updater, Layout]:
    """Build the updater and the layout of its weights; arguments and errors as of `build_learner`.

    With stages, replicas or a compiled network, this starts the workers and compares the gradients with plain
    autograd's. The cut into stages is timed on the stages' device.
    """
    problems = [*config.problems(), *config.problems_with(plan.config.value_output), *group_problems(plan.spec, config)]
    problems += replica_problems(
        config.pipeline.update_mode,
        replicas=config.pipeline.replicas,
        value_normalisation=config.value_normalisation,
    )
    problems += free_problems(config)
    if config.has_teacher and teacher is None:
        problems.append(f"teacher_cost: {config.teacher_cost} to {config.teacher_cost_end} needs the teacher's weights")
    if problems:
        raise ValueError("; ".join(problems))
    network = plan.build()
    layout = layout_of(network)
    here = Placement(dtype=dtype, device=default_device())
    _check_teacher(teacher, layout)
    if config.evolves:
        return make_evolving(FlatParameters(network).values.numpy(), config, seed=run_seed), layout
    if config.pipeline.backend_name == "single" and config.pipeline.num_workers == 0 and config.compile_mode == "none":
        alone = local_updater(network, config, here)
        _load_teacher(alone, teacher)
        return alone, layout
    learnt = learns_from(config)
    unrolls = UnrollSpec.of(plan.spec, network, unroll_length=config.unroll_length, recorded=learnt)
    there = here
    problems = mode_problems(config, size=layout.size, device=device_of_workers(config, stage_device))
    if problems:
        raise ValueError("; ".join(problems))
    if config.pipeline.num_workers:
        there = dataclasses.replace(here, device=device_of_workers(config, stage_device))
    boundaries: tuple[Boundary, ...] = ()
    if config.pipeline.stages > 1:
        config, boundaries = _with_stage_cut(network, unrolls, config, there)
    updater: UpdaterGroup | FreeGroup | LocalUpdater
    if config.pipeline.num_workers:
        updater = _start_workers(plan, config, boundaries, layout, placement=there, launcher=launcher)
    else:
        updater = local_updater(plan.build(), config, here)
    try:
        _load_teacher(updater, teacher)
        _require_equal_gradients(updater, network, unrolls, layout, teacher=teacher, config=config, placement=here)
    except BaseException:
        updater.close()
        raise
    return updater, layout


def group_problems(spec: EnvSpec, config: LearnerConfig) -> list[str]:
    """Settings that do not go with seat groups, one sentence each that starts with the field's name."""
    problems = []
    if len(config.reward_scales) not in (0, 1, len(spec.seat_groups)):
        groups = ", ".join(group.name for group in spec.seat_groups) or "there are none"
        count = len(config.reward_scales)
        problems.append(f"reward_scales: {count} factors; give one for all, or one for each seat group ({groups})")
    if not spec.seat_groups:
        return problems
    why = f"the {len(spec.seat_groups)} seat groups of {spec.env_id} have networks of their own"
    if config.pipeline.stages > 1:
        problems.append(f"pipeline.stages: {config.pipeline.stages} stages are for one network, but {why}; use 1")
    if config.compile_mode != "none":
        problems.append(f"compile_mode: {config.compile_mode} is for one network, but {why}; use none")
    return problems


def mode_problems(config: LearnerConfig, *, size: int, device: torch.device | None = None) -> list[str]:
    """Settings of replicas on clocks of their own that do not go with a network or a machine, one sentence each.

    Args:
      size: parameters of the network. device: of the replicas; None for what this machine has.
    """
    device = device_of_workers(config, None) if device is None else device
    pipeline, place = config.pipeline, "pipeline.update_mode"
    found = []
    if pipeline.num_shards > size:
        found.append(f"{place}.shards: {pipeline.num_shards} shards for {size} parameters; use at most {size}")
    if kind_of(pipeline.update_mode) == "hogwild" and device.type != "cpu":
        found.append(
            f"{place}: the replicas of hogwild change the same weights in the memory of one machine, and GPUs compute "
            f"with copies; hide the GPUs from the run, or use parameter_server for {pipeline.replicas} replicas"
        )
    return found


def device_of_workers(config: LearnerConfig, stated: torch.device | None) -> torch.device:
    """The device to time and place stages on: as stated, else a GPU per worker if there are as many, else the CPU.

    Stages on GPUs of other machines are timed on the CPU if this process sees no GPU.
    """
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if stated is None:
        return torch.device("cuda" if gpus >= config.pipeline.num_workers - config.pipeline.num_shards else "cpu")
    return stated if gpus or stated.type == "cpu" else torch.device("cpu")


def _check_teacher(teacher: Weights | None, layout: Layout) -> None:
    """Refuse a teacher whose weights cannot replace the policy's.

    Raises:
      WeightsError: it has another network, or a weight that is not finite.
    """
    if teacher is None:
        return
    if teacher.layout != layout:
        raise WeightsError(
            f"the teacher has another network ({teacher.layout.size} numbers) than the policy ({layout.size}): "
            "train with the teacher's network settings"
        )
    require_finite(teacher.vector)


def _load_teacher(updater: Updater, teacher: Weights | None) -> None:
    """Give a new updater its teacher."""
    if teacher is not None:
        updater.load(weights_alone(updater.weights(), teacher=teacher.vector))


def _with_stage_cut(
    network: Network, spec: UnrollSpec, config: LearnerConfig, placement: Placement
) -> tuple[LearnerConfig, tuple[Boundary, ...]]:
    """The config with its cut, and the output of each stage; logs the predicted costs."""
    network = network.to(placement.device)
    unrolls = synthetic_unrolls(spec, rows=config.microbatch_rows, seed=BATCH_SEED)
    batch = batch_from(unrolls, oldest_version=0, device=placement.device)
    pipeline = plan_pipeline(network, make_objective(config, network.head), batch, config, placement)
    logger.info(pipeline.describe())
    boundaries = boundaries_of(cut_network(network, pipeline.cut), batch.rows(0, 1), placement)
    planned = dataclasses.replace(config.pipeline, stage_cut=pipeline.cut)
    return dataclasses.replace(config, pipeline=planned), boundaries


def _start_workers(
    plan: NetworkPlan,
    config: LearnerConfig,
    boundaries: tuple[Boundary, ...],
    layout: Layout,
    *,
    placement: Placement,
    launcher: WorkerGroupLauncher,
) -> UpdaterGroup | FreeGroup:
    """Start workers on the placement's device, a GPU each; the launcher may place them elsewhere.

    The shards of a parameter server are on the CPU.
    """
    on_gpu = placement.device.type == "cuda"
    num_computing = config.pipeline.num_workers - config.pipeline.num_shards
    setups = [
        WorkerSetup(
            plan=plan,
            config=config,
            rank=rank,
            dtype=str(placement.dtype).removeprefix("torch."),
            device=f"cuda:{rank}" if on_gpu and rank < num_computing else "cpu",
            boundaries=boundaries,
            rendezvous="",
        )
        for rank in range(config.pipeline.num_workers)
    ]
    group: UpdaterGroup | FreeGroup
    if config.pipeline.is_free:
        in_threads = given_options(config.pipeline.update_mode).get("workers") == "threads"
        group = FreeGroup(setups, layout, config, launcher=ThreadWorkerGroup if in_threads else launcher)
    else:
        group = UpdaterGroup(setups, layout, config, launcher=launcher)
    group.start()
    return group


def _require_equal_gradients(
    updater: UpdaterGroup | FreeGroup | LocalUpdater,
    network: Network,
    spec: UnrollSpec,
    layout: Layout,
    *,
    teacher: Weights | None,
    config: LearnerConfig,
    placement: Placement,
) -> None:
    """Compare the updater's gradients with those of the whole network in this process.

    They are computed on the device of the updater's workers if this process has it: other devices round differently.
    """
    alone = dataclasses.replace(config, pipeline=PipelineConfig(backend="single"), microbatches=1, compile_mode="none")
    device_type = placement.device.type if isinstance(updater, LocalUpdater) else updater.device_type
    if device_type == "cpu" or torch.cuda.is_available():
        placement = dataclasses.replace(placement, device=torch.device(device_type))
    reference = local_updater(network, alone, placement)
    _load_teacher(reference, teacher)
    worst = check_gradients(
        updater,
        reference,
        spec=spec,
        layout=layout,
        config=config,
        at_most=tolerance(placement.dtype, same_device=placement.device.type == device_type),
    )
    logger.info("gradients agree with plain autograd to %.1e", worst)


@with_own_defaults
def local_updater(network: Network, config: LearnerConfig, placement: Placement) -> LocalUpdater:
    """Build an updater in this process; it owns the network and moves it to the placement's device."""
    keep_float32()
    network = network.to(placement.device)
    objective = make_objective(config, network.head)
    optimizer = FlatOptimizer(network, config, keep_target=objective.passes.target)
    return LocalUpdater(
        backend=make_backend(network, objective, config, placement),
        objective=objective,
        optimizer=optimizer,
        heads=network.blocks[-1].module,
        mode=make_update_mode(config.pipeline.update_mode, ProcessReplicas(None)),
        placement=placement,
        config=config,
    )


def default_device() -> torch.device:
    """The GPU if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def candidate_dtypes(precision: str, device: torch.device) -> list[torch.dtype]:
    """The compute types that a precision setting may come to on a device: "auto" only what it has instructions for."""
    meant = PRECISIONS[precision]
    if meant != "auto":
        return [torch.bfloat16 if meant == "bfloat16" else torch.float32]
    return [torch.float32, torch.bfloat16] if device.type != "cpu" or CPU_BFLOAT16 else [torch.float32]


@with_own_defaults
def choose_dtype(spec: EnvSpec, network_config: NetworkConfig, precision: str) -> torch.dtype:
    """The compute type of a precision setting on this machine; "auto" times both types on a small batch."""
    device = default_device()
    candidates = candidate_dtypes(precision, device)
    if len(candidates) == 1:
        return candidates[0]
    network = build_network(spec, network_config, seed=0).to(device)
    few_s = _time_of_pass(network, spec, torch.float32, device, rows=FEW_ROWS, passes=2)
    rows = FEW_ROWS if few_s * TIMED_ROWS / FEW_ROWS > LONGEST_PASS_S else TIMED_ROWS
    float32_s, bfloat16_s = (
        _time_of_pass(network, spec, dtype, device, rows=rows, passes=TIMED_PASSES) for dtype in candidates
    )
    return torch.bfloat16 if float32_s > MIN_SPEED_UP * bfloat16_s else torch.float32


def _time_of_pass(
    network: Network, spec: EnvSpec, dtype: torch.dtype, device: torch.device, *, rows: int, passes: int
) -> float:
    """Time of the shortest of a few forward and backward passes, in seconds of CPU time (on a GPU of wall time)."""
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    obs = {
        name: torch.from_numpy(np.zeros((rows, 1, *array.shape), np.dtype(array.dtype))).to(device)
        for name, array in spec.observations.items()
    }
    shortest = float("inf")
    for _ in range(passes):
        start = clock()
        with torch.autocast(device.type, dtype=dtype, enabled=dtype != torch.float32):
            output = network(obs)
        (output.logits.sum() + output.values.sum()).backward()
        if device.type == "cuda":
            torch.cuda.synchronize()
        shortest = min(shortest, clock() - start)
    return shortest
