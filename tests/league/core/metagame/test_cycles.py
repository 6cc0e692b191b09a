"""The cycle report on ladders, rings and noise."""

from __future__ import annotations

import numpy as np
import pytest

from league.core.metagame.cycles import cycles, cyclic_fraction, league_cycles
from tests.league.core.simulated_league import SimulatedLeague, three_roles

NAMES = ["a", "b", "c", "d", "e"]


def ladder(size: int) -> np.ndarray:
    skill = np.linspace(-1.0, 1.0, size)
    return 1.0 / (1.0 + np.exp(skill[None, :] - skill[:, None]))


def ring(size: int, win_rate: float) -> np.ndarray:
    table = np.full((size, size), 0.5)
    for i in range(size):
        table[i, (i + 1) % size], table[(i + 1) % size, i] = win_rate, 1.0 - win_rate
    return table


def test_a_ladder_has_no_cyclic_part_and_no_cycle() -> None:
    report = cycles(ladder(5), np.full((5, 5), 1_000.0), NAMES)
    assert report.cyclic_fraction == pytest.approx(0.0, abs=1e-12)
    assert (report.num_cycles, report.ring, report.strongest) == (0, 1, ())
    assert not report.misleads


def test_a_ring_is_all_cyclic_and_its_strongest_cycle_is_named_in_order() -> None:
    table = ring(3, 0.8)
    report = cycles(table, np.full((3, 3), 100.0), NAMES[:3])
    assert report.cyclic_fraction == pytest.approx(1.0)
    assert (report.num_cycles, report.ring) == (1, 3)
    assert report.strongest == (("a", 0.8), ("b", 0.8), ("c", 0.8))
    assert report.misleads
    longer = cycles(ring(5, 0.8), np.full((5, 5), 100.0), NAMES)
    assert (longer.num_cycles, longer.ring) == (0, 5), "a ring of five holds no triple"


def test_a_cycle_within_the_noise_is_not_reported() -> None:
    report = cycles(ring(3, 0.6), np.full((3, 3), 20.0), NAMES[:3])
    assert (report.num_cycles, report.ring) == (0, 1)
    assert cycles(ring(3, 0.6), np.full((3, 3), 400.0), NAMES[:3]).num_cycles == 1


def test_a_ladder_with_a_small_ring_is_partly_cyclic() -> None:
    table = ladder(5)
    table[0, 4], table[4, 0] = 0.9, 0.1
    report = cycles(table, np.full((5, 5), 1_000.0), NAMES)
    assert 0.1 < report.cyclic_fraction < 0.9
    assert report.num_cycles == 3
    assert report.ring == 5


def test_a_flat_table_has_no_cyclic_part() -> None:
    assert cyclic_fraction(np.full((4, 4), 0.5)) == 0.0


def test_a_league_of_one_strength_each_shows_no_cycle() -> None:
    league = SimulatedLeague(three_roles(rating_fraction=0.5), strength=lambda policy: float(policy.count("main-0")))
    assert league_cycles(league.state) is None
    league.run(200)
    report = league_cycles(league.state)
    assert report is not None
    assert report.policies == len(league.state.snapshots)
    assert report.num_cycles <= 2
