"""Tries a network, a loss and a row source on a tiny synthetic batch, as a run will use them, before it starts."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from league.agents.learner.algorithms.objective import LossWeights, learns_from
from league.agents.learner.build import candidate_dtypes, default_device, local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import SourcePlace, make_row_source
from league.agents.learner.evolution.evolution_updater import make_evolving
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.step.backend import Placement
from league.agents.learner.step.updater import UpdateInputs
from league.agents.nets.network import Network
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import FlatParameters, Weights, layout_of
from league.envs.plugins import first_line
from league.envs.protocol import EnvSpec

ROWS, STEPS, SEED = 3, 2, 0
CPU = torch.device("cpu")
OTHER_TYPE = (
    "; a network also computes in bfloat16 where that is faster: convert inputs as "
    "league.agents.nets.blocks.compute_dtype says, or set learner.precision: float32"
)


def try_network(network: Network, spec: EnvSpec, config: LearnerConfig) -> None:
    """One step of acting, and one draw, in every compute type that the run may choose.

    Raises:
      ValueError: the network raised, or gave a state of another form; or its head drew actions of no probability.
    """
    unrolls = synthetic_unrolls(UnrollSpec.of(spec, network, unroll_length=STEPS), rows=ROWS, seed=SEED)
    obs = {name: torch.from_numpy(array[:, 0].copy()) for name, array in unrolls.obs.items()}
    mask = None if unrolls.action_mask is None else torch.from_numpy(unrolls.action_mask[:, 0].copy())
    core = torch.zeros(ROWS, network.core_size)

    def act(dtype: torch.dtype) -> None:
        with torch.inference_mode():
            tried = copy.deepcopy(network).to(dtype).eval()
            output = tried.step(obs, core=core, action_mask=mask)
            _, log_probs = tried.head.sample(output.logits, torch.full((ROWS, tried.head.num_noise), 0.5))
        if network.core_size and (output.core.dtype != torch.float32 or output.core.shape != core.shape):
            raise ValueError(f"the core state is {output.core.dtype} {list(output.core.shape)}, not float32 [rows, C]")
        if log_probs.shape != (ROWS,) or not bool(torch.isfinite(log_probs).all()):
            raise ValueError(f"the log-probabilities of sampled actions are {log_probs.tolist()}")

    _in_every_type(act, config)


def try_objective(network: Network, spec: EnvSpec, config: LearnerConfig) -> None:
    """The gradient of the loss in every compute type that the run may choose.

    Raises:
      ValueError: network or loss raised, or the gradient is not finite.
    """
    alone = replace(
        config,
        pipeline=PipelineConfig(backend="single"),
        microbatches=1,
        compile_mode="none",
        teacher_cost=0.0,
        teacher_cost_end=0.0,
    )
    shape = UnrollSpec.of(spec, network, unroll_length=STEPS, recorded=learns_from(config))
    unrolls = synthetic_unrolls(shape, rows=ROWS, seed=SEED)
    inputs = UpdateInputs(1e-3, LossWeights(0.1, 1.0), oldest_version=0, microbatches_per_block=1)

    def learn(dtype: torch.dtype) -> None:
        updater = local_updater(copy.deepcopy(network), alone, Placement(dtype, CPU))
        try:
            updater.gradients([unrolls], inputs)
            finite = bool(torch.isfinite(torch.from_numpy(updater.gradient_vector())).all())
        finally:
            updater.close()
        if not finite:
            raise ValueError("the gradient of a random batch is not finite")

    _in_every_type(learn, config)


def try_evolving(network: Network, config: LearnerConfig) -> None:
    """Two episodes in, weights and a restart state out, and in again.

    Raises:
      ValueError: the weights are not as many as the network's, or not finite.
    """
    vector, layout = FlatParameters(network).values.numpy(), layout_of(network)
    updater = make_evolving(vector, config, seed=SEED)
    try:
        episodes = SeatEpisodes(
            perturbations=np.array([1, -1], np.int32),
            returns=np.array([0.5, -0.5], np.float32),
            decisions=np.array([STEPS, STEPS], np.int32),
            versions=np.zeros(2, np.int32),
        )
        updater.update([episodes], UpdateInputs(1e-3, LossWeights(0.1, 1.0), 0, 1))
        weights = updater.weights()
        if weights.shape != vector.shape or not np.isfinite(weights).all():
            raise ValueError(f"its weights are {list(weights.shape)} and not {list(vector.shape)} finite numbers")
        updater.published(Weights(weights, layout, 1))
        updater.load(updater.save())
    finally:
        updater.close()


def try_row_source(spec: EnvSpec, config: LearnerConfig) -> None:
    """A batch in and, where the source hands it out at once, out again.

    Raises:
      ValueError: the source took rows and gave others, or none of a batch that it said was ready.
    """
    alone = replace(config, unroll_length=STEPS, batch_rows=ROWS, microbatches=1, pipeline=PipelineConfig())
    unrolls = UnrollSpec(spec, STEPS)
    source = make_row_source(unrolls, alone, SourcePlace(lambda rows: rows, chunk_rows=ROWS, threads=0))
    try:
        source.push(synthetic_unrolls(unrolls, rows=ROWS, seed=SEED), num_rows=ROWS)
        if source.rows_ready >= ROWS:
            with source.batch(timeout_s=1.0) as blocks:
                given = sum(block.num_rows for block in blocks)
                source.learnt(None)
            if given != ROWS:
                raise ValueError(f"a batch of {ROWS} rows came as {given}")
        source.report()
    finally:
        source.close()


def _in_every_type(attempt: Callable[[torch.dtype], None], config: LearnerConfig) -> None:
    for dtype in candidate_dtypes(config.precision, default_device()):
        try:
            attempt(dtype)
        except Exception as error:  # code of others may stand behind any part
            name = str(dtype).removeprefix("torch.")
            hint = OTHER_TYPE if dtype is torch.bfloat16 else ""
            raise ValueError(f"a trial in {name} raised {type(error).__name__}: {first_line(error)}{hint}") from error
