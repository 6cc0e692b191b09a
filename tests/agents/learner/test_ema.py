"""The moving average of a learner's weights: its rate, its restart state, and its place beside resets and rollbacks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from league.agents.learner.build import build_learner
from league.agents.learner.learner import Learner
from league.agents.learner.step.optimizer import ema_rate
from league.agents.nets.network import build_network
from league.agents.restart_state import ema_in
from league.agents.unroll.unroll import Unrolls
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, small_config, unrolls_of

NETWORK = build_network(BOARD_GAME, MLP, seed=1)


def learner_of(*, seed: int = 1, **changes: object) -> Learner:
    return build_learner(BOARD_GAME, MLP, small_config(**changes), seed=seed, dtype=torch.float32)


def batch(seed: int = 0) -> Unrolls:
    return unrolls_of(BOARD_GAME, NETWORK, rows=12, steps=5, seed=seed)


def poisoned() -> Unrolls:
    unrolls = batch()
    unrolls.rewards[np.argwhere(unrolls.valid)[0][0]] = np.nan
    return unrolls


def ema_of(learner: Learner) -> NDArray[np.float32]:
    average = ema_in(learner.save())
    assert average is not None
    return average


def expected(passed: list[NDArray[np.float32]], *, share: float) -> NDArray[np.float64]:
    """The average written out as a sum: weights passed after step 1, 2, ..., each with the product of what is left."""
    rates = [1.0 / max(1.0, share * (step + 1)) for step in range(len(passed))]
    total = np.zeros(passed[0].shape)
    for step, vector in enumerate(passed):
        total += rates[step] * np.prod([1.0 - rate for rate in rates[step + 1 :]]) * vector
    return total


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_the_average_is_the_weighted_sum_of_all_weights_passed_and_the_first_ones_leave_no_trace(share: float) -> None:
    learner, passed = learner_of(ema_share=share), []
    for seed in range(7):
        learner.update(batch(seed), budget_fraction=0.0)
        passed.append(learner.publish().vector)
    np.testing.assert_allclose(ema_of(learner), expected(passed, share=share), atol=1e-6)
    if share == 1.0:
        np.testing.assert_allclose(ema_of(learner), np.mean(passed, axis=0), atol=1e-6)
    assert not np.allclose(ema_of(learner), passed[-1], atol=1e-5)


def test_half_of_the_average_is_about_the_last_share_of_the_steps() -> None:
    rates = [ema_rate(step, share=0.1) for step in range(1, 2001)]
    left = np.append(np.cumprod(1.0 - np.array(rates)[::-1])[::-1][1:], 1.0)
    weights = np.array(rates) * left
    assert weights.sum() == pytest.approx(1.0)
    assert weights[1800:].sum() == pytest.approx(1.0 - 0.9**10, abs=0.01)


def test_every_epoch_counts_as_a_step() -> None:
    learner = learner_of(ema_share=1.0, algorithm="ppo", epochs=3)
    start = learner.publish().vector
    learner.update(batch(), budget_fraction=0.0)
    assert not np.allclose(ema_of(learner), learner.publish().vector, atol=1e-6)
    assert not np.allclose(ema_of(learner), start, atol=1e-6)


def test_the_average_goes_through_a_restart_state() -> None:
    learner, again = learner_of(ema_share=0.4), learner_of(seed=9, ema_share=0.4)
    for seed in range(4):
        learner.update(batch(seed), budget_fraction=0.0)
    again.load(learner.save())
    for one in (learner, again):
        one.update(batch(5), budget_fraction=0.0)
    np.testing.assert_array_equal(ema_of(learner), ema_of(again))


def test_a_restart_state_without_an_average_starts_it_at_its_weights() -> None:
    learner = learner_of(ema_share=0.4)
    learner.update(batch(), budget_fraction=0.0)
    saved = learner.save()
    del saved["ema"]
    again = learner_of(seed=9, ema_share=0.4)
    again.load(saved)
    np.testing.assert_array_equal(ema_of(again), learner.publish().vector)


def test_a_reset_player_has_no_average_of_its_past_self() -> None:
    learner, other = learner_of(ema_share=0.4), learner_of(seed=9)
    for seed in range(6):
        learner.update(batch(seed), budget_fraction=0.0)
    learner.reset(other.publish())
    np.testing.assert_array_equal(ema_of(learner), other.publish().vector)
    learner.update(batch(), budget_fraction=0.0)
    np.testing.assert_array_equal(ema_of(learner), learner.publish().vector)


def test_a_bad_update_leaves_the_average_alone_and_a_rollback_takes_it_back() -> None:
    learner = learner_of(ema_share=0.4, rollback_after=2)
    good = ema_of(learner)
    for seed in range(3):
        learner.update(batch(seed), budget_fraction=0.0)
    before = ema_of(learner)
    learner.update(poisoned(), budget_fraction=0.0)
    np.testing.assert_array_equal(ema_of(learner), before)
    learner.update(poisoned(), budget_fraction=0.0)
    np.testing.assert_array_equal(ema_of(learner), good)


def test_without_a_share_there_is_no_average() -> None:
    learner = learner_of(ema_share=0.0)
    learner.update(batch(), budget_fraction=0.0)
    assert ema_in(learner.save()) is None
