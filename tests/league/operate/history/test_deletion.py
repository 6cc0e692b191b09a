"""`league delete`: what goes is said first, a run that somebody works on stays, and no half of a run is left."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from league.errors import LeagueError, MissingRun, StorageError
from league.operate.history.deletion import delete_run, plan_deletion
from league.store.known_runs import known_runs, note_run
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.commands import league
from tests.league.see.page.page_runs import write_run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small run that this user knows of."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = write_run(tmp_path / "mine", leases=4).path
    note_run(path)
    return path


def test_the_plan_counts_what_the_deed_frees(run: Path, tmp_path: Path) -> None:
    (run / "large").write_bytes(bytes(1 << 20))
    (run / "shared").write_bytes(bytes(1 << 20))
    os.link(run / "shared", tmp_path / "kept")
    plan = plan_deletion(run)
    assert (plan.done, run.is_dir()) == (False, True)
    assert 1 << 20 <= plan.shared_bytes < 2 << 20 and plan.freed_bytes >= 1 << 20
    assert plan.files == sum(len(names) for _, _, names in os.walk(run))
    report = delete_run(run)
    assert report.done and report.freed_bytes == plan.freed_bytes
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "state"]
    assert known_runs() == [] and not list((tmp_path / "state" / "league" / "runs").iterdir())


def test_a_run_that_somebody_works_on_stays(run: Path) -> None:
    folder = RunFolder(run)
    for lock in (folder.lock, folder.supervisor_lock):
        with lock, pytest.raises(LeagueError, match=r"pid|process"):
            delete_run(run)
    assert (run / "journal.db").is_file()


def test_what_is_no_run_is_not_removed(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    with pytest.raises(MissingRun):
        delete_run(tmp_path / "thesis")
    assert (tmp_path / "thesis").is_dir()


@pytest.mark.parametrize("point", ["folder.before_rename", "folder.before_fsync", "remove.before_rmtree"])
def test_half_of_a_run_is_no_run(run: Path, point: str) -> None:
    def cut_off(reached: str) -> None:
        if reached == point:
            raise OSError(5, "cut off")

    with pytest.raises(StorageError):
        delete_run(run, storage=Storage(hook=cut_off))
    if run.exists():
        assert delete_run(run).done
    assert not [path for path in run.parent.glob("*/config.yaml") if not path.parent.name.startswith(".tmp-")]
    write_run(run, leases=2)
    delete_run(run)
    assert [path.name for path in run.parent.iterdir()] == ["state"]


def test_the_command_asks_and_answers(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
    asked = league("delete", run)
    assert asked.code == 1 and "for good" in asked.err and run.is_dir()
    said = league("delete", run, "--dry-run", "--json").json
    assert not said["done"] and said["words"].startswith(f"{run} for good") and run.is_dir()
    assert league("delete", run, "--yes", "--json").json["done"] and not run.exists()
