"""Q-learning on problems whose answers are known, its loss against a slow oracle, burn-in, weights and refusals."""

from __future__ import annotations

import dataclasses
from contextlib import closing

import numpy as np
import pytest
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.kinds.acting_kinds import ActingPlace, make_acting
from league.agents.learner.algorithms.dqn import DQNObjective
from league.agents.learner.algorithms.objective import make_objective, needs_fresh
from league.agents.learner.build import build_learner
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.step.backend import SingleBackend
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.agents.weights import adopt
from league.core.state.records import Assignment
from league.envs.protocol import ActionSpec, ArraySpec, EnvConfig, EnvSpec
from league.envs.registry import make
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    COEFFICIENTS,
    CONTROL,
    FLOAT32,
    batch_of,
    gradients_of,
    largest_difference,
    network_of,
    small_config,
)
from tests.oracles.q_learning import chain_values, first_player, n_step_target

LENGTH, GAMMA = 5, 0.9
CHAIN = EnvSpec(
    "chain", 1, {"at": ArraySpec((LENGTH,), "float32")}, ActionSpec("categorical", num_actions=2), (0,), has_mask=False
)
TABLE = NetworkConfig(hidden=(), head="q_values")
Q_MLP = NetworkConfig(hidden=(16,), head="q_values")
Q_LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8, head="q_values")


def chain_unrolls(rows: int, steps: int, rng: np.random.Generator) -> Unrolls:
    """Random walks with episodes that end, and others that are cut off by a time limit."""
    unrolls = UnrollSpec(CHAIN, steps).allocate(rows)
    for row in range(rows):
        state, is_first, is_marker = int(rng.integers(LENGTH)), True, False
        for step in range(steps + 1):
            unrolls.obs["at"][row, step, state], unrolls.resets[row, step] = 1.0, is_first
            if step == steps:
                break
            if is_marker:
                state, is_first, is_marker = int(rng.integers(LENGTH)), True, False
                continue
            action = int(rng.integers(2))
            is_first = action == 1 and state == LENGTH - 1
            unrolls.actions[row, step], unrolls.valid[row, step] = action, True
            unrolls.rewards[row, step], unrolls.discounts[row, step] = float(is_first), 1.0 - is_first
            state = int(rng.integers(LENGTH)) if is_first else max(state - 1, 0) if action == 0 else state + 1
            is_marker = not is_first and rng.random() < 0.2
    return unrolls


def learnt_table(updates: int = 500, **options: object) -> np.ndarray:
    """Q [LENGTH, 2] after learning from random walks."""
    config = LearnerConfig(
        algorithm={"kind": "dqn", **options},
        unroll_length=4,
        batch_rows=64,
        gamma=GAMMA,
        learning_rate=0.03,
        learning_rate_end=1e-4,
        target_every=10,
        precision="float32",
    )
    rng = np.random.default_rng(0)
    learner = build_learner(CHAIN, TABLE, config, seed=0, dtype=torch.float32)
    network = build_network(CHAIN, TABLE, seed=0)
    with closing(learner):
        walks = chain_unrolls(1024, 4, rng)
        for update in range(updates):
            start = 64 * (update % 16)
            learner.update(walks.rows(start, start + 64), budget_fraction=update / updates)
        adopt(network, learner.publish())
    output = network.step({"at": torch.eye(LENGTH)})
    return network.head.action_values(output.logits, output.values).detach().numpy()  # type: ignore[attr-defined]


@pytest.mark.parametrize("options", [{}, {"target": "max", "error": "squared"}, {"rescale": True}])
def test_a_chain_is_learnt_from_random_walks(options) -> None:  # type: ignore[no-untyped-def]
    values = learnt_table(**options)
    if options.get("rescale"):
        values = np.array([_unscaled(value) for value in values.ravel()]).reshape(values.shape)
    np.testing.assert_allclose(values, chain_values(LENGTH, GAMMA), atol=0.02)


def test_sarsa_learns_the_values_of_the_walk_itself() -> None:
    expected = np.zeros((LENGTH, 2))
    for _ in range(500):
        mean = expected.mean(1)
        for state in range(LENGTH):
            expected[state] = GAMMA * mean[max(state - 1, 0)], 1.0 if state == LENGTH - 1 else GAMMA * mean[state + 1]
    np.testing.assert_allclose(learnt_table(target="sarsa", error="squared"), expected, atol=0.04)


def _unscaled(value: float) -> float:
    """The x of h(x) = value, by bisection."""
    low, high = -10.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        h = np.sign(middle) * (np.sqrt(abs(middle) + 1) - 1) + 1e-3 * middle
        low, high = (middle, high) if h < value else (low, middle)
    return low


def test_tic_tac_toe_against_random_moves_is_learnt_from_random_games() -> None:
    rng = np.random.default_rng(0)
    config = LearnerConfig(
        algorithm={"kind": "dqn"},
        unroll_length=5,
        batch_rows=256,
        gamma=1.0,
        learning_rate=3e-3,
        learning_rate_end=1e-4,
        target_every=25,
        precision="float32",
    )
    layout = NetworkConfig(hidden=(128,), head="q_values", value_output="tanh")
    with closing(make(EnvConfig("tic_tac_toe"), num_envs=512)) as env:
        network = build_network(env.spec, layout, seed=0)
        kind = make_acting({"kind": "epsilon_greedy", "epsilon": 1.0, "alpha": 0.0}, env.spec, ActingPlace())
        arena = Arena(env, UnrollSpec.of(env.spec, network, unroll_length=5), seed=0)
        policy = kind.policy(network, dtype=torch.float32)
        games = concatenate(list(arena.run([Assignment(("p", "p"), (True, True), 1.0)], {"p": policy}, steps=60)))
        learner = build_learner(env.spec, layout, config, seed=0, dtype=torch.float32)
        with closing(learner):
            for update in range(400):
                rows = np.sort(rng.integers(0, games.num_rows, 256))
                learner.update(
                    Unrolls(**games.converted(lambda array, rows=rows: array[rows])), budget_fraction=update / 400
                )
            adopt(network, learner.publish())
        errors, lost = _against_exact_values(env, network, rng)
    assert np.mean(errors) < 0.12, np.mean(errors)
    assert np.mean(lost) < 0.04, np.mean(lost)


def _against_exact_values(env, network: Network, rng: np.random.Generator) -> tuple[list[float], list[float]]:  # type: ignore[no-untyped-def]
    """Error of the best value, and what the greedy move gives away, in positions of random games."""
    turn = env.reset(5)
    boards = np.zeros((env.num_envs, 9), np.int64)
    errors, lost = [], []
    for _ in range(4):
        output = network.step(
            {name: torch.from_numpy(field) for name, field in turn.obs.items()},
            action_mask=torch.from_numpy(turn.action_mask),
        )
        values = network.head.action_values(output.logits, output.values).detach().numpy()  # type: ignore[attr-defined]
        for game, seat in zip(turn.env_index[:100], turn.seat[:100], strict=True):
            own = tuple(int(mark and (1 if mark == seat + 1 else 2)) for mark in boards[game])
            exact = first_player(own)
            errors.append(abs(values[game].max() - max(exact)))
            lost.append(max(exact) - exact[int(values[game].argmax())])
        moves = np.array([rng.choice(np.flatnonzero(mask)) for mask in turn.action_mask])
        boards[turn.env_index, moves] = turn.seat + 1
        turn = env.step(moves)
        boards[turn.ended] = 0
    return errors, lost


def objective_of(network: Network, **options: object) -> DQNObjective:
    objective = make_objective(small_config(algorithm="dqn", **options), network.head)
    assert isinstance(objective, DQNObjective)
    return objective


def with_targets(objective: DQNObjective, network: Network, other: Network, batch: Batch) -> Batch:
    """The batch with the targets of another network."""
    target = SingleBackend(other, objective, small_config(), FLOAT32).evaluate([batch])
    assert target is not None
    return batch.with_precomputed(objective.target_precomputed(batch, target=target))


@pytest.mark.parametrize("target", ["double", "max", "sarsa"])
def test_the_loss_is_that_of_the_definition(target: str) -> None:
    network, other = network_of(BOARD_GAME, Q_MLP), network_of(BOARD_GAME, Q_MLP, seed=2)
    objective = objective_of(network, target=target, n_steps=2, error="squared")
    batch = with_targets(objective, network, other, batch_of(BOARD_GAME, network, rows=12, steps=5))
    loss = objective.loss(network(batch.obs, action_mask=batch.action_mask), batch, COEFFICIENTS)
    own, its = (
        each.head.action_values(output.logits, output.values).detach().numpy()  # type: ignore[attr-defined]
        for each in (network, other)
        for output in [each(batch.obs, action_mask=batch.action_mask)]
    )
    total, count, legal = 0.0, 0, batch.action_mask.numpy()
    for row, step in zip(*np.nonzero(batch.learn.numpy()), strict=True):
        following = np.zeros(6)
        for at in range(6):
            moves = np.flatnonzero(legal[row, at])
            if target == "double":
                following[at] = its[row, at, moves[own[row, at, moves].argmax()]]
            elif target == "max":
                following[at] = its[row, at, moves].max()
            else:
                acted = at < 5 and batch.valid[row, at]
                following[at] = its[row, at, batch.actions[row, at]] if acted else np.nan
        wanted = n_step_target(
            step,
            rewards=batch.rewards[row].tolist(),
            discounts=(small_config().gamma * batch.discounts[row]).tolist(),
            valid=batch.valid[row].tolist(),
            values=following,
            steps=2,
        )
        if np.isfinite(wanted):
            total += 0.5 * (wanted - own[row, step, batch.actions[row, step]]) ** 2
            count += 1
    assert loss.total.item() == pytest.approx(total, rel=1e-4) and loss.columns[0].item() == count > 20
    assert loss.row_errors is not None and loss.row_errors.shape == (12,)


def test_importance_weights_scale_the_rows_and_not_their_errors() -> None:
    network = network_of(BOARD_GAME, Q_MLP)
    objective = objective_of(network)
    batch = with_targets(objective, network, network, batch_of(BOARD_GAME, network, rows=12, steps=5))
    parts = [objective.loss(network(b.obs, action_mask=b.action_mask), b, COEFFICIENTS) for b in batch.microbatches(12)]
    weights = torch.linspace(0.1, 1.0, 12)
    weighted = dataclasses.replace(batch, weights=weights)
    loss = objective.loss(network(batch.obs, action_mask=batch.action_mask), weighted, COEFFICIENTS)
    expected = sum(float(weight) * part.total.item() for weight, part in zip(weights, parts, strict=True))
    assert loss.total.item() == pytest.approx(expected, rel=1e-5)
    torch.testing.assert_close(loss.row_errors, torch.cat([part.row_errors for part in parts]))


def test_burn_in_only_brings_the_memory_up_to_date() -> None:
    network = network_of(BOARD_GAME, Q_LSTM, policy_scale=1.0)
    batch = batch_of(BOARD_GAME, network, rows=12, steps=5)
    burning, plain = objective_of(network, burn_in=2), objective_of(network)
    batch = with_targets(burning, network, network, batch)
    backend = SingleBackend(network, burning, small_config(), FLOAT32)
    loss = backend.accumulate([batch], COEFFICIENTS)
    found = gradients_of(network)
    network.zero_grad()
    with torch.no_grad():
        core = network(
            {name: field[:, :2] for name, field in batch.obs.items()}, resets=batch.resets[:, :2], core=batch.core
        ).core
    rest = dataclasses.replace(batch.steps(2, 5), core=core)
    expected = SingleBackend(network, plain, small_config(), FLOAT32).accumulate([rest], COEFFICIENTS)
    assert loss.columns.tolist() == pytest.approx(expected.columns.tolist())
    assert largest_difference(found, gradients_of(network)) < 1e-6
    assert 0 < loss.columns[0] < batch.learn.sum()


def test_old_decisions_are_learnt_from() -> None:
    assert not needs_fresh(small_config(algorithm="dqn"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"burn_in": 5},
            "burn_in: 5 of 5 decisions of an unroll leave none to learn from; raise learner.unroll_length",
        ),
        ({"burn_in": 2, "pipeline": PipelineConfig(stages=2)}, "learner.pipeline.stages cuts into 2; use stages: 1"),
        ({"teacher_cost": 0.1}, "teacher_cost: action values have no policy to hold to a teacher"),
        ({"value_normalisation": "popart"}, "value_normalisation: popart is for state values; use none"),
        ({"n_steps": 0}, "learner.algorithm.n_steps: 0 must be at least 1 and at most 4096"),
        ({"target": "mean"}, "learner.algorithm.target: 'mean' is none of double, max, sarsa"),
    ],
)
def test_settings_that_do_not_fit_are_refused(changes, message: str) -> None:  # type: ignore[no-untyped-def]
    pipeline = changes.pop("pipeline", PipelineConfig())
    config = dataclasses.replace(small_config(algorithm="dqn", **changes), pipeline=pipeline)
    with pytest.raises(ValueError, match=message):
        make_objective(config, network_of(BOARD_GAME, Q_LSTM).head)


@pytest.mark.parametrize("spec", [CONTROL, BOARD_GAME])
def test_networks_without_action_values_are_refused(spec: EnvSpec) -> None:
    network = network_of(spec, NetworkConfig(hidden=(16,)))
    with pytest.raises(ValueError, match=r"dqn learns values of numbered actions, and network\.head is a"):
        make_objective(small_config(algorithm="dqn"), network.head)


@pytest.mark.parametrize("algorithm", ["vtrace", "ppo", "appo"])
def test_a_policy_loss_is_refused_where_there_are_action_values(algorithm: str) -> None:
    with pytest.raises(ValueError, match=r"network\.head: q_values has no policy for a policy loss; use dqn"):
        make_objective(small_config(algorithm=algorithm), network_of(BOARD_GAME, Q_MLP).head)
