"""The gate that judges hundreds of opponents at once: how often it fires, on what, and what holds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.strength.gate_errors import Course, fired, resisted
from league.core.gates.gates import Gate, Trial, gate_of
from league.core.gates.posterior_gate import PosteriorGate
from league.core.state.league_config import GateConfig
from league.core.state.payoff import Posterior
from tests.league.core.gates.gate_cases import evidence_of_games

SETTINGS = GateConfig(min_steps=0, timeout_steps=100)
POSTERIOR, THRESHOLD = (gate_of(GateConfig(test=kind)) for kind in ("posterior", "threshold"))


def trial(win_rates: np.ndarray, games: np.ndarray | int, *, rng: np.random.Generator, steps: int = 1) -> Trial:
    """Games drawn from true win rates, under the default prior of two games."""
    size = len(win_rates)
    games = np.broadcast_to(games, size)
    wins = rng.binomial(games, win_rates)
    known = Posterior(wins + 1.0, games - wins + 1.0, games.astype(np.float64))
    names = {i: f"opponent-{i}" for i in range(size)}
    return Trial(steps, np.arange(size), names, known, SETTINGS, evidence_of_games(wins, games - wins))


def firing(gate: Gate, make: Callable[[np.random.Generator], Trial], *, times: int = 60) -> float:
    rng = np.random.default_rng(7)
    return float(np.mean([gate(make(rng)) is not None for _ in range(times)]))


@pytest.mark.parametrize(("size", "games"), [(1, 300), (3, 400), (10, 500), (50, 700), (200, 900)])
def test_it_fires_among_any_number_of_opponents_that_are_all_beaten(size: int, games: int) -> None:
    """75 % against everyone: each opponent must be beaten beyond doubt alone, so more of them take more games of
    each."""
    assert firing(POSTERIOR, lambda rng: trial(np.full(size, 0.75), games, rng=rng)) >= 0.75


def test_the_threshold_gate_stops_firing_among_two_hundred_opponents() -> None:
    assert firing(THRESHOLD, lambda rng: trial(np.full(200, 0.75), 200, rng=rng)) == 0.0


@pytest.mark.parametrize("size", [1, 2, 5, 10, 50, 200])
@pytest.mark.parametrize("rate", [0.50, 0.60, 0.64])
def test_one_opponent_that_is_not_beaten_holds_it_at_every_look_however_many_others_are_beaten(
    size: int, rate: float
) -> None:
    """Null: it fires at some of 60 looks in at most 1 - confidence = 0.2 of the runs. Bound: three standard errors."""
    found = fired(resisted(size, rate), SETTINGS, Course(looks=60, games=60 * min(size, 10)), runs=20)
    assert (found >= 0).mean() <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 20)


def test_over_many_looks_a_single_unbeaten_opponent_gets_past_it_as_rarely_as_promised() -> None:
    """The hardest case, at the bound itself and with few games between looks: at most 0.2, over 60 runs."""
    found = fired(
        resisted(1, 0.65),
        GateConfig(test={"win_rate": 0.6501, "margin": 0.0001}, min_steps=0),
        Course(300, 5),
        runs=60,
    )
    assert (found >= 0).mean() <= 0.2 + 3 * np.sqrt(0.2 * 0.8 / 60)


@pytest.mark.parametrize("size", [3, 10, 200])
def test_it_does_not_fire_where_everyone_is_beaten_by_less(size: int) -> None:
    assert firing(POSTERIOR, lambda rng: trial(np.full(size, 0.65), 200, rng=rng)) <= 0.05


def test_win_rates_that_differ_are_judged_each_by_its_own_games() -> None:
    assert firing(POSTERIOR, lambda rng: trial(np.linspace(0.74, 0.99, 100), 900, rng=rng)) >= 0.9


@pytest.mark.parametrize("size", [3, 6, 10, 50, 200])
def test_one_opponent_that_was_hardly_met_holds_it_however_many_others_are_beaten(size: int) -> None:
    def make(unmet: int) -> Callable[[np.random.Generator], Trial]:
        games = np.r_[np.full(size - 1, 200), unmet]
        return lambda rng: trial(np.full(size, 0.95), games, rng=rng)

    assert firing(POSTERIOR, make(0)) == 0.0
    assert firing(POSTERIOR, make(9)) == 0.0
    assert firing(POSTERIOR, make(60)) >= 0.9


def test_without_carried_evidence_it_holds_to_the_timeout() -> None:
    known = trial(np.full(3, 0.95), 500, rng=np.random.default_rng(0))
    assert POSTERIOR(known) is not None
    assert POSTERIOR(replace(known, log_evidence=None)) is None


def test_the_evidence_names_the_opponent_of_the_largest_p_value_first() -> None:
    rng = np.random.default_rng(3)
    rates = np.full(40, 0.9)
    rates[17] = 0.3
    held = trial(rates, 100, rng=rng, steps=100)
    verdict = POSTERIOR(held)
    assert verdict is not None
    assert verdict.reason == "timeout"
    assert (verdict.evidence[0].opponent, verdict.gate_opponents) == ("opponent-17", 40)
    assert verdict.evidence[0].unbeaten == float(PosteriorGate().p_values(held).max()) == 1.0


@pytest.mark.parametrize("size", [1, 40, 2_000])
def test_p_values_lie_between_0_and_1_also_in_the_extremes(size: int) -> None:
    rng = np.random.default_rng(size)
    for rate in (0.0, 0.5, 1.0):
        for games in (0, 1, 10_000, 2**50):
            p_values = PosteriorGate().p_values(trial(np.full(size, rate), games, rng=rng))
            assert np.all((p_values >= 0.0) & (p_values <= 1.0))
