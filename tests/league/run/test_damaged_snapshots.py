"""A snapshot that is damaged or gone: the lease at hand is lost, the league says so and goes on without it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from league.core.state.events import (
    LeaseExpired,
    LeaseGranted,
    PlayerReset,
    SnapshotQuarantined,
    SnapshotRestored,
)
from league.errors import LeagueError
from league.hosts.protocol import InstallPlayer, PlayLease, ResetPlayer
from league.policies.select import UnknownPolicy, choose
from league.run.daemon import LIMIT
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from league.store.snapshots import LocalSnapshotStore
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import GATE, ONE_PLAYER, events_of

Harm = Callable[[Path], object]


def flip(folder: Path) -> None:
    """Turn one bit of the weights."""
    weights = folder / "weights.safetensors"
    content = bytearray(weights.read_bytes())
    content[-3] ^= 1
    weights.write_bytes(content)


def lose_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


HARMS: list[Harm] = [flip, shutil.rmtree, lose_manifest]


def folder_of(bench: Bench, snapshot: str) -> Path:
    store = LocalSnapshotStore(bench.folder.snapshots_path)
    return store.folder(bench.league.state.snapshots[snapshot].digest)


def grown(path: Path, **changes: object) -> Bench:
    """A stopped run whose player has snapshots with weights of their own, opened again."""
    bench = Bench(path, **changes)  # type: ignore[arg-type]
    bench.runtime.varied = True
    assert bench.run(env_steps=3_000) == LIMIT
    bench.league.close()
    again = Bench(path, **changes)  # type: ignore[arg-type]
    again.runtime.varied = True
    return again


@pytest.mark.parametrize("harm", HARMS)
def test_a_damaged_snapshot_is_quarantined_and_the_run_continues(harm: Harm, tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    harm(folder_of(bench, "main-0-s1"))
    assert bench.run(env_steps=6_000) == LIMIT
    events = events_of(bench.folder.path)
    (quarantined,) = (event for event in events if isinstance(event, SnapshotQuarantined))
    assert quarantined.snapshot == "main-0-s1"
    place = events.index(quarantined)
    after = [event.lease for event in events[place:] if isinstance(event, LeaseGranted)]
    assert len(after) > 20
    assert not any("main-0-s1" in assignment.policies for lease in after for assignment in lease.assignments)
    expired = [event for event in events if isinstance(event, LeaseExpired) and "main-0-s1" in event.reason]
    assert len(expired) == 1
    (sentence,) = (text for text in bench.warned if "main-0-s1" in text)
    assert "is set aside" in sentence


def test_a_mended_snapshot_is_taken_back_at_the_next_start(tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    folder, copy = folder_of(bench, "main-0-s1"), tmp_path / "copy"
    shutil.copytree(folder, copy)
    flip(folder)
    bench.run(env_steps=6_000)
    bench.league.close()
    shutil.rmtree(folder)
    shutil.copytree(copy, folder)
    again = Bench(tmp_path / "run", league=ONE_PLAYER)
    again.run(env_steps=300)
    assert SnapshotRestored("main-0-s1") in events_of(again.folder.path)
    assert again.league.state.is_present("main-0-s1")
    assert any("main-0-s1 is whole again" in text for text in again.warned)


def test_a_reset_whose_source_is_damaged_starts_from_another_snapshot(tmp_path: Path) -> None:
    always = {"players": [{"role": "league_exploiter", "gate": {**GATE, "reset_probability": 1.0}}]}
    bench = grown(tmp_path / "run", league=always)
    folder = folder_of(bench, "league-exploiter-0-s0")
    flip(folder)
    before = len(bench.runtime.of(ResetPlayer))
    bench.run(env_steps=3_000)
    assert len(bench.runtime.of(ResetPlayer)) > before
    events = events_of(bench.folder.path)
    place = next(i for i, event in enumerate(events) if isinstance(event, SnapshotQuarantined))
    sources = {event.source for event in events[place:] if isinstance(event, PlayerReset)}
    assert sources and "league-exploiter-0-s0" not in sources


def without_checkpoint(bench: Bench) -> None:
    for path in bench.folder.checkpoints_path.glob("*/*.ckpt"):
        path.unlink()


def test_a_player_whose_checkpoint_and_parent_are_damaged_continues_from_the_snapshot_before(tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    known = bench.league.state.players["main-0"]
    assert known.parent is not None
    before = f"main-0-s{known.num_snapshots - 2}"
    digest = bench.policies.snapshot(bench.league.state.snapshots[before]).digest()
    without_checkpoint(bench)
    flip(folder_of(bench, known.parent))
    assert bench.run(env_steps=300) == LIMIT
    (install,) = (task for task in bench.runtime.of(InstallPlayer) if isinstance(task, InstallPlayer))
    assert install.saved is None and install.weights is not None
    assert install.weights.digest() == digest
    assert install.trained_steps == bench.league.state.snapshots[before].trained_steps
    assert any(f"starts from its snapshot {before} instead" in text for text in bench.warned)


def test_a_player_of_which_nothing_is_left_is_never_started_from_scratch(tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    without_checkpoint(bench)
    for name in bench.league.state.snapshots:
        flip(folder_of(bench, name))
    with pytest.raises(LeagueError, match="nothing is left of main-0"):
        bench.run(env_steps=300)
    assert not bench.runtime.of(PlayLease)


@pytest.mark.parametrize("harm", HARMS)
def test_verify_tells_of_a_quarantined_snapshot_and_holds_where_its_folder_is_gone(harm: Harm, tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    harm(folder_of(bench, "main-0-s1"))
    assert verify_run(bench.folder.path).problems
    bench.run(env_steps=6_000)
    report = verify_run(bench.folder.path)
    assert any("main-0-s1" in line and "set aside" in line for line in report.checked)
    assert bool(report.problems) == (harm is not shutil.rmtree)


def test_exports_name_no_snapshot_that_is_set_aside(tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    newest = bench.league.state.players["main-0"].parent
    assert newest is not None
    flip(folder_of(bench, newest))
    bench.run(env_steps=100)
    state = bench.league.state
    state.population.set_aside(state.population.index[newest], reason="damaged")
    state.players["main-0"].checkpoint = None
    for name in ("best", "average", "main-0"):
        assert newest not in [snapshot.snapshot_id for _, snapshot in choose(state, name).members]
    for snapshot in state.snapshots:
        state.population.set_aside(state.population.index[snapshot], reason="damaged")
    with pytest.raises(UnknownPolicy):
        choose(state, "best")


def test_status_tells_of_snapshots_that_cannot_be_read(tmp_path: Path) -> None:
    bench = grown(tmp_path / "run", league=ONE_PLAYER)
    flip(folder_of(bench, "main-0-s1"))
    bench.run(env_steps=6_000)
    report = read_status(bench.folder.path)
    assert report.league.set_aside == ("main-0-s1",)
    assert "snapshots set aside, as they cannot be read: main-0-s1" in report.text()


def test_weights_that_the_runtime_keeps_are_brought_once_and_held_nowhere_else(tmp_path: Path) -> None:
    bench = grown(tmp_path / "run")
    bench.runtime.kept = set()
    assert bench.run(env_steps=1_000) == LIMIT
    tasks = bench.runtime.of(PlayLease)
    brought = [name for task in tasks for name in task.frozen]  # type: ignore[union-attr]
    policies = [name for task in tasks for name in task.lease.policies]  # type: ignore[union-attr]
    named = [name for name in policies if name in bench.league.state.snapshots]
    assert sorted(brought) == sorted(set(named))
    assert len(named) > 2 * len(brought)
    sources = {
        bench.league.state.snapshots[str(player.initial)].digest for player in bench.league.state.players.values()
    }
    assert {bench.league.state.snapshots[name].digest for name in brought} & bench.policies._held.keys() <= sources
