"""A run whose replayed rows fill the disk: it pauses before, as for any other file, and a refused row damages none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.agents.replay import row_files
from league.agents.replay.row_files import NoDiskSpaceError
from league.core.state.events import LeaseGranted, SettingsChanged
from league.errors import LeagueError
from league.run.operations import disk_floor
from league.run.operations.disk_floor import BY, DiskFloor
from league.see.reports.verify import verify_run
from tests.league.tiny_runs import GATE, events_of, go_on, start, state_of, tiny

KIB = 1 << 10
FLOOR = 64 * KIB
STEPS, LOOKS = 2_000, 8
"""Looks at a disk that is full before somebody makes room."""


class Disk:
    """A disk on which only the rows of replays take place.

    Attributes:
      free: bytes. refused: attempts to take more. low: looks at less than the floor.
    """

    def __init__(self, free: int) -> None:
        self.free = free
        self.refused = self.low = 0

    def take(self, descriptor: int, start: int, stop: int) -> None:
        """In the place of `posix_fallocate`."""
        if stop - start > self.free:
            self.refused += 1
            raise NoDiskSpaceError("no place on the disk")
        self.free -= stop - start

    def space(self, path: Path) -> tuple[int, int]:
        """In the place of `disk_space`; after some looks at a full disk it is emptied."""
        self.low += self.free < FLOOR
        if self.low == LOOKS:
            self.free = 1 << 30
        return self.free, 1 << 30


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A disk with room for some rows, which grow by a little at a time and are looked at in every turn."""
    made = Disk(free=FLOOR + 20 * KIB)
    monkeypatch.setattr(row_files, "_reserve", made.take)
    monkeypatch.setattr(row_files, "GROWTH_BYTES", 4 * KIB)
    monkeypatch.setattr(disk_floor, "LOOK_EVERY_S", 0.0)
    monkeypatch.setitem(DiskFloor.__init__.__kwdefaults__, "space", made.space)  # type: ignore[arg-type]
    return made


def replaying(*, floor_bytes: int) -> dict[str, Any]:
    row_source = {"kind": "replay", "capacity": 512, "min_rows": 16, "samples_per_insert": 1.0, "storage": "file"}
    return tiny(
        network={"head": "q_values"},
        learner={"algorithm": "dqn", "row_source": row_source},
        league={"players": [{"role": "main_agent", "gate": GATE}]},
        retention={"floor_gib": floor_bytes / 2**30},
    )


def test_training_pauses_before_the_rows_fill_the_disk_and_continues(
    disk: Disk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start(tmp_path, replaying(floor_bytes=FLOOR), env_steps=STEPS)
    run, said = tmp_path / "run", capsys.readouterr().out
    assert disk.low == LOOKS and disk.refused == 0, "no row was refused: it paused before"
    assert said.count("Training is paused") == said.count("Training continues") == 1
    events = events_of(run)
    changes = [place for place, event in enumerate(events) if isinstance(event, SettingsChanged)]
    assert [event.by for event in events if isinstance(event, SettingsChanged)] == [BY, BY]
    granted = [any(isinstance(event, LeaseGranted) for event in part) for part in parts_of(events, changes)]
    assert granted == [True, False, True]
    assert state_of(run).totals.env_steps >= STEPS and verify_run(run).problems == ()


def parts_of(events: list[Any], places: list[int]) -> list[list[Any]]:
    first, last = places
    return [events[:first], events[first:last], events[last:]]


def test_a_disk_that_is_full_nevertheless_ends_the_run_in_one_sentence_and_it_is_resumed(
    disk: Disk, tmp_path: Path
) -> None:
    disk.free, disk.low = 20 * KIB, LOOKS + 1
    with pytest.raises(LeagueError, match="no place on the disk"):
        start(tmp_path, replaying(floor_bytes=0), env_steps=STEPS)
    run, before = tmp_path / "run", state_of(tmp_path / "run")
    assert disk.refused == 1 and 0 < before.totals.env_steps < STEPS
    disk.free = 1 << 30
    go_on(run, env_steps=STEPS // 2)
    after = state_of(run)
    (player,), (earlier,) = after.players.values(), before.players.values()
    assert player.trained_steps > earlier.trained_steps > 0 and verify_run(run).problems == ()
