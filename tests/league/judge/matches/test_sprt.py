"""The sequential test agrees with a search over all distributions, stops at Wald's bounds, and errs as seldom as it
says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from league.judge.matches.sprt import (
    PAIR_SCORES,
    UNSEEN,
    SprtConfig,
    _most_likely,
    elo_of,
    expected_score,
    log_likelihood_ratio,
    pair_counts,
)


def slow_ratio(counts: list[int], config: SprtConfig) -> float:
    """The definition: the best log-likelihood over all distributions of each mean, by a general optimiser."""
    seen = np.array([count or UNSEEN for count in counts], np.float64)

    def best(mean: float) -> float:
        found = minimize(
            lambda logits: -float(seen @ (logits - np.logaddexp.reduce(logits))) / seen.sum(),
            np.log(seen),
            constraints={
                "type": "eq",
                "fun": lambda logits: float(np.exp(logits - np.logaddexp.reduce(logits)) @ PAIR_SCORES) - mean,
            },
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-14},
        )
        return -float(found.fun) * float(seen.sum())

    return best(expected_score(config.elo1)) - best(expected_score(config.elo0))


@pytest.mark.parametrize("counts", [[3, 20, 40, 25, 5], [0, 10, 30, 14, 2], [1, 0, 0, 0, 9], [40, 30, 60, 20, 10]])
def test_the_ratio_is_that_of_the_best_distributions_of_each_mean(counts: list[int]) -> None:
    config = SprtConfig(elo0=-5.0, elo1=20.0)
    assert float(log_likelihood_ratio(np.array(counts), config)) == pytest.approx(slow_ratio(counts, config), abs=2e-3)


def test_the_tilted_distribution_has_the_mean_of_its_hypothesis_however_extreme_the_counts() -> None:
    counts = np.array([[0, 0, 0, 0, 5000], [5000, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 1, 1, 1, 1], [9, 0, 0, 0, 9]])
    observed = np.where(counts == 0, UNSEEN, counts).astype(np.float64)
    observed /= observed.sum(axis=1, keepdims=True)
    for mean in (0.2, 0.5, 0.93):
        tilted = _most_likely(observed, mean)
        assert (tilted > 0).all() and np.allclose(tilted.sum(axis=1), 1.0) and np.allclose(tilted @ PAIR_SCORES, mean)


def test_the_ratio_turns_its_sign_with_the_seats_and_is_zero_before_the_first_pair() -> None:
    config = SprtConfig(elo0=-10.0, elo1=10.0)
    counts = np.array([3, 20, 40, 25, 7])
    both = log_likelihood_ratio(np.array([counts, counts[::-1], 0 * counts]), config)
    assert both[0] > 0 and both[0] == pytest.approx(-both[1]) and both[2] == 0.0


def test_the_bounds_are_walds_and_the_decision_is_taken_at_them() -> None:
    config = SprtConfig(alpha=0.05, beta=0.1)
    assert config.upper == pytest.approx(math.log(0.9 / 0.05)) and config.lower == pytest.approx(math.log(0.1 / 0.95))
    assert [config.decision(ratio) for ratio in (-2.3, 0.0, 2.9)] == ["H0", "", "H1"]
    for wrong in ({"elo0": 5.0, "elo1": 5.0}, {"alpha": 0.0}, {"beta": 0.6}):
        with pytest.raises(ValueError, match="must"):
            SprtConfig(**wrong)


def test_pairs_are_counted_by_their_score_and_elo_is_the_inverse_of_the_score() -> None:
    assert pair_counts(np.array([0.0, 0.25, 0.25, 0.5, 1.0])).tolist() == [1, 2, 1, 0, 1]
    assert elo_of(expected_score(37.0)) == pytest.approx(37.0) and elo_of(1.0) == math.inf and elo_of(0.0) == -math.inf


@pytest.mark.parametrize(("truth", "wrong"), [("elo0", "H1"), ("elo1", "H0")])
def test_errors_are_as_rare_as_allowed(truth: str, wrong: str) -> None:
    """400 matches at either hypothesis: the bound of 0.05 with four standard errors."""
    config = SprtConfig(elo0=0.0, elo1=60.0)
    base = np.array([0.05, 0.2, 0.4, 0.25, 0.1])
    tilt = np.exp(np.linspace(-1.0, 1.0, 2001)[:, None] * PAIR_SCORES) * base
    tilt /= tilt.sum(axis=1, keepdims=True)
    chances = tilt[np.abs(tilt @ PAIR_SCORES - expected_score(getattr(config, truth))).argmin()]
    draws = np.random.default_rng(0).multinomial(8, chances, size=(60, 400)).cumsum(axis=0)
    ratios = log_likelihood_ratio(draws, config)
    first = ((ratios >= config.upper) | (ratios <= config.lower)).argmax(axis=0)
    ends = ratios[first, np.arange(400)]
    decided = [config.decision(float(ratio)) for ratio in ends]
    assert decided.count("") < 20 and decided.count(wrong) <= 400 * (0.05 + 4 * math.sqrt(0.05 * 0.95 / 400))
