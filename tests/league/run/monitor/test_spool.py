"""Rows that wait for their upload: none is read twice or passed over, and the disk they take has a limit."""

from __future__ import annotations

from pathlib import Path

from league.run.monitor.spool import Spool, SpoolReader, segments
from league.store.storage import Storage


def spool_at(path: Path, warnings: list[str], *, max_bytes: int = 1 << 20, segment_bytes: int = 400) -> Spool:
    return Spool(
        path,
        storage=Storage(),
        clock=lambda: 0.0,
        warn=warnings.append,
        max_bytes=max_bytes,
        segment_bytes=segment_bytes,
    )


def steps(reader: SpoolReader) -> list[int]:
    """Steps of all rows that there are, handed over one block after the other."""
    found: list[int] = []
    while rows := reader.rows():
        found += [row[0] for row in rows]
        reader.keep_place()
    return found


def test_every_row_is_read_once_over_many_files_and_restarts_of_both_ends(tmp_path: Path) -> None:
    path, warnings, read = tmp_path / "spool.jsonl", [], []
    written = 0
    for _ in range(7):
        spool = spool_at(path, warnings)
        for _ in range(23):
            spool.log(written, {"a": 1.0})
            written += 1
        spool.close()
        read += steps(SpoolReader(path, storage=Storage()))
    assert read == list(range(written))
    assert warnings == []


def test_a_row_longer_than_what_is_read_at_once_holds_nothing_up(tmp_path: Path) -> None:
    path = tmp_path / "spool.jsonl"
    spool, reader = spool_at(path, [], max_bytes=1 << 24, segment_bytes=1 << 23), SpoolReader(path, storage=Storage())
    many = {f"players/main-{number}/win_rate": 0.5 for number in range(90_000)}
    for step, values in enumerate(({"a": 1.0}, many, {"a": 1.0})):
        spool.log(step, values)
    assert path.stat().st_size > 2 << 20
    assert steps(reader) == [0, 1, 2]


def test_what_was_uploaded_takes_no_room(tmp_path: Path) -> None:
    path = tmp_path / "spool.jsonl"
    spool, reader = spool_at(path, []), SpoolReader(path, storage=Storage())
    most = 0
    for step in range(2_000):
        spool.log(step, {"a": 1.0})
        if step % 10 == 0:
            steps(reader)
            most = max(most, sum(part.stat().st_size for part in segments(path).values()))
    assert most < 1_500
    assert len(segments(path)) <= 2


def test_what_nobody_uploads_is_dropped_oldest_first_and_reported(tmp_path: Path) -> None:
    path, warnings = tmp_path / "spool.jsonl", []
    spool = spool_at(path, warnings, max_bytes=4_000)
    for step in range(3_000):
        spool.log(step, {"a": 1.0})
    assert sum(part.stat().st_size for part in segments(path).values()) <= 4_400
    left = steps(SpoolReader(path, storage=Storage()))
    assert left == list(range(left[0], 3_000)) and left[0] > 2_000
    assert len(warnings) == 1 and "the oldest of those that wait are dropped" in warnings[0]
    spool.close()
    assert f"{left[0]:,} rows of metrics were dropped" in warnings[1]


def test_a_reader_continues_where_files_were_dropped_before_it_came(tmp_path: Path) -> None:
    path = tmp_path / "spool.jsonl"
    spool, reader = spool_at(path, [], max_bytes=2_000), SpoolReader(path, storage=Storage())
    spool.log(0, {"a": 1.0})
    assert steps(reader) == [0]
    for step in range(1, 500):
        spool.log(step, {"a": 1.0})
    left = steps(reader)
    assert left == list(range(left[0], 500))
