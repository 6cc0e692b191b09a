"""Targets of Q-learning against a slow oracle, across truncations, ends of episodes and the end of a row."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from league.agents.losses.q_learning import bootstrapped, n_step, rescale, row_errors, unscale
from tests.oracles.q_learning import n_step_target

ROWS, LENGTH = 40, 7


@pytest.mark.parametrize("steps", [1, 3, 7, 20])
def test_targets_equal_those_summed_step_by_step(steps: int) -> None:
    rng = np.random.default_rng(steps)
    rewards, values = rng.normal(size=(ROWS, LENGTH)), rng.normal(size=(ROWS, LENGTH + 1))
    ends, valid = rng.random((ROWS, LENGTH)) < 0.2, rng.random((ROWS, LENGTH)) < 0.85
    discounts = np.where(ends, 0.0, 0.9)
    made = n_step(torch.tensor(rewards), torch.tensor(discounts), valid=torch.tensor(valid), steps=steps)
    targets = bootstrapped(made, torch.tensor(values[:, 1:])).numpy()
    for row, step in zip(*np.nonzero(valid), strict=True):
        expected = n_step_target(
            step, rewards=rewards[row], discounts=discounts[row], valid=valid[row], values=values[row], steps=steps
        )
        assert targets[row, step] == pytest.approx(expected, abs=1e-9), (row, step)


def test_a_truncation_bootstraps_from_its_own_last_observation() -> None:
    valid = torch.tensor([[True, True, False, True, True]])
    made = n_step(torch.ones(1, 5), torch.full((1, 5), 0.5), valid=valid, steps=3)
    assert made.ends[0, :2].tolist() == [2, 2] and made.rewards[0, :2].tolist() == [1.5, 1.0]
    assert made.ends[0, 3:].tolist() == [5, 5] and made.discounts[0, 3:].tolist() == [0.25, 0.5]


def test_what_follows_the_end_of_an_episode_counts_for_nothing_even_if_it_is_no_number() -> None:
    made = n_step(torch.ones(1, 3), torch.tensor([[0.5, 0.0, 0.5]]), valid=torch.ones(1, 3, dtype=torch.bool), steps=3)
    targets = bootstrapped(made, torch.tensor([[1.0, torch.nan, 4.0]]))
    assert targets.tolist() == [[1.5, 1.0, 3.0]]


def test_the_rescaling_and_its_inverse_undo_each_other() -> None:
    values = torch.linspace(-300.0, 300.0, 601, dtype=torch.float64)
    torch.testing.assert_close(unscale(rescale(values)), values, rtol=1e-8, atol=1e-8)
    assert rescale(torch.tensor(8.0)).item() == pytest.approx(2.008)


def test_the_error_of_a_row_mixes_its_largest_and_its_mean() -> None:
    errors = torch.tensor([[1.0, -3.0, 100.0], [5.0, 5.0, 5.0]])
    learn = torch.tensor([[True, True, False], [False, False, False]])
    assert row_errors(errors, learn, max_share=0.9).tolist() == pytest.approx([0.9 * 3 + 0.1 * 2, 0.0])
