"""First errors against a loop over decisions, with ends of episodes and markers of truncations."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from league.agents.replay.replay_source import first_errors
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from tests.agents.learner.learner_cases import BOARD_GAME
from tests.agents.replay.replay_cases import held, rows_of, table_of

GAMMA = 0.9


def test_first_errors_are_those_of_a_loop() -> None:
    rng = np.random.default_rng(2)
    spec = UnrollSpec(BOARD_GAME, 6, recorded=("values",))
    rows = synthetic_unrolls(spec, rows=64, seed=4)
    rows = dataclasses.replace(
        rows,
        values=rng.normal(size=(64, 6)).astype(np.float32),
        valid=rng.random((64, 6)) < 0.4,
        discounts=(rng.random((64, 6)) < 0.7).astype(np.float32),
    )
    assert rows.values is not None
    expected = []
    for row in range(64):
        errors = []
        for step in range(5):
            ends = rows.discounts[row, step] == 0.0
            if rows.valid[row, step] and (ends or rows.valid[row, step + 1]):
                target = rows.rewards[row, step] + (0.0 if ends else GAMMA * rows.values[row, step + 1])
                errors.append(abs(target - rows.values[row, step]))
        expected.append(0.9 * max(errors) + 0.1 * sum(errors) / len(errors) if errors else math.nan)
    assert any(math.isnan(error) for error in expected)
    np.testing.assert_allclose(first_errors(rows, gamma=GAMMA), expected, rtol=1e-4)


def test_a_row_without_a_first_error_has_the_largest_so_far() -> None:
    table = table_of(alpha=1.0, min_priority=1e-9)
    table.insert(rows_of(0, 1, 2), errors=np.float32([3.0, np.nan, 0.5]))
    np.testing.assert_allclose(table._tree.weights(np.arange(3)), [3.0, 1.0, 0.5])
    table.insert(rows_of(3), errors=np.float32([np.nan]))
    np.testing.assert_allclose(table._tree.weights(np.arange(3, 4)), [3.0])
    assert held(table) == {0, 1, 2, 3}
