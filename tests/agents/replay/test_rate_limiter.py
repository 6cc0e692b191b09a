"""The limiter against the inequalities of its source; and nobody waits for ever."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.replay.replay_table import RateLimiter
from tests.oracles.prioritised_replay import LiteralLimiter

RATIOS = st.sampled_from([0.25, 0.5, 1.0, 2.0, 7.5, 32.0])
CALLS = st.lists(st.tuples(st.booleans(), st.integers(1, 16)), max_size=80)


@settings(max_examples=150, deadline=None)
@given(ratio=RATIOS, min_rows=st.integers(1, 40), batches=st.floats(1.0, 6.0), calls=CALLS)
def test_the_limiter_is_that_of_reverb(
    ratio: float, min_rows: int, batches: float, calls: list[tuple[bool, int]]
) -> None:
    window = 16 * batches * 2 * max(1.0, ratio)
    mine, literal = RateLimiter(ratio, min_rows, window), LiteralLimiter(ratio, min_rows, window / 2)
    size = 0
    for is_insert, rows in calls:
        if is_insert:
            may = literal.may_insert(rows, size)
            assert mine.can_insert(rows, size=size) == may
            if may:
                mine.inserts, literal.inserted, size = mine.inserts + rows, literal.inserted + rows, size + rows
        else:
            may = literal.may_sample(rows, size)
            assert mine.can_sample(rows, size=size) == may
            if may:
                mine.samples, literal.sampled = mine.samples + rows, literal.sampled + rows


@settings(max_examples=150, deadline=None)
@given(ratio=RATIOS, min_rows=st.integers(1, 300), chunk=st.integers(1, 16), eager=st.booleans(), lost=st.booleans())
def test_with_the_least_window_somebody_is_never_blocked(
    ratio: float, min_rows: int, chunk: int, eager: bool, lost: bool
) -> None:
    """Also where rows were lost at a restart: chunks are at most a batch of 16."""
    options = ReplayConfig(samples_per_insert=ratio, min_rows=min_rows)
    limiter, size = RateLimiter(ratio, min_rows, 16 * options.least_window), 0
    for step in range(200):
        insert, sample = limiter.can_insert(chunk, size=size), limiter.can_sample(16, size=size)
        assert insert or sample
        if insert and (eager or not sample):
            limiter.inserts, size = limiter.inserts + chunk, size + chunk
        else:
            limiter.samples += 16
        if lost and step == 120:
            size //= 2
    assert abs(limiter._ahead(limiter.inserts)) <= limiter.error_window / 2 + (min_rows + 16) * (ratio + 1)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ReplayConfig(samples_per_insert=8.0, error_window=15.0),
            "error_window: 15 batches are less than 2 * max(1, samples_per_insert) = 16: actors and the learner could "
            "wait for each other for ever",
        ),
        (ReplayConfig(min_rows=10, capacity=9), "min_rows: 10 rows are not between 1 and the capacity of 9"),
        (ReplayConfig(alpha=1.5), "alpha: 1.5 is not in [0, 1]"),
        (ReplayConfig(capacity=0, min_rows=0), "capacity: 0 rows are not between 1 and 4294967296"),
        (ReplayConfig(samples_per_insert=0.0), "samples_per_insert: 0.0 must be greater than 0 and finite"),
    ],
)
def test_options_that_cannot_work_are_one_sentence_each(options: ReplayConfig, problem: str) -> None:
    assert problem in options.problems()
    assert ReplayConfig().problems() == []
