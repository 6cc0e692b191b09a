"""The verdict on a league: a rise that is there is found, noise is none, and a saturated yardstick says nothing."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from league.see.reports.figures import verdict
from league.see.reports.figures.verdict import Reading, YardstickCourse, fitted_rise, newer_half, strength_verdict
from league.see.reports.figures.yardsticks import YardstickCurve, YardstickPoint, yardsticks
from tests.league.see.page.page_runs import made_league


def readings(values: list[float], half: float = 0.05) -> list[Reading]:
    return [Reading(1_000_000 * place, value, value - half, value + half) for place, value in enumerate(values)]


def test_the_rise_is_that_of_weighted_least_squares() -> None:
    values, halves = [0.2, 0.5, 0.4, 0.8], [0.1, 0.2, 0.05, 0.1]
    given = [Reading(10 * place, v, v - h, v + h) for place, (v, h) in enumerate(zip(values, halves, strict=True))]
    errors = np.array(halves) / verdict.Z_95
    design = np.stack([np.ones(4), np.arange(4) / 3]) / errors
    covariance = np.linalg.inv(design @ design.T)
    slope = (covariance @ design @ (np.array(values) / errors))[1]
    half = verdict.Z_95 * np.sqrt(covariance[1, 1])
    assert fitted_rise(given, z=verdict.Z_95) == pytest.approx((slope, slope - half, slope + half))


def test_noise_without_a_rise_is_seldom_taken_for_one() -> None:
    """Null: the score is level. 400 trials at 5 %: more than 36 would be beyond three standard errors."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(400):
        given = readings((0.5 + rng.normal(0.0, 0.1 / verdict.Z_95, 8)).tolist(), half=0.1)
        _, low, high = fitted_rise(given, z=verdict.Z_95)
        found += low > 0.0 or high < 0.0
    assert found <= 36


def test_the_newer_half_is_by_steps_and_holds_enough() -> None:
    given = readings([0.1] * 9)
    assert [one.at for one in newer_half(given)] == [4e6, 5e6, 6e6, 7e6, 8e6]
    assert len(newer_half(given[:3])) == 3


@pytest.mark.parametrize(
    ("scores", "kind", "words"),
    [
        ([0.3, 0.4, 0.5, 0.6, 0.7, 0.8], "good", "Yes: +0.30"),
        ([0.8, 0.7, 0.6, 0.5, 0.4, 0.3], "bad", "No, it gets weaker"),
        ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], "warn", "No change beyond chance"),
        ([0.5, 0.6], "plain", "Too early"),
        ([0.9, 0.95, 0.99, 0.99, 1.0], "warn", "It beats every yardstick: random 1.00."),
    ],
)
def test_scores_against_a_bot_are_judged(scores: list[float], kind: str, words: str) -> None:
    league, _ = made_league(leases=4)
    points = tuple(
        YardstickPoint(f"main-0-s{n}", 1_000_000 * n, score, score - 0.04, score + 0.04, 100)
        for n, score in enumerate(scores, start=1)
    )
    curve = YardstickCurve("bot:random", "main-0", "main_agent", 0, points)
    found = msgspec.structs.replace(yardsticks(league.state), curves=(curve,))
    judged = strength_verdict(league.state, found)
    assert judged.kind == kind and judged.text.startswith(words), judged


def test_a_saturated_yardstick_is_left_for_one_that_tells() -> None:
    easy = YardstickCourse("random", readings([0.99, 1.0]))
    assert easy.is_saturated and not YardstickCourse("tactical", readings([0.9, 0.95])).is_saturated
    assert not YardstickCourse("nash_conv", readings([1.0, 1.1]), "loss").is_saturated
