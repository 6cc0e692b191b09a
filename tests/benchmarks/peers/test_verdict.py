"""Whether League's defaults are significantly below the best peer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.peers.cells import Cell
from benchmarks.peers.verdict import verdict_of

BUDGET = 120.0


def cells(name: str, figures: dict[str, list[dict[str, Any]]]) -> dict[Cell, Any]:
    return {
        Cell(BUDGET, name, seed, peer): found for peer, seeds in figures.items() for seed, found in enumerate(seeds)
    }


def ladder(score: float, *, games: int = 100) -> dict[str, Any]:
    """A ladder with this score at 100 simulations, by groups of two games."""
    wins = round(score * games)
    return {
        "groups": {
            "random": [1.0] * games,
            "mcts:100": [1.0] * wins + [0.0] * (games - wins),
            "mcts:400": [0.0] * games,
            "tactical": [0.0] * games,
        }
    }


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [(0.8, 0.5, True), (0.5, 0.5, True), (0.45, 0.55, True), (0.2, 0.8, False)],
)
def test_one_seed_on_a_ladder_is_below_only_where_matches_are_sure(ours: float, theirs: float, met: bool) -> None:
    found = cells("hex", {"league": [ladder(ours)], "plain_ppo": [ladder(theirs)], "sb3_ppo": [ladder(0.1)]})
    row = verdict_of("hex", BUDGET, found)
    assert row.met is met and row.required == "not significantly below"
    assert "plain_ppo" in row.name and row.value is not None
    assert (row.value >= 1.0) == (ours >= theirs)


@pytest.mark.parametrize(
    ("ours", "theirs", "met"),
    [
        ([0.2], [0.3], True),
        ([0.3], [0.2], None),  # exact and below, but one training is no spread
        ([0.3, 0.31, 0.29], [0.2, 0.21, 0.19], False),
        ([0.3, 0.1, 0.2], [0.2, 0.25, 0.1], True),
    ],
)
def test_exact_values_are_compared_over_seeds(ours: list[float], theirs: list[float], met: bool | None) -> None:
    figures = {"league": [{"nash_conv": each} for each in ours], "plain_ppo": [{"nash_conv": each} for each in theirs]}
    row = verdict_of("leduc", BUDGET, cells("leduc", figures))
    assert row.met is met
    assert row.value == pytest.approx(np.mean(theirs) - np.mean(ours))


def test_returns_of_one_seed_are_compared_over_episodes() -> None:
    figures = {"league": [{"returns": [400.0, 410.0] * 50}], "sb3_ppo": [{"returns": [500.0, 490.0] * 50}]}
    assert verdict_of("cartpole", BUDGET, cells("cartpole", figures)).met is False
    figures["league"] = [{"returns": [500.0] * 100}]
    figures["sb3_ppo"] = [{"returns": [500.0] * 100}]
    assert verdict_of("cartpole", BUDGET, cells("cartpole", figures)).met is True


def test_the_control_is_no_peer_and_seeds_that_one_side_lacks_do_not_count() -> None:
    found = cells("leduc", {"league": [{"nash_conv": 0.3}], "newest": [{"nash_conv": 0.1}]})
    assert verdict_of("leduc", BUDGET, found).value is None
    found = cells("leduc", {"league": [{"nash_conv": 0.3}], "plain_ppo": [{"nash_conv": 0.4}, {"nash_conv": 0.0}]})
    assert verdict_of("leduc", BUDGET, found).value == pytest.approx(0.1)
