"""E-values of a player's games: never expected to rise while the opponent is unbeaten, and quick once it is beaten."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from league.core.gates.e_values import (
    ALTERNATIVES,
    BETS,
    CLOCK,
    FIRST_STAKE,
    WAITING,
    carried,
    log_e_values,
    new_bets,
    observe,
)

BOUND, LOOKS = 0.65, 50
"""The default settings' bound; looks in a half-life."""


def slow_e_value(games: list[tuple[float, float]], *, half_life: float) -> float:
    """The definition, bet by bet and without logarithms. games: (time, score) each."""
    rates = [BOUND + (1.0 - BOUND) * place for place, _ in ALTERNATIVES]
    weights = [weight for _, weight in ALTERNATIVES]
    values = [FIRST_STAKE * weight for weight in weights]
    waiting, first, last = 1.0 - FIRST_STAKE, games[0][0], games[0][0]
    for time, score in games:
        left = (1.0 - FIRST_STAKE) / (1.0 + (time - first) / half_life)
        for k, rate in enumerate(rates):
            gain = values[k] / weights[k]
            if gain > 1.0:
                gain **= 0.5 ** ((time - last) / half_life)
            gain += waiting - left
            gain *= (rate / BOUND) ** score * ((1.0 - rate) / (1.0 - BOUND)) ** (1.0 - score)
            values[k] = weights[k] * gain
        waiting, last = left, time
    return sum(values) + waiting


def test_an_e_value_is_that_of_the_definition() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        times = np.sort(rng.random(30) * 40.0) + 5.0
        scores = rng.choice([0.0, 0.5, 1.0], 30, p=[0.2, 0.2, 0.6])
        rows = new_bets(BOUND, times[0])
        for time, score in zip(times, scores, strict=True):
            rows = carried(rows, time, 10.0)
            observe(rows, score, 1.0 - score)
        expected = slow_e_value(list(zip(times.tolist(), scores.tolist(), strict=True)), half_life=10.0)
        assert float(log_e_values(rows)[0]) == pytest.approx(math.log(expected))


def test_of_games_played_at_once_it_is_the_mean_likelihood_ratio_beside_what_waits() -> None:
    rows = new_bets(BOUND, 0.0)
    observe(rows, 24.0, 5.0)
    ratios = []
    for place, weight in ALTERNATIVES:
        rate = BOUND + (1.0 - BOUND) * place
        ratios.append(weight * (rate / BOUND) ** 24 * ((1.0 - rate) / (1.0 - BOUND)) ** 5)
    assert float(np.exp(log_e_values(rows)[0])) == pytest.approx(FIRST_STAKE * sum(ratios) + 1.0 - FIRST_STAKE)
    assert sum(weight for _, weight in ALTERNATIVES) == pytest.approx(1.0)


@pytest.mark.parametrize("half_life", [0.5, 10.0, math.inf])
@pytest.mark.parametrize("drawn", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("mean", [0.3, 0.6, BOUND])
def test_while_an_opponent_is_unbeaten_the_next_e_value_is_at_most_this_one_on_average(
    mean: float, drawn: float, half_life: float
) -> None:
    """By summation over the results of one game, from any state: so no number of looks breaks the promise."""
    rng = np.random.default_rng(1)
    rows = np.concatenate([new_bets(BOUND, rng.random(200) * 9.0, 200)])
    rows[:, BETS] += rng.normal(0.0, 3.0, rows[:, BETS].shape)
    rows[:, WAITING] *= rng.random(200) * 0.9 + 0.1
    drawn = min(drawn, 2.0 * mean)
    chances = {1.0: mean - drawn / 2.0, 0.5: drawn, 0.0: 1.0 - mean - drawn / 2.0}
    assert min(chances.values()) >= 0.0
    expected = np.zeros(200)
    for score, chance in chances.items():
        after = carried(rows, rows[:, CLOCK] + 3.0, half_life)
        observe(after, score, 1.0 - score)
        expected += chance * np.exp(log_e_values(after))
    assert (expected <= np.exp(log_e_values(rows)) * (1.0 + 1e-9)).all()


def crossed(
    rate: Callable[[float], float], *, games: int, half_lives: int, runs: int, draws: float = 0.0
) -> np.ndarray:
    """float64 [runs], half-lives until the e-value is 5 at one of the looks, infinity for never."""
    rng = np.random.default_rng(7)
    rows, found = new_bets(BOUND, 0.0, runs), np.full(runs, math.inf)
    for look in range(half_lives * LOOKS):
        now = (look + 1) / LOOKS
        many = (look + 1) * games // LOOKS - look * games // LOOKS
        drawn = rng.binomial(many, draws, runs)
        won = rng.binomial(many - drawn, (rate(now) - draws / 2.0) / (1.0 - draws)) + drawn / 2.0
        rows = carried(rows, now, 1.0)
        observe(rows, won, many - won)
        found[(log_e_values(rows) >= math.log(5.0)) & np.isinf(found)] = now
    return found


@pytest.mark.parametrize("draws", [0.0, 0.3])
@pytest.mark.parametrize("games", [20, 200])
def test_over_sixty_four_half_lives_an_unbeaten_opponent_gets_past_as_rarely_as_promised(
    games: int, draws: float
) -> None:
    """At the bound itself: in at most 0.2 of 400 runs, within three standard errors. Faded counts alone: 0.36."""
    found = crossed(lambda _: BOUND, games=games, half_lives=64, runs=400, draws=draws)
    assert np.isfinite(found).mean() <= 0.2 + 3.0 * math.sqrt(0.2 * 0.8 / 400)


def test_an_opponent_that_drifts_up_to_the_bound_gets_past_as_rarely() -> None:
    found = crossed(lambda now: min(0.3 + now / 50.0, BOUND), games=50, half_lives=40, runs=400)
    assert np.isfinite(found).mean() <= 0.2


def test_a_beaten_opponent_is_found_out_within_half_a_half_life() -> None:
    found = crossed(lambda _: 0.8, games=200, half_lives=1, runs=1000)
    assert (found <= 0.5).mean() >= 0.88
    assert (found <= 1.0).mean() >= 0.98


def test_an_opponent_that_is_beaten_late_is_found_out_too() -> None:
    """A bet that is placed at once has lost all by then: it would take as many games as were lost before."""
    found = crossed(lambda now: 0.5 if now < 8.0 else 0.8, games=200, half_lives=12, runs=400)
    assert (found <= 10.0).mean() >= 0.95


@pytest.mark.parametrize("games", [0.0, 1.0, 1e4, 2.0**50])
@pytest.mark.parametrize("rate", [0.0, 0.5, 1.0])
def test_an_e_value_is_a_number_in_the_extremes(rate: float, games: float) -> None:
    rows = new_bets(BOUND, 0.0)
    observe(rows, rate * games, (1.0 - rate) * games)
    for now in (0.0, 1.0, 1e30):
        assert np.isfinite(log_e_values(carried(rows, now, 1e-3))).all()
