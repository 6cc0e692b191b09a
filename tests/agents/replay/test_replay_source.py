"""Replay as a row source: who waits for whom, what is refused, and what a closed or full one says."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import SourcePlace, make_row_source
from league.agents.learner.errors import FeederClosedError, FeederFullError, FeederTimeoutError
from league.agents.replay import row_files
from league.agents.replay.replay_source import ReplaySource
from league.agents.replay.row_files import NoDiskSpaceError
from league.agents.unroll.device_unrolls import on_device
from league.agents.unroll.unroll import Unrolls
from tests.agents.replay.replay_cases import SPEC, marks_of, rows_of

BATCH = 8
DEADLINE_S = 20.0


def made(
    *, threads: int = 1, folder: Path | None = None, generation: int = 0, **options: object
) -> ReplaySource[Unrolls]:
    kind = {"kind": "replay", "capacity": 64, "min_rows": 8, "samples_per_insert": 2.0, **options}
    config = LearnerConfig(unroll_length=3, batch_rows=BATCH, microbatches=2, row_source=kind)
    place = SourcePlace[Unrolls](lambda rows: rows, threads=threads, folder=folder, generation=generation, seed=3)
    source = make_row_source(SPEC, config, place)
    assert isinstance(source, ReplaySource)
    return source


@pytest.fixture
def replay() -> Iterator[ReplaySource[Unrolls]]:
    source = made(error_window=4.0)
    yield source
    source.close()


def batch_of(source: ReplaySource[Unrolls], *, errors: object = None) -> list[int]:
    with source.batch(timeout_s=DEADLINE_S) as blocks:
        marks = [mark for block in blocks for mark in marks_of(block)]
        source.learnt(None if errors is None else np.asarray(errors, np.float32))
    return marks


def test_the_learner_waits_for_the_first_rows_and_then_for_more(replay: ReplaySource[Unrolls]) -> None:
    replay.push(rows_of(*range(7)), num_rows=7)
    assert replay.rows_ready == 0
    with pytest.raises(FeederTimeoutError, match="7 of 8 rows are in the replay"), replay.batch(timeout_s=0.01):
        pass
    replay.push(rows_of(7), num_rows=1)
    # the window is 32 samples: 16 may be taken before they are due, and 16 may be due
    assert [len(batch_of(replay)) for _ in range(2)] == [BATCH, BATCH]
    assert replay.rows_ready == 0
    with pytest.raises(FeederTimeoutError, match="16 samples of 8 rows are enough"), replay.batch(timeout_s=0.01):
        pass
    replay.push(rows_of(8, 9, 10, 11), num_rows=4)
    assert replay.rows_ready == BATCH


def test_whoever_pushes_waits_until_enough_was_sampled(replay: ReplaySource[Unrolls]) -> None:
    for first in range(0, 16, 8):
        replay.push(rows_of(*range(first, first + 8)), num_rows=8)
    with pytest.raises(FeederFullError, match="a chunk of 8 rows came before"):
        replay.push(rows_of(*range(16, 24)), num_rows=8, timeout_s=0.01)
    arguments = {"num_rows": 8, "timeout_s": DEADLINE_S}
    pushing = threading.Thread(target=replay.push, args=(rows_of(*range(16, 24)),), kwargs=arguments)
    pushing.start()
    while not replay.waiting:
        assert pushing.is_alive()
    for _ in range(2):
        batch_of(replay)
    pushing.join(DEADLINE_S)
    assert not pushing.is_alive() and replay.table.size == 24 and replay.report().rows == 24


def test_blocks_are_views_with_weights_and_errors_change_what_comes_next() -> None:
    source = made(alpha=1.0, beta=1.0, samples_per_insert=100.0)
    source.push(rows_of(*range(8)), num_rows=8)
    with source.batch(timeout_s=DEADLINE_S) as blocks:
        sizes = [(block.num_rows, block.weights.shape, block.weights.max()) for block in blocks]  # type: ignore[union-attr]
        assert sizes == [(4, (4,), 1.0)] * 2  # all have the first error
        source.learnt(np.zeros(BATCH, np.float32))
    source.push(rows_of(100), num_rows=1)
    for _ in range(50):  # every old row falls to the least priority once it was learnt
        batch_of(source, errors=np.zeros(BATCH))
        source.table._set_errors(np.array([8]), np.float32([1.0]))
    assert set(batch_of(source)) == {100}
    source.close()


def test_rows_are_counted_as_fresh_for_the_learner() -> None:
    source = made(alpha=0.0, threads=0)
    rows = rows_of(*range(8))
    source.push(rows, num_rows=8)
    assert source.rows_ready == 0, "alone, a batch is due when the rows for it have come"
    source.push(rows_of(8, 9, 10, 11), num_rows=4)
    assert source.rows_ready == BATCH
    with source.batch(timeout_s=0.0) as blocks:
        fresh = blocks.fresh_steps
        (block,) = blocks
        once = np.unique(marks_of(block), return_index=True)[1]
        assert fresh == np.count_nonzero(block.valid[once])
    assert source.rows_ready == 0


def test_rows_of_a_device_are_kept_on_the_host() -> None:
    source = made(threads=0)
    source.push(on_device(rows_of(*range(12)), torch.device("cpu")), num_rows=12)  # type: ignore[arg-type]
    assert source.table.size == 12 and set(batch_of(source)) <= set(range(12))


def test_bad_chunks_are_refused_and_counted(replay: ReplaySource[Unrolls]) -> None:
    replay.push(rows_of(1, 2), num_rows=3)
    with np.errstate(invalid="ignore"):
        bad = rows_of(1)
    bad.rewards[0, 0] = np.nan
    replay.push(bad, num_rows=1)
    report = replay.report()
    assert (report.refused, report.rows) == (2, 0) and "not finite" in report.reason and replay.table.size == 0


def test_closing_wakes_whoever_waits(replay: ReplaySource[Unrolls]) -> None:
    ended = []

    def wait() -> None:
        try:
            with replay.batch(timeout_s=DEADLINE_S):
                pass
        except FeederClosedError:
            ended.append(True)

    waiting = threading.Thread(target=wait)
    waiting.start()
    replay.close()
    waiting.join(DEADLINE_S)
    assert ended == [True]
    with pytest.raises(FeederClosedError):
        replay.push(rows_of(1), num_rows=1)


def test_a_full_disk_is_no_room_until_there_is_some(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = made(folder=tmp_path / "main-0", storage="file")
    monkeypatch.setattr(row_files, "GROWTH_BYTES", 1)

    def full(descriptor: int, start: int, stop: int) -> None:
        raise NoDiskSpaceError(f"{stop - start} bytes of replayed rows have no place on the disk")

    real = row_files._reserve
    monkeypatch.setattr(row_files, "_reserve", full)
    with pytest.raises(FeederFullError, match="have no place on the disk"):
        source.push(rows_of(1), num_rows=1)
    monkeypatch.setattr(row_files, "_reserve", real)
    source.push(rows_of(1), num_rows=1)
    assert source.table.size == 1
    source.close()


def test_a_player_that_begins_again_has_an_empty_replay_and_another_keeps_its_own(tmp_path: Path) -> None:
    first, other = (made(folder=tmp_path / name, storage="file") for name in ("main-0", "main-1"))
    for source in (first, other):
        source.push(rows_of(*range(8)), num_rows=8)
    again = made(folder=tmp_path / "main-0", storage="file", generation=1)
    assert again.table.size == 0
    first.close()
    other.close()
    kept = made(folder=tmp_path / "main-1", storage="file")
    assert kept.table.size == 8 and kept.rows_ready == BATCH
