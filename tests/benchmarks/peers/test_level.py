"""The level on a ladder of searches, beside a slow oracle."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.peers.level import Rung, crossing, falling, level, level_of
from tests.oracles import search_level

SIMULATIONS = np.array([1.0, 25.0, 100.0, 400.0, 1600.0])


@pytest.mark.parametrize("seed", range(20))
def test_isotonic_scores_and_the_crossing_agree_with_the_oracle(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, weights = rng.random(5).round(2), rng.integers(20, 200, 5).astype(float)
    fitted = falling(scores, weights)
    assert fitted == pytest.approx(search_level.falling(scores.tolist(), weights.tolist()), abs=1e-12)
    slow = search_level.crossing(SIMULATIONS.tolist(), fitted.tolist())
    assert crossing(SIMULATIONS, fitted) == pytest.approx(slow, rel=1e-3)


@pytest.mark.parametrize(
    ("scores", "simulations"),
    [
        ([0.9, 0.7, 0.5, 0.2, 0.1], 100.0),  # a rung of just one half is the level
        ([0.9, 0.6, 0.4, 0.2, 0.1], 50.0),  # the middle of two rungs, in logarithms
        ([0.9, 0.5, 0.5, 0.5, 0.1], 400.0),  # the strongest of several
        ([1.0, 1.0, 1.0, 1.0, 0.9], 1600.0),  # above the ladder: its top
        ([0.4, 0.3, 0.2, 0.1, 0.0], 1.0),  # below it: random play
    ],
)
def test_the_level_is_where_the_score_passes_one_half(scores: list[float], simulations: float) -> None:
    rungs = [Rung(place, (score,) * 10) for place, score in zip(SIMULATIONS.tolist(), scores, strict=True)]
    assert level_of(rungs) == pytest.approx(simulations)


def test_the_bootstrap_interval_holds_the_level_and_narrows_with_games() -> None:
    rng = np.random.default_rng(3)

    def ladder(groups: int) -> list[Rung]:
        chances = (0.95, 0.75, 0.55, 0.35, 0.1)
        return [
            Rung(place, tuple((rng.random((groups, 2)) < chance).mean(axis=1).tolist()))
            for place, chance in zip(SIMULATIONS.tolist(), chances, strict=True)
        ]

    few, many = level(ladder(30), seed=1), level(ladder(400), seed=1)
    true = float(np.sqrt(np.sqrt(100.0 * 400.0) * 100.0))  # a quarter of the way from 100 to 400
    for found in (few, many):
        assert found.low < found.value < found.high
    assert many.low < true < many.high
    assert many.high / many.low < few.high / few.low


def test_a_ladder_without_spread_has_an_interval_of_no_width() -> None:
    found = level([Rung(1.0, (1.0, 1.0)), Rung(25.0, (0.0, 0.0))], seed=0)
    assert found.low == found.value == found.high == pytest.approx(5.0)
