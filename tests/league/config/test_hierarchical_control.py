"""Every algorithm under every update mode: it learns with two replicas, or is refused in one sentence with its key."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

from league.agents.acting.kinds.acting_kinds import ActingPlace, make_acting
from league.agents.learner.algorithms.algorithms import OBJECTIVES, UPDATE_MODES, UPDATERS
from league.agents.learner.algorithms.objective import LossWeights, make_objective
from league.agents.learner.build import build_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.replicas.update_mode import make_update_mode
from league.agents.learner.step.backend import make_backend
from league.agents.learner.step.optimizer import FlatOptimizer
from league.agents.learner.step.updater import LocalUpdater, UpdateInputs
from league.agents.learner.workers.worker import NetworkPlan
from league.agents.nets.network import build_network
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.config.loading import parse_config
from league.config.plugin_checks import require_working_names
from league.config.run_config import RunConfig
from league.envs.component_choice import kind_of
from league.envs.registry import spec_of
from league.errors import ConfigError
from tests.agents.learner.learner_cases import FLOAT32
from tests.agents.learner.replicas.replica_cases import Meeting, ThreadReplicas

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "lineage.md"
REPLICAS, ROWS = 2, 8

ASYNCHRONOUS = "gossip, asynchronous"
MODES: dict[str, dict[str, Any]] = {
    "all_reduce": {"kind": "all_reduce"},
    "local_sgd": {"kind": "local_sgd", "period": 2},
    "gossip": {"kind": "gossip", "publish_every": 2},
    ASYNCHRONOUS: {"kind": "gossip", "asynchronous": True, "workers": "threads"},
    "hogwild": {"kind": "hogwild", "workers": "threads"},
    "parameter_server": {"kind": "parameter_server", "shards": 2, "workers": "threads"},
}
"""Column of the table -> the update mode."""

FILES = {
    **dict.fromkeys(("vtrace", "ppo", "appo"), "impala"),
    **{name: name for name in ("dqn", "ddpg", "td3", "es", "cmaes")},
    "search_targets": "alphazero",
    "vtrace, `actors.wait_for_update`": "a2c",
    "dqn, prioritised replay": "apex_dqn",
}
"""Row of the table -> the shipped configuration whose other settings it has."""

FREE = (ASYNCHRONOUS, "hogwild", "parameter_server")
NO_GRADIENTS = (
    "learner.pipeline.update_mode: {row} computes no gradients on which replicas: 2 would agree by {mode}; leave out "
    "update_mode and replicas"
)
REFUSED = {
    **{(row, mode): NO_GRADIENTS for row in UPDATERS for mode in MODES},
    **{
        (row, "all_reduce"): "learner.pipeline.replicas: {row} computes no gradients, so that 2 replicas have nothing "
        "to share; use replicas: 1"
        for row in UPDATERS
    },
    **{
        ("vtrace, `actors.wait_for_update`", mode): "learner.pipeline.update_mode: 2 replicas under {mode} run on "
        "clocks of their own, and actors.wait_for_update waits for the end of an update; use all_reduce, or "
        "wait_for_update: false"
        for mode in FREE
    },
    **{
        ("dqn, prioritised replay", mode): "learner.row_source.alpha: 0.6 samples rows by their errors, which replicas "
        "on clocks of their own do not report; use alpha: 0, or a mode in lockstep"
        for mode in FREE
    },
}
"""(row, column) -> why it makes no sense; {row} and {mode} stand for the algorithm and the update mode."""

EVERY_PAIR = [pytest.param(row, mode, id=f"{row}-{mode}") for row in FILES for mode in MODES]


def config_of(row: str, mode: str) -> RunConfig:
    """The configuration of a pair, tiny. Raises ConfigError where it is refused."""
    plain = yaml.safe_load((ROOT / "configs" / "lineage" / f"{FILES[row]}.yaml").read_text())
    plain["network"] = {**plain.get("network", {}), "hidden": [6]}
    learner = plain["learner"]
    if kind_of(learner.get("algorithm")) != row and row in OBJECTIVES:
        learner["algorithm"] = row
    learner |= {"batch_rows": ROWS, "unroll_length": 4, "precision": "float32"}
    learner["pipeline"] = {"replicas": REPLICAS, "update_mode": MODES[mode], "stage_timeout_s": 20.0}
    config = parse_config(yaml.safe_dump(plain), source="test")
    require_working_names(config, spec_of(config.env), source="test")
    return config


def problems_of(row: str, mode: str) -> list[str]:
    try:
        config_of(row, mode)
    except ConfigError as error:
        return list(error.problems)
    return []


def reason_of(row: str, mode: str) -> str:
    """Why a pair is refused; empty where it is not."""
    return REFUSED.get((row, mode), "").format(row=row, mode=MODES[mode]["kind"])


def test_the_table_has_every_registered_name() -> None:
    assert {*OBJECTIVES, *UPDATERS} <= FILES.keys() and {choice["kind"] for choice in MODES.values()} == {*UPDATE_MODES}


@pytest.mark.parametrize(("row", "mode"), EVERY_PAIR)
def test_a_pair_learns_with_two_replicas_or_is_refused_in_one_sentence(row: str, mode: str) -> None:
    expected = reason_of(row, mode)
    if expected:
        assert problems_of(row, mode) == [expected]
        return
    config = config_of(row, mode)
    spec = spec_of(config.env)
    plan = NetworkPlan(spec, config.network, seed=1)
    recorded = make_acting(config.actors.acting, spec, ActingPlace()).recorded
    unrolls = UnrollSpec.of(spec, build_network(spec, config.network, seed=1), unroll_length=4, recorded=recorded)
    rows = [synthetic_unrolls(unrolls, rows=ROWS, seed=seed) for seed in range(REPLICAS + 1)]
    before, after, trained = (free if config.learner.pipeline.is_free else lockstep)(plan, config.learner, rows)
    assert trained > 0 and np.isfinite(after).all() and not np.array_equal(before, after)


def free(plan: NetworkPlan, learner: LearnerConfig, rows: list[Unrolls]) -> tuple[Any, Any, float]:
    """Weights before and after batches of which each replica takes the next when it is idle, and decisions learnt."""
    group, _ = build_updater(plan, learner, dtype=torch.float32)
    try:
        before = group.weights()
        results = [group.update([batch], inputs_of()) for batch in rows]  # the last waits for one of the others
        return before, group.weights(), sum(result.stats.steps for result in results)
    finally:
        group.close()


def lockstep(plan: NetworkPlan, learner: LearnerConfig, rows: list[Unrolls]) -> tuple[Any, Any, float]:
    """The same of replicas that learn from their own half of each batch, at the same time."""
    meeting = Meeting(REPLICAS)
    updaters = [updater_of(plan, learner, ThreadReplicas(rank, REPLICAS, meeting)) for rank in range(REPLICAS)]
    before, half = updaters[0].weights(), ROWS // REPLICAS

    def learn(rank: int) -> list[Any]:
        own = slice(rank * half, (rank + 1) * half)
        return [updaters[rank].update([batch.rows(own.start, own.stop)], inputs_of()) for batch in rows]

    with concurrent.futures.ThreadPoolExecutor(REPLICAS) as threads:
        first, second = threads.map(learn, range(REPLICAS))
    assert [result.stats for result in first] == [result.stats for result in second], "counts are of all replicas"
    return before, updaters[0].weights(), sum(result.stats.steps for result in first)


def updater_of(plan: NetworkPlan, learner: LearnerConfig, replicas: ThreadReplicas) -> LocalUpdater:
    network = plan.build()
    objective = make_objective(learner, network.head)
    return LocalUpdater(
        backend=make_backend(network, objective, learner, FLOAT32),
        objective=objective,
        optimizer=FlatOptimizer(network, learner, keep_target=objective.passes.target),
        heads=network.blocks[-1].module,
        mode=make_update_mode(learner.pipeline.update_mode, replicas),
        placement=FLOAT32,
        config=learner,
    )


def inputs_of() -> UpdateInputs:
    return UpdateInputs(1e-2, LossWeights(0.1, 1.0), oldest_version=0, microbatches_per_block=1)


def table() -> str:
    """The table of the page: whether each pair is allowed, and the sentences that refuse the others."""
    lines = [f"| `learner.algorithm` | {' | '.join(MODES)} |", "|---" * (len(MODES) + 1) + "|"]
    for row in FILES:
        name, _, more = row.partition(",")
        cells = ["no" if reason_of(row, mode) else "yes" for mode in MODES]
        lines.append(f"| `{name}`{',' * bool(more)}{more} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_page_has_this_table_and_every_sentence_that_refuses() -> None:
    page = PAGE.read_text()
    assert table() in page, table()
    words = " ".join(page.split())
    for sentence in REFUSED.values():
        assert sentence.format(row="ALGORITHM", mode="MODE") in words
