"""No damaged file of a run is read as something else, and none ends in an error without a name."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.durability.corruption import report_of, run_cases
from benchmarks.durability.simulation import MEMORY
from league.store import checkpoints
from league.store.storage import Storage


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        yield Path(name)


def test_no_damaged_file_is_accepted(folder: Path) -> None:
    counted = run_cases(folder, 210, seed=1)
    assert not [line for counts in counted.values() for line in counts.lines]
    assert len(counted) == 7 and all(sum(counts.ends.values()) == 30 for counts in counted.values())
    assert counted["checkpoints"].ends == {"refused": 30}
    assert counted["journals"].ends["refused"] > 10


def test_a_reader_that_checks_nothing_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unchecked(storage: Storage, path: Path, digest: str, *, max_bytes: int) -> bytes:
        return storage.read_bytes(path, max_bytes=max_bytes)

    monkeypatch.setattr(checkpoints, "read_verified", unchecked)
    report = report_of(run_cases(folder, 70, seed=1))
    assert [row.name for row in report.failed] == ["damaged checkpoints: accepted although other"]
