"""The tree of sums against a naive sum, the frequencies of its draws, and its lowest slots."""

from __future__ import annotations

import numpy as np
import pytest

from league.agents.replay import priority_tree
from league.agents.replay.priority_tree import PriorityTree
from tests.oracles.prioritised_replay import slot_at


@pytest.fixture(params=[4, 4096])
def levels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Many levels of two children, and one level alone."""
    monkeypatch.setattr(priority_tree, "TOP_NODES", request.param)
    return int(request.param)


def test_the_tree_equals_a_naive_sum_after_a_million_random_calls(levels: int) -> None:
    """Calls count by slot: 2,000 times 256 are set, duplicates and zeros among them, and 256 drawn."""
    rng = np.random.default_rng(5)
    tree, naive = PriorityTree(1000), np.zeros(1000)
    for number in range(2000):
        slots = rng.integers(0, 1000, 256)
        weights = rng.random(256) ** 8 * (rng.random(256) > 0.1)
        weights[slots.argsort()[:3]] *= 1e12  # sums that lose small terms must give them back
        tree.set(slots, weights)
        for slot, weight in zip(slots, weights, strict=True):
            naive[slot] = weight
        points = rng.random(256)
        if number % 100 == 0:
            assert tree.total == pytest.approx(naive.sum(), rel=1e-12)
            np.testing.assert_array_equal(tree.weights(np.arange(1000)), naive)
        assert (tree.weights(tree.draw(points)) > 0.0).all()
    tree.set(np.arange(1000), naive % 1.0)
    assert tree.total == pytest.approx((naive % 1.0).sum(), rel=1e-12)


def test_a_draw_is_the_slot_where_the_running_sum_passes_the_point(levels: int) -> None:
    rng = np.random.default_rng(6)
    for size in (1, 3, 64, 65, 300):
        weights = rng.integers(0, 4, size).astype(float)
        weights[rng.integers(size)] = 1.0
        tree = PriorityTree(size)
        tree.set(np.arange(size), weights)
        points = np.append(rng.random(100), [0.0, np.nextafter(1.0, 0.0)])
        assert tree.draw(points).tolist() == [slot_at(weights.tolist(), point) for point in points]


def test_frequencies_are_proportional_by_chi_square(levels: int) -> None:
    """Null: slot i has probability w_i / sum w. 200,000 draws, 99 degrees of freedom; p = 0.001 is at 148."""
    rng = np.random.default_rng(7)
    weights = rng.random(100) + 0.05
    tree = PriorityTree(100)
    tree.set(np.arange(100), weights)
    counts = np.bincount(tree.draw(rng.random(200_000)), minlength=100)
    expected = 200_000 * weights / weights.sum()
    assert ((counts - expected) ** 2 / expected).sum() < 148.2


def test_the_lowest_slots_are_those_of_a_sort() -> None:
    rng = np.random.default_rng(8)
    tree, naive = PriorityTree(1000, tracks_lowest=True), np.zeros(1000)
    for _ in range(200):
        slots, weights = rng.integers(0, 1000, 64), rng.integers(0, 50, 64).astype(float)
        tree.set(slots, weights)
        for slot, weight in zip(slots, weights, strict=True):
            naive[slot] = weight
        held = np.sort(naive[naive > 0.0])
        count = min(20, held.size)
        lowest = tree.lowest(count)
        assert np.unique(lowest).size == count
        np.testing.assert_array_equal(np.sort(naive[lowest]), held[:count])
