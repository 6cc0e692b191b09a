"""Rows in are rows held or replaced; priorities are those of the errors; each row is fresh once."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.agents.replay.replay_cases import LAYOUT, SPEC, held, marks_of, rows_of, table_of
from tests.oracles.prioritised_replay import importance_weights


@pytest.mark.parametrize("evict", ["oldest", "lowest"])
def test_rows_that_went_in_are_held_or_were_replaced(evict: str) -> None:
    """Conservation, over chunks of many sizes that wrap around the end; every field comes out as it went in."""
    rng = np.random.default_rng(1)
    table = table_of(capacity=50, evict=evict)
    known, next_mark = {}, 0
    for _ in range(60):
        count = int(rng.integers(1, 20))
        marks = range(next_mark, next_mark + count)
        next_mark += count
        rows = rows_of(*marks)
        known.update({mark: rows.rows(at, at + 1) for at, mark in enumerate(marks)})
        serials = table.insert(rows)
        assert np.unique(serials).size == count
        now = held(table)
        assert len(now) == table.size == min(next_mark, 50) and set(marks) <= now
        if evict == "oldest":
            assert now == set(range(max(0, next_mark - 50), next_mark))
        sample = table.sample(16)
        for at, mark in enumerate(marks_of(LAYOUT.unrolls(sample.block))):
            assert mark in now
            for name, array in LAYOUT.unrolls(sample.block).arrays().items():
                np.testing.assert_array_equal(array[at], known[mark].arrays()[name][0], err_msg=name)
        table.update(sample, rng.random(16).astype(np.float32))
    assert table.limiter.inserts == next_mark and table.limiter.samples == 60 * 16


def test_the_row_of_the_lowest_priority_makes_room_first() -> None:
    table = table_of(capacity=4, evict="lowest")
    table.insert(rows_of(0, 1, 2, 3), errors=np.float32([5.0, 0.1, 3.0, 0.2]))
    table.insert(rows_of(4), errors=np.float32([9.0]))
    assert held(table) == {0, 2, 3, 4}
    table.insert(rows_of(5, 6), errors=np.float32([0.01, 9.0]))
    assert held(table) == {0, 4, 5, 6}


def test_rows_are_sampled_in_proportion_to_the_power_of_their_errors() -> None:
    """Chi-square, 7 degrees of freedom: p = 0.001 is at 24.3. Alpha is applied once, also after an update."""
    errors = np.float32([0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 0.7, 0.2])
    table = table_of(alpha=0.6, min_priority=1e-9)
    table.insert(rows_of(*range(8)))
    everyone = dataclasses.replace(table.sample(8), slots=np.arange(8), serials=np.arange(1, 9, dtype=np.uint64))
    table.update(everyone, errors)
    counts = np.zeros(8)
    for _ in range(200):
        counts += np.bincount(marks_of(LAYOUT.unrolls(table.sample(100).block)), minlength=8)
    expected = counts.sum() * errors**0.6 / (errors**0.6).sum()
    assert ((counts - expected) ** 2 / expected).sum() < 24.3
    np.testing.assert_allclose(counts / counts.sum(), expected / counts.sum(), atol=0.01)


def test_importance_weights_are_those_of_the_paper() -> None:
    errors = np.float32([0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 0.7, 0.2])
    table = table_of(alpha=0.7, beta=0.5, min_priority=1e-12)
    table.insert(rows_of(*range(8)), errors=errors)
    sample = table.sample(32)
    expected = importance_weights(errors.tolist(), sample.slots.tolist(), alpha=0.7, beta=0.5)
    assert sample.weights is not None and sample.weights.dtype == np.float32
    np.testing.assert_allclose(sample.weights, expected, rtol=1e-5)


def test_a_uniform_sample_has_no_weights_and_no_favourites() -> None:
    table = table_of(alpha=0.0)
    table.insert(rows_of(*range(8)), errors=np.float32([100.0, *[0.0] * 7]))
    sample = table.sample(8000)
    assert sample.weights is None
    np.testing.assert_array_equal(
        np.bincount(marks_of(LAYOUT.unrolls(sample.block))), 1000
    )  # equal shares: one draw from each


def test_new_rows_have_the_largest_error_so_far() -> None:
    table = table_of(alpha=1.0, min_priority=1e-9)
    table.insert(rows_of(0, 1), errors=np.float32([6.0, 2.0]))
    table.insert(rows_of(2))
    np.testing.assert_allclose(table._tree.weights(np.arange(4)), [6.0, 2.0, 6.0, 0.0])


def test_errors_of_rows_that_were_replaced_meanwhile_change_nothing() -> None:
    table = table_of(capacity=4, alpha=1.0, min_priority=1e-9)
    table.insert(rows_of(0, 1, 2, 3))
    sample = table.sample(4)
    table.insert(rows_of(4, 5))  # in the places of 0 and 1
    table.update(sample, np.float32([50.0, 60.0, 70.0, np.nan]))
    np.testing.assert_allclose(table._tree.weights(np.arange(4)), [1.0, 1.0, 70.0, 1.0])


def test_a_row_is_fresh_once_however_often_it_comes() -> None:
    table = table_of(capacity=4, alpha=0.0)
    rows = rows_of(0, 1, 2, 3)
    table.insert(rows)
    assert table.sample(64).fresh_steps == rows.num_steps
    assert table.sample(64).fresh_steps == 0
    more = rows_of(4)
    table.insert(more)  # a new row in an old place is fresh again
    assert table.sample(64).fresh_steps == more.num_steps


def test_serials_never_come_twice_and_a_chunk_may_fill_the_table() -> None:
    table = table_of(capacity=4)
    serials = [serial for first in range(0, 12, 4) for serial in table.insert(rows_of(*range(first, first + 4)))]
    assert serials == list(range(1, 13)) and held(table) == {8, 9, 10, 11}


def test_an_empty_field_has_its_place(  # a game without memory has a core of no numbers
) -> None:
    from league.agents.replay.row_bytes import RowLayout

    layout = RowLayout(dataclasses.replace(SPEC, core_size=0))
    unrolls = layout.unrolls(layout.block(3))
    assert unrolls.core.shape == (3, 0) and unrolls.weights is None
