"""The floor of free space: training pauses below it, in the journal, and continues by itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.core.state.events import LeaseGranted, SettingsChanged
from league.run.operations.disk_floor import BY, HEADROOM, WRITTEN_PER_PLAYER, DiskFloor
from league.see.reports.status.status_report import read_status
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of

GIB = 1 << 30


def floor_of(bench: Bench, free: list[int], said: list[str], *, total: int = 100 * GIB) -> DiskFloor:
    """A floor over a disk whose free space is the last entry of `free`."""
    return DiskFloor(
        bench.folder.path,
        bench.operator,
        snapshot_bytes=1_000,
        say=said.append,
        space=lambda path: (free[-1], total),
        monotonic=lambda: bench.runtime.now,
    )


def pauses_of(bench: Bench) -> list[tuple[str, str]]:
    found = [event for event in events_of(bench.folder.path) if isinstance(event, SettingsChanged)]
    return [(event.by, event.changes[0].new) for event in found]


def test_a_full_disk_pauses_training_says_so_and_training_continues_by_itself(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", adapt=False)
    free, said, during = [50 * GIB], list[str](), list[str]()
    floor = floor_of(bench, free, said)

    def fill(number: int) -> None:
        free.append(GIB // 2 if 10 <= number < 30 else 50 * GIB)
        floor.look(bench.league.state)
        if number == 25:
            during.append(read_status(bench.folder.path).text())

    bench.runtime.on_poll = fill
    bench.run(env_steps=3_000)
    assert pauses_of(bench) == [(BY, "true"), (BY, "false")]
    assert len(said) == 2 and "0.50 GiB are free" in said[0] and "retention.floor_gib" in said[0]
    assert f"training is paused by {BY}: 0.50 GiB are free" in during[0]
    assert "paused" not in read_status(bench.folder.path).text()
    kinds = [type(event) for event in events_of(bench.folder.path)]
    first, last = (place for place, kind in enumerate(kinds) if kind is SettingsChanged)
    assert LeaseGranted in kinds[:first] and LeaseGranted not in kinds[first:last] and LeaseGranted in kinds[last:]


@pytest.mark.parametrize("back", [50 * GIB, int(1.1 * GIB)])
def test_a_pause_of_somebody_else_and_a_disk_just_over_its_floor_stay_as_they_are(tmp_path: Path, back: int) -> None:
    bench = Bench(tmp_path / "run", adapt=False)
    free, said = [GIB // 2], list[str]()
    floor = floor_of(bench, free, said)

    def ask(number: int) -> None:
        if number == 5 and back == 50 * GIB:
            bench.operator.submit("pause", {"what": "training"}, by="me")
        if number > 6:
            floor.look(bench.league.state)
        if number == 20:
            assert bench.league.state.training_paused
            free.append(back)
        if number == 40:
            assert bench.league.state.training_paused
            bench.operator.submit("unpause", {"what": "training"}, by="me")
            free.append(50 * GIB)

    bench.runtime.on_poll = ask
    bench.run(env_steps=3_000)
    expected = "me" if back == 50 * GIB else BY
    assert pauses_of(bench)[0] == (expected, "true") and len(pauses_of(bench)) == 2


def test_the_floor_follows_the_size_of_disk_and_players_and_the_setting(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", adapt=False)
    players, said = len(bench.league.state.players), list[str]()
    for total, size, expected in (
        (100 * GIB, 1_000, GIB),
        (2 * GIB, 1_000, int(0.05 * 2 * GIB)),
        (100 * GIB, GIB, WRITTEN_PER_PLAYER * players * GIB),
    ):
        floor = floor_of(bench, [90 * GIB], said, total=total)
        floor._snapshot_bytes = size
        floor.look(bench.league.state)
        assert floor.floor_bytes == expected
    assert HEADROOM > 1.0

    def change(number: int) -> None:
        if number == 5:
            bench.operator.submit("set", {"key": "retention.floor_gib", "value": 0}, by="me")

    bench.runtime.on_poll = change
    bench.run(env_steps=1_000)
    off = floor_of(bench, [0], said)
    off.look(bench.league.state)
    assert off.floor_bytes == 0 and not off.is_low and not said
