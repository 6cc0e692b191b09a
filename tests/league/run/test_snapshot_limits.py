"""A run with a limit of snapshots: weights go from the disk, all commands still work, and the run goes on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import league
from league.core.state.events import SnapshotRetired
from league.operate.history.fork import fork_run
from league.operate.history.rewind import rewind_run
from league.see.reports.ratings import read_ratings
from league.see.reports.verify import verify_run
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from tests.league.tiny_runs import events_of, go_on, start, state_of, tiny

GATE = {"min_steps": 60, "timeout_steps": 60, "test": {"min_games": 4}}
LIMIT = 12


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    plain = tiny(league={"players": [{"role": "main_agent", "gate": GATE}]}, retention={"snapshots": LIMIT})
    start(folder, plain, env_steps=4_000)
    return folder / "run"


def retired_of(run: Path) -> list[str]:
    return [event.snapshot for event in events_of(run) if isinstance(event, SnapshotRetired)]


def test_the_weights_of_retired_snapshots_are_gone_and_the_run_holds(made: Path) -> None:
    retired, state = retired_of(made), state_of(made)
    assert len(state.snapshots) > LIMIT and len(retired) >= len(state.snapshots) - LIMIT
    stored = set(LocalSnapshotStore(made / "snapshots").digests())
    assert stored >= {known.digest for name, known in state.snapshots.items() if name not in retired}
    assert len(stored) <= LIMIT
    assert verify_run(made).problems == ()
    assert set(retired) <= {row.policy for row in read_ratings(made).rows}
    assert league.load_policy(made)


def test_a_run_with_retired_snapshots_resumes_forks_and_rewinds(run: Path, tmp_path: Path) -> None:
    events = events_of(run)
    before_any = next(number for number, event in enumerate(events, start=1) if isinstance(event, SnapshotRetired)) - 1
    for at in (str(before_any), "latest"):
        made = tmp_path / f"fork-{at}"
        fork_run(run, made, at=at)
        go_on(made, env_steps=300)
        assert verify_run(made).problems == ()
    go_on(run, env_steps=300)
    assert verify_run(run).problems == ()
    assert rewind_run(run, at=str(before_any), confirm=lambda report: True) is not None
    go_on(run, env_steps=300)
    assert verify_run(run).problems == ()


def test_a_retired_snapshot_whose_weights_are_still_there_is_not_taken_back_and_goes_later(run: Path) -> None:
    retired = retired_of(run)[0]
    digest = state_of(run).snapshots[retired].digest
    shutil.copytree(next(run.glob("snapshots/*/*")), run / "snapshots" / digest[:2] / digest)
    go_on(run, env_steps=1_000)
    assert not (run / "snapshots" / digest[:2] / digest).exists()
    assert not state_of(run).is_present(retired)


def test_a_removed_snapshot_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    store = LocalSnapshotStore(tmp_path)
    weights = b"weights"
    digest = store.put(weights, SnapshotManifest(sha256_hex(weights), "p", "main_agent", None, 0, 0, "e", "h", {}))
    for _ in range(2):
        store.remove(digest)
        assert list(store.digests()) == [] and not list(tmp_path.rglob("weights*"))
