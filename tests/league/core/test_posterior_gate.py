"""The gate that judges hundreds of rivals at once: how often it fires, on what, and that chance lows do not stop it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from league.core.gates import Gate, Trial, gate_of
from league.core.payoff import Posterior
from league.core.posterior_gate import chances_unbeaten
from league.core.settings import GateSettings

SETTINGS = GateSettings(min_steps=0, timeout_steps=100)
POSTERIOR, THRESHOLD = (gate_of(GateSettings(kind=kind)) for kind in ("posterior", "threshold"))


def trial(win_rates: np.ndarray, games: np.ndarray | int, *, rng: np.random.Generator, steps: int = 1) -> Trial:
    """Games drawn from true win rates, under the default prior of two games."""
    size = len(win_rates)
    games = np.broadcast_to(games, size)
    wins = rng.binomial(games, win_rates)
    known = Posterior(wins + 1.0, games - wins + 1.0, games.astype(np.float64))
    return Trial(steps, np.arange(size), {i: f"rival-{i}" for i in range(size)}, known, SETTINGS)


def firing(gate: Gate, make: Callable[[np.random.Generator], Trial], *, times: int = 60) -> float:
    rng = np.random.default_rng(7)
    return float(np.mean([gate(make(rng)) is not None for _ in range(times)]))


@pytest.mark.parametrize("size", [1, 3, 10, 50, 200])
def test_it_fires_among_any_number_of_rivals_that_are_all_beaten(size: int) -> None:
    """75 % against everyone in 200 games each; four standard errors under the measured 0.9 would be 0.74."""
    assert firing(POSTERIOR, lambda rng: trial(np.full(size, 0.75), 200, rng=rng)) >= 0.8


def test_the_threshold_gate_stops_firing_among_two_hundred_rivals() -> None:
    assert firing(THRESHOLD, lambda rng: trial(np.full(200, 0.75), 200, rng=rng)) == 0.0


@pytest.mark.parametrize("size", [1, 3, 10, 50, 200])
@pytest.mark.parametrize("games", [30, 100, 200])
def test_one_rival_that_wins_half_its_games_holds_it_however_many_others_are_beaten(size: int, games: int) -> None:
    def make(rng: np.random.Generator) -> Trial:
        return trial(np.r_[np.full(size - 1, 0.75), 0.5], games, rng=rng)

    assert firing(POSTERIOR, make) <= 0.1


@pytest.mark.parametrize("size", [3, 10, 200])
def test_it_does_not_fire_where_everyone_is_beaten_by_less(size: int) -> None:
    assert firing(POSTERIOR, lambda rng: trial(np.full(size, 0.65), 200, rng=rng)) <= 0.05


def test_win_rates_that_differ_are_judged_each_by_its_own_games() -> None:
    assert firing(POSTERIOR, lambda rng: trial(np.linspace(0.74, 0.99, 100), 200, rng=rng)) >= 0.9


def test_a_few_unmeasured_rivals_among_many_do_not_hold_it_and_many_do() -> None:
    def make(unmeasured: int) -> Callable[[np.random.Generator], Trial]:
        games = np.r_[np.full(100 - unmeasured, 200), np.zeros(unmeasured, dtype=int)]
        return lambda rng: trial(np.full(100, 0.85), games, rng=rng)

    assert firing(POSTERIOR, make(10)) >= 0.9
    assert firing(POSTERIOR, make(30)) == 0.0


def test_a_single_rival_is_judged_by_its_own_games_alone() -> None:
    """With one rival the prior is uniform: Beta(16, 6) lies under 0.65 with chance 0.2001, by numerical integration."""
    known = Posterior(np.array([16.0]), np.array([6.0]), np.array([20.0]))
    settled = Trial(1, np.array([0]), {0: "rival-0"}, known, SETTINGS)
    grid = (np.arange(100_000) + 0.5) / 100_000
    density = grid**15 * (1.0 - grid) ** 5
    expected = density[grid <= 0.65].sum() / density.sum()
    assert chances_unbeaten(settled)[0] == pytest.approx(expected, abs=2e-3)


def test_a_rival_met_too_rarely_keeps_the_chance_that_everyone_starts_with() -> None:
    rng = np.random.default_rng(5)
    games = np.r_[np.full(9, 200), 3]
    chances = chances_unbeaten(trial(np.r_[np.full(9, 0.9), 1.0], games, rng=rng))
    assert chances[-1] == pytest.approx(0.1)
    assert chances[:-1].max() < 0.01


def test_the_evidence_names_the_doubtful_rivals_and_the_doubt_in_all() -> None:
    rng = np.random.default_rng(3)
    rates = np.full(40, 0.9)
    rates[17] = 0.3
    held = trial(rates, 100, rng=rng, steps=100)
    verdict = POSTERIOR(held)
    assert verdict is not None
    assert verdict.reason == "timeout"
    assert (verdict.evidence[0].opponent, verdict.rivals) == ("rival-17", 40)
    assert verdict.evidence[0].unbeaten == pytest.approx(1.0, abs=1e-6)
    assert verdict.doubt == pytest.approx(float(chances_unbeaten(held).sum()))


@pytest.mark.parametrize("size", [1, 40, 2_000])
def test_chances_are_chances_also_in_the_extremes(size: int) -> None:
    rng = np.random.default_rng(size)
    for rate in (0.0, 0.5, 1.0):
        for games in (0, 1, 10_000):
            chances = chances_unbeaten(trial(np.full(size, rate), games, rng=rng))
            assert np.all((chances >= 0.0) & (chances <= 1.0))
