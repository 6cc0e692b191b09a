"""Objectives for which old decisions are right: nothing is masked, rows have errors, fresh decisions count once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.objective import needs_fresh
from league.agents.learner.algorithms.vtrace import VTraceObjective
from league.agents.learner.build import build_learner
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.unroll.unroll import Unrolls
from league.envs.protocol import EnvSpec
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, network_of, small_config, unrolls_of

MEASURED = f"{__name__}:Measured"


class Measured(VTraceObjective):
    """V-trace that calls every row as wrong as its rewards are large, and learns from old rows too."""

    needs_fresh = False

    def loss(self, output, batch, loss_weights):  # type: ignore[no-untyped-def]
        """As in the protocol."""
        loss = super().loss(output, batch, loss_weights)
        return dataclasses.replace(loss, row_errors=batch.rewards.abs().sum(1))


def learner_of(algorithm: object = MEASURED, spec: EnvSpec = BOARD_GAME, **changes: object) -> Learner:
    config = small_config(algorithm=algorithm, max_policy_lag=2, **changes)
    return build_learner(spec, MLP, config, seed=1, dtype=torch.float32)


def batch() -> Unrolls:
    return unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP), rows=12, steps=5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"microbatches": 3},
        {"pipeline": PipelineConfig(threads=3)},
        {"pipeline": PipelineConfig(backend="threaded_pipeline", stages=2), "microbatches": 3},
        pytest.param(
            {"pipeline": PipelineConfig(backend="torch_pipeline", stages=2), "microbatches": 3},
            marks=pytest.mark.xdist_group("forked workers"),
        ),
    ],
    ids=["whole", "microbatches", "threads", "stages in threads", "stages in processes"],
)
def test_errors_come_back_in_the_order_of_the_rows(changes) -> None:  # type: ignore[no-untyped-def]
    learner, rows = learner_of(**changes), batch()
    try:
        learner.update(rows, budget_fraction=0.0)
        assert learner.row_errors is not None and learner.row_errors.dtype == np.float32
        np.testing.assert_allclose(learner.row_errors, np.abs(rows.rewards).sum(1), rtol=1e-6)
    finally:
        learner.close()


def test_an_objective_without_errors_has_none() -> None:
    learner = learner_of("vtrace")
    learner.update(batch(), budget_fraction=0.0)
    assert learner.row_errors is None


def test_old_decisions_are_learnt_from_where_the_objective_says_so() -> None:
    assert needs_fresh(small_config()) and not needs_fresh(small_config(algorithm=MEASURED))
    rows = batch()
    for algorithm, stale in (("vtrace", True), (MEASURED, False)):
        learner = learner_of(algorithm)
        learner.version = 1000
        report = learner.update(rows, budget_fraction=0.0)
        assert (report.stale_steps > 0) == stale
        assert report.steps + report.stale_steps == rows.num_steps
        assert report.lag_max > 2


def test_fresh_decisions_count_once_and_sampled_ones_as_often_as_they_are_learnt_from() -> None:
    learner, rows = learner_of(), batch()
    learner.update_stream([rows], budget_fraction=0.0, fresh_steps=7)
    report = learner.update_stream([rows], budget_fraction=0.0, fresh_steps=0)
    assert (learner.trained_steps, report.sampled_steps) == (7, 2 * rows.num_steps)
    other = learner_of()
    other.load(learner.save())
    assert (other.trained_steps, other.sampled_steps) == (7, 2 * rows.num_steps)
