"""The first block of the next batch is copied while a GPU learns, and makes the same updates as one that is not."""

from __future__ import annotations

import time

import numpy as np
import pytest
import torch

from league.agents.learner.build import build_learner
from league.agents.learner.data import batch as batch_module
from league.agents.learner.data.feeder import Feeder
from league.agents.unroll.ring import UnrollRing
from league.agents.unroll.unroll import Unrolls
from tests.agents.learner.data.test_feeder import DEADLINE_S, UNROLLS, assert_same, decode, rows_of
from tests.agents.learner.learner_cases import BOARD_GAME, LSTM, small_config
from tests.agents.pretend_gpu import pretended_gpu

ROWS, BATCHES = 12, 4


def ring_of() -> tuple[UnrollRing, list[Unrolls]]:
    """A ring of two batches with the first two in it, and all batches in order."""
    ring, batches = UnrollRing(UNROLLS, capacity=2 * ROWS, pinned=False), [rows_of(ROWS, seed=s)[0] for s in range(4)]
    for number in range(2):
        ring.write(batches[number], at=number * ROWS)
    return ring, batches


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("algorithm", ["vtrace", "ppo"])
def test_updates_with_a_copy_ahead_equal_those_without(
    pieces: int, algorithm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied: list[int] = []
    plain = batch_module._fields_on
    monkeypatch.setattr(batch_module, "_fields_on", lambda *given: copied.append(given[1].num_rows) or plain(*given))
    config, size = small_config(algorithm=algorithm, microbatches=pieces, max_policy_lag=1), ROWS // pieces
    with pretended_gpu(monkeypatch):
        expected, found = (build_learner(BOARD_GAME, LSTM, config, seed=1, dtype=torch.float32) for _ in range(2))
        ring, batches = ring_of()
        for number, batch in enumerate(batches):
            first = expected.update_stream(
                (batch.rows(at, at + size) for at in range(0, ROWS, size)), budget_fraction=0
            )
            copied.clear()
            start, last = number * ROWS, number + 1 == BATCHES
            report = found.update_stream(
                (ring.read(at=start + at, count=size) for at in range(0, ROWS, size)),
                budget_fraction=0.0,
                ahead=lambda start=start, last=last: None if last else ring.read(at=start + ROWS, count=size),
            )
            assert len(copied) == pieces + (number == 0) - last, (
                "each block once, the first of a batch with the one before"
            )
            assert (report.steps, report.stale_steps, report.loss_value) == (
                first.steps,
                first.stale_steps,
                first.loss_value,
            )
            if number + 2 < BATCHES:  # its rows are free
                ring.write(batches[number + 2], at=start)
        np.testing.assert_array_equal(found.publish().vector, expected.publish().vector)
        assert report.stale_steps > 0, "which decisions are too old is known last"
        for learner in (expected, found):
            learner.close()


def test_what_was_copied_ahead_is_given_up_where_other_rows_come(monkeypatch: pytest.MonkeyPatch) -> None:
    config = small_config()
    with pretended_gpu(monkeypatch):
        expected, found = (build_learner(BOARD_GAME, LSTM, config, seed=1, dtype=torch.float32) for _ in range(2))
        ring, batches = ring_of()
        blocks = [ring.read(at=at, count=ROWS) for at in (0, ROWS)]

        def update(number: int) -> None:
            expected.update(batches[number], budget_fraction=0.0)
            found.update_stream([blocks[number % 2]], budget_fraction=0.0, ahead=lambda: blocks[1 - number % 2])

        update(0)
        ring.write(batches[2], at=0)
        update(2)  # not the block that was copied
        for learner in (expected, found):
            learner.load(learner.save())
        update(1)  # the block that was copied before the load
        np.testing.assert_array_equal(found.publish().vector, expected.publish().vector)
        for learner in (expected, found):
            learner.close()


def test_a_feeder_shows_the_next_batch_once_its_first_block_has_come() -> None:
    feeder = Feeder(UNROLLS, small_config(microbatches=4), decode=decode)
    feeder.start()
    following = [rows_of(count, seed=count) for count in (2, 1)]
    feeder.push(rows_of(ROWS, seed=0)[1], num_rows=ROWS)
    with feeder.batch(timeout_s=DEADLINE_S) as blocks:
        assert sum(block.num_rows for block in blocks) == ROWS
        assert feeder.ahead() is None
        ready = ROWS
        for part, chunk in following:
            assert feeder.ahead() is None, f"{ready} rows"
            feeder.push(chunk, num_rows=part.num_rows)
            ready += part.num_rows
            until = time.monotonic() + DEADLINE_S
            while feeder.rows_ready < ready and time.monotonic() < until:
                time.sleep(0.001)
        ahead = feeder.ahead()
        assert ahead is not None
        assert_same(ahead.rows(0, 2), following[0][0])
        assert_same(ahead.rows(2, 3), following[1][0])
    with pytest.raises(Exception, match="3 of 12 rows"), feeder.batch(timeout_s=0.1) as blocks:
        first = next(blocks)
        assert first.resets.ctypes.data == ahead.resets.ctypes.data, "the same memory"
        next(blocks)
    feeder.close()
