"""The pairs of seats whose result is recorded."""

from __future__ import annotations

import tracemalloc

import pytest

from league.core.state.assignments import counted_pairs


@pytest.mark.parametrize(
    ("policies", "teams", "pairs"),
    [
        (("a", "b"), (0, 1), {(0, 1), (1, 0)}),
        (("a", "a"), (0, 1), {(0, 1), (1, 0)}),
        (("a",), (0,), set()),
        (("a", "b", "b"), (0, 1, 2), {(0, 1), (0, 2), (1, 0), (2, 0), (1, 2), (2, 1)}),
        (("a", "a", "b", "b"), (0, 0, 1, 1), {(0, 2), (2, 0)}),
        (("a", "c", "b", "b"), (0, 0, 1, 1), {(0, 2), (2, 0), (1, 2), (2, 1)}),
    ],
)
def test_a_policy_counts_once_per_opposing_team(policies: tuple, teams: tuple, pairs: set) -> None:
    assert set(counted_pairs(policies, teams)) == pairs


def test_pairs_of_a_growing_league_are_not_remembered_by_name() -> None:
    counted_pairs(("a", "b"), (0, 1))
    tracemalloc.start()
    try:
        for number in range(4_000):
            counted_pairs((f"main-{number}", f"main-{number + 1}"), (0, 1))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 400_000  # by their names it would be 1.9 MB; other threads of the test allocate too
