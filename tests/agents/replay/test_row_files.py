"""A file of rows outlives its process: whole rows come back with what is known of them, torn ones do not."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import numpy as np
import pytest

from league.agents.replay import row_files
from league.agents.replay.replay_table import RateLimiter
from league.agents.replay.row_bytes import RowLayout, checksums_of
from league.agents.replay.row_files import NoDiskSpaceError
from tests.agents.replay.replay_cases import held, rows_of, table_of

KILLS = 30
PUSH_ROWS = 5
CAPACITY = 64


def test_a_file_opened_again_continues_where_it_was(tmp_path: Path) -> None:
    errors = np.float32([4.0, 2.0, 9.0])
    first = table_of(file=tmp_path / "rows", alpha=1.0, limiter=RateLimiter(2.0, 1, 1e9))
    first.insert(rows_of(*range(7)))
    sample = first.sample(3)
    first.update(sample, errors)
    first.insert(rows_of(7, 8, 9))
    again = table_of(file=tmp_path / "rows", alpha=1.0, limiter=RateLimiter(2.0, 1, 1e9))
    assert held(again) == held(first) == set(range(2, 10)) and again.torn == 0
    every = np.arange(8)
    np.testing.assert_allclose(again._tree.weights(every), first._tree.weights(every))
    assert (again.limiter.inserts, again.limiter.samples) == (10, 3)
    assert again.insert(rows_of(10)) == [11] and held(again) == set(range(3, 11))


@pytest.mark.parametrize("other", ["generation", "capacity", "layout"])
def test_rows_of_another_generation_or_shape_are_not_taken_over(
    tmp_path: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = table_of(file=tmp_path / "rows")
    before.insert(rows_of(1, 2))
    if other == "layout":
        monkeypatch.setattr(RowLayout, "description", "other fields of as many bytes")
    changed = {"generation": {"generation": 1}, "capacity": {"capacity": 9}, "layout": {}}[other]
    assert table_of(file=tmp_path / "rows", **changed).size == 0  # type: ignore[arg-type]
    before.insert(rows_of(3))  # whoever still has the old file writes to nobody's
    assert table_of(file=tmp_path / "rows", **changed).size == 0  # type: ignore[arg-type]


def test_damage_of_any_kind_drops_the_row_alone(tmp_path: Path) -> None:
    table = table_of(file=tmp_path / "rows")
    table.insert(rows_of(0, 1, 2, 3))
    table._memory.rows[1, -9] ^= 1
    table._memory.rows[2, 8] ^= 1  # the serial
    again = table_of(file=tmp_path / "rows")
    assert held(again) == {0, 3} and again.torn == 2 and again.size == 2
    assert checksums_of(again._memory.rows)[[1, 2]].tolist() == [0, 0]
    assert set(again.sample(64).slots.tolist()) == {0, 3}


def test_a_full_disk_refuses_rows_before_any_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(file=tmp_path / "rows")
    monkeypatch.setattr(row_files, "GROWTH_BYTES", 1)
    table.insert(rows_of(0, 1))

    def full(descriptor: int, start: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "no space")

    real = os.posix_fallocate
    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(NoDiskSpaceError, match="bytes of replayed rows have no place on the disk"):
        table.insert(rows_of(2))
    assert held(table) == {0, 1} and table.limiter.inserts == 2
    with pytest.raises(NoDiskSpaceError):
        table_of(file=tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    monkeypatch.setattr(os, "posix_fallocate", real)
    table.insert(rows_of(2))
    assert held(table) == {0, 1, 2}


def write_for_ever(path: str) -> None:
    """The child of the test below: chunk after chunk, the last mark of each on its output once it is stored."""
    table = table_of(file=Path(path), capacity=CAPACITY)
    mark = max(held(table), default=-1) + 1
    while True:
        table.insert(rows_of(*range(mark, mark + PUSH_ROWS)))
        mark += PUSH_ROWS
        os.write(1, f"{mark - 1}\n".encode())


def test_rows_survive_kill_9_thirty_times(tmp_path: Path) -> None:
    """Every acknowledged row is there or was replaced by a later one; none is damaged, none is there twice."""
    path, acknowledged = tmp_path / "rows", -1
    rng = np.random.default_rng(3)
    pipe_r, pipe_w = os.pipe()
    for _ in range(KILLS):
        pid = os.fork()
        if pid == 0:
            os.dup2(pipe_w, 1)
            write_for_ever(str(path))
        lines = int(rng.integers(1, 40))
        text = b""
        while text.count(b"\n") < lines:
            text += os.read(pipe_r, 4096)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.set_blocking(pipe_r, False)
        try:
            while more := os.read(pipe_r, 65536):
                text += more
        except BlockingIOError:
            pass
        os.set_blocking(pipe_r, True)
        acknowledged = int(text.split(b"\n")[-2])
        table = table_of(file=path, capacity=CAPACITY)
        now = held(table)
        newest = max(now)
        assert newest <= acknowledged + PUSH_ROWS
        missing = set(range(max(0, acknowledged - CAPACITY + 1), acknowledged + 1)) - now
        assert all(mark <= acknowledged + PUSH_ROWS - CAPACITY for mark in missing), "only rows that were making room"
        assert len(now) == table.size and np.unique(table._serials[table._serials > 0]).size == table.size
