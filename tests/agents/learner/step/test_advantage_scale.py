"""The advantage scale: the running root mean square, which no outlier spoils and true growth reaches all the same."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.build import build_learner
from league.agents.learner.learner import Learner
from league.agents.learner.step.advantage_scale import MAX_DEVIATION, MIN_SCALE, AdvantageScale
from league.agents.learner.step.updater import LocalUpdater, UpdateInputs
from league.agents.losses.policy import normalise_advantages
from league.agents.nets.config import NetworkConfig
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, network_of, small_config, unrolls_of


def settled(scale: float) -> AdvantageScale:
    made = AdvantageScale()
    for _ in range(300):
        made.update(scale**2)
    return made


def updates_until(scale: AdvantageScale, batch_scale: float, wanted: tuple[float, float], *, limit: int) -> int:
    for count in range(limit + 1):
        if wanted[0] <= scale.value <= wanted[1]:
            return count
        scale.update(batch_scale**2)
    raise AssertionError(f"{scale.value} after {limit} updates")


def test_the_first_batch_sets_the_scale_and_later_ones_average() -> None:
    scale = AdvantageScale()
    assert scale.value == 1.0
    squares = [5.0**2, 3.0**2, 4.0**2, 9.0**2]
    for square in squares:
        scale.update(square)
    weights = 0.99 ** np.arange(len(squares))[::-1]
    assert scale.value == pytest.approx(math.sqrt(np.average(squares, weights=weights)))
    first = AdvantageScale()
    first.update(1e12)
    assert first.value == pytest.approx(1e6)


@pytest.mark.parametrize("outlier", [1e3, 1e6, 1e18])
def test_an_outlier_moves_the_scale_by_less_than_half(outlier: float) -> None:
    scale = settled(1.25)
    scale.update(outlier**2)
    assert 1.25 < scale.value < 1.25 * 1.5
    assert updates_until(scale, 1.25, (1.2, 1.25 * 1.05), limit=300) < 300


@pytest.mark.parametrize("square", [math.inf, math.nan])
def test_a_batch_that_is_not_finite_leaves_the_scale_alone(square: float) -> None:
    scale = settled(1.25)
    scale.update(square)
    assert scale.value == pytest.approx(1.25)
    fresh = AdvantageScale()
    fresh.update(square)
    assert fresh.value == 1.0


def test_advantages_that_grow_a_thousandfold_for_good_reach_the_scale_within_tens_of_updates() -> None:
    assert updates_until(settled(1.0), 1e3, (500.0, 1000.0), limit=100) <= 100


def test_the_first_advantages_after_none_at_all_set_the_scale_as_at_the_start() -> None:
    scale = settled(0.0)
    assert scale.value == MIN_SCALE
    scale.update(1.0)
    assert scale.value == pytest.approx(0.1, rel=0.1)
    assert updates_until(scale, 1.0, (0.5, 1.0), limit=50) <= 50


def test_a_saved_scale_that_is_not_finite_starts_over() -> None:
    scale = settled(2.0)
    other = AdvantageScale()
    other.load(scale.save())
    assert other.value == scale.value
    other.load(np.array([math.inf, 0.5]))
    assert other.value == 1.0


def learner_with_one_reward(
    reward: float, network_config: NetworkConfig = MLP, **changes: object
) -> tuple[Learner, float]:
    """A learner after an ordinary batch and one with this reward in it; the scale between the two."""
    config = small_config(learning_rate=1e-4, **changes)
    learner = build_learner(BOARD_GAME, network_config, config, seed=1, dtype=torch.float32)
    network = network_of(BOARD_GAME, network_config, policy_scale=1.0)
    learner.update(unrolls_of(BOARD_GAME, network, rows=12, steps=5), budget_fraction=0.0)
    before = scale_of(learner)
    spoilt = unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=1)
    spoilt.rewards[tuple(np.argwhere(spoilt.valid)[0])] = reward
    learner.update(spoilt, budget_fraction=0.0)
    return learner, before


def scale_of(learner: Learner) -> float:
    mean_square, weight = learner.save()["scales"]
    return math.sqrt(float(mean_square) / float(weight))


@pytest.mark.parametrize("reward", [1e6, 1e15, 1e20])
def test_one_absurd_reward_does_not_spoil_the_scale_of_a_learner(reward: float) -> None:
    """A whole unroll of five decisions in sixty carries it, so that one batch counts at most 75 in place of 1."""
    learner, before = learner_with_one_reward(reward)
    assert math.isfinite(scale_of(learner))
    assert scale_of(learner) < 7 * before


def test_a_settled_scale_hardly_sees_one_absurd_reward_among_many() -> None:
    config = small_config(learning_rate=1e-5, batch_rows=240)
    learner = build_learner(BOARD_GAME, MLP, config, seed=1, dtype=torch.float32)
    network = network_of(BOARD_GAME, MLP, policy_scale=1.0)
    for seed in range(30):
        learner.update(unrolls_of(BOARD_GAME, network, rows=240, steps=5, seed=seed), budget_fraction=0.0)
    before = scale_of(learner)
    spoilt = unrolls_of(BOARD_GAME, network, rows=240, steps=5, seed=31)
    spoilt.rewards[tuple(np.argwhere(spoilt.valid)[0])] = 1e9
    learner.update(spoilt, budget_fraction=0.0)
    assert before < scale_of(learner) < 1.1 * before


def test_the_limit_follows_the_scale_and_there_is_none_before_a_measurement() -> None:
    assert AdvantageScale().limit == settled(0.0).limit == math.inf
    assert settled(2.0).limit == pytest.approx(2.0 * MAX_DEVIATION)


@pytest.mark.parametrize("changes", [{}, {"microbatches": 3}])
def test_limited_squares_are_summed_decision_by_decision(changes: dict[str, int]) -> None:
    config = small_config(learning_rate=0.0001, **changes)
    learner = build_learner(BOARD_GAME, MLP, config, seed=1, dtype=torch.float32)
    rows = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP, policy_scale=1.0), rows=12, steps=5)
    pieces = []
    for limit in (math.inf, 0.5):
        updater = learner._updater
        assert isinstance(updater, LocalUpdater)
        inputs = UpdateInputs(0.0, LossWeights(0.1, 1.0, advantage_limit=limit), 0, config.microbatches)
        pieces.append(updater.gradients([rows], inputs).squared_advantage)
    assert 0 < pieces[1] < min(pieces[0], 0.25 * rows.num_steps)


@pytest.mark.parametrize("reward", [1e6, 1e15, 1e20])
def test_one_absurd_reward_does_not_make_the_moments_of_the_values_infinite(reward: float) -> None:
    popart = NetworkConfig(hidden=(16,), value_output="popart")
    learner, _ = learner_with_one_reward(reward, popart, value_normalisation="popart", value_rate=0.2)
    moments = learner.publish().named()["parts.heads.value_activation.moments"]
    assert np.isfinite(moments).all()
    network = network_of(BOARD_GAME, popart, policy_scale=1.0)
    report = learner.update(unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=2), budget_fraction=0.0)
    assert not report.skipped


@pytest.mark.parametrize("algorithm", ["vtrace", "appo"])
@pytest.mark.parametrize(("floor", "divisor"), [(0.0, 1.0), (1e-6, 1.0), (40.0, 40.0)])
def test_advantages_are_divided_by_the_floor_where_the_scale_is_less(
    algorithm: str, floor: float, divisor: float
) -> None:
    """The first batch has a scale of 1, so that its policy loss says what it was divided by."""
    rows = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP, policy_scale=1.0), rows=12, steps=5)
    losses = []
    for setting in (0.0, floor):
        config = small_config(algorithm=algorithm, advantage_floor=setting)
        learner = build_learner(BOARD_GAME, MLP, config, seed=1, dtype=torch.float32)
        losses.append(learner.update(rows, budget_fraction=0.0).loss_policy)
    assert losses[0] != 0.0 and losses[1] == pytest.approx(losses[0] / divisor, rel=1e-4)


def test_ppo_standardises_by_the_floor_where_the_deviation_is_less() -> None:
    advantages = torch.randn(20, 30, generator=torch.Generator().manual_seed(0)) * 0.01 + 3.0
    valid = torch.ones(20, 30, dtype=torch.bool)
    plain, floored, idle = (
        normalise_advantages(advantages, valid=valid, total=lambda tensor: tensor, floor=floor)
        for floor in (0.0, 0.5, 0.001)
    )
    torch.testing.assert_close(floored, (advantages - advantages.mean()) / 0.5, rtol=1e-3, atol=1e-5)
    torch.testing.assert_close(idle, plain)
    rows = unrolls_of(BOARD_GAME, network_of(BOARD_GAME, MLP, policy_scale=1.0), rows=12, steps=5)
    losses = []
    for floor in (0.0, 1e4):
        config = small_config(algorithm="ppo", advantage_floor=floor, entropy_cost=0.0, learning_rate=1e-2)
        learner = build_learner(BOARD_GAME, MLP, config, seed=1, dtype=torch.float32)
        losses.append(abs(learner.update(rows, budget_fraction=0.0).loss_policy))
    assert losses[1] < 1e-3 * losses[0]


@pytest.mark.parametrize("floor", [-1.0, math.inf, math.nan])
def test_an_impossible_floor_is_named(floor: float) -> None:
    (problem,) = small_config(advantage_floor=floor).problems()
    assert problem.startswith("advantage_floor: ")
