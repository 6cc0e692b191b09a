"""Backups: of a live run too, incremental, replaced as a whole, and a run again when they are copied back."""

from __future__ import annotations

import functools
import shutil
from pathlib import Path

import pytest

from league.errors import DiskFull, LeagueError
from league.http.token_file import tokens_in
from league.operate.history.backup import BackupReport, back_up
from league.operate.history.rewind import rewind_run
from league.run.daemon_status import DaemonStatus
from league.run.monitor.observer import Observer
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.operate.history.fork_cases import contents, small_source
from tests.league.store.store_faults import DieAt, Died, FailAt, Recorder
from tests.league.tiny_runs import ONE_PLAYER, go_on, head_of, start, tiny


def inodes(path: Path, pattern: str) -> dict[str, int]:
    return {found.name: found.stat().st_ino for found in path.rglob(pattern)}


def test_a_live_run_is_backed_up_again_and_again_and_a_copy_of_the_backup_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[BackupReport] = []
    dest, observe, turns = tmp_path / "backup", Observer.observe, [0]

    def back_up_now(self: Observer, seen: DaemonStatus) -> None:
        observe(self, seen)
        turns[0] += 1
        if turns[0] % 4 == 0:
            made.append(back_up(tmp_path / "run", dest))
            assert turns[0] != 8 or verify_run(dest).problems == ()

    monkeypatch.setattr(Observer, "observe", back_up_now)
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=900)
    monkeypatch.setattr(Observer, "observe", observe)
    assert len(made) > 1 and made[-1].since == made[-2].event > 0 and not any(report.left_out for report in made)
    assert sum(report.shared for report in made) >= 2
    heartbeat = read_status(dest).daemon.status
    assert heartbeat.phase == "stopped" and "backup" in heartbeat.message
    assert head_of(dest) == (made[-1].event, made[-1].chain)
    shutil.copytree(dest, tmp_path / "restored")
    go_on(tmp_path / "restored", env_steps=100)
    assert verify_run(tmp_path / "restored").problems == ()
    assert back_up(tmp_path / "restored", dest).since == made[-1].event


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run, and its backup from before it was continued, both beside each other."""
    folder = tmp_path_factory.mktemp("stopped")
    run = small_source(folder)
    back_up(run, folder / "backup")
    go_on(run, env_steps=400)
    return folder


@pytest.fixture
def folder(stopped: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped, tmp_path / "here")
    return tmp_path / "here"


def test_the_backup_of_a_stopped_run_continues_as_the_run_itself(folder: Path) -> None:
    run, dest = folder / "run", folder / "backup"
    tokens_in(RunFolder(run).tokens_path)
    before, held = contents(run), inodes(dest, "weights.safetensors")
    report = back_up(run, dest)
    assert contents(run) == before and report.shared and report.copied
    assert held.items() <= {**inodes(dest, "weights.safetensors"), **held}.items()
    assert not set(inodes(run, "*").values()) & set(inodes(dest, "*").values()), "nothing is shared with the run"
    assert not RunFolder(dest).tokens_path.exists(), "tokens stay where they are"
    kept = {**inodes(dest, "*.ckpt")}
    again = back_up(run, dest)
    assert (again.copied, again.event) == (0, report.event) and inodes(dest, "*.ckpt") == kept
    for path in (run, dest):
        go_on(path, env_steps=500)
    assert head_of(run) == head_of(dest) and head_of(run)[0] > report.event + 10
    with pytest.raises(LeagueError, match="continued as a run of its own"):
        back_up(run, dest)


def die_at(wanted: str, point: str) -> None:
    if point == wanted:
        raise Died(point)


def test_a_kill_at_any_write_leaves_a_whole_backup_and_the_next_one_goes_through(folder: Path) -> None:
    run, dest, recorder = folder / "run", folder / "backup", Recorder()
    shutil.copytree(dest, folder / "other")
    back_up(run, folder / "other", storage=Storage(hook=recorder))
    shutil.rmtree(folder / "other")
    old, before_swap = head_of(dest), recorder.passed.index("swap.before_exchange")
    for number in range(0, before_swap, before_swap // 5):
        with pytest.raises(Died):
            back_up(run, dest, storage=Storage(hook=DieAt(number)))
        assert head_of(dest) == old
    for point, expected in (("swap.before_exchange", old), ("swap.before_fsync", head_of(run))):
        with pytest.raises(Died):
            back_up(run, dest, storage=Storage(hook=functools.partial(die_at, point)))
        assert head_of(dest) == expected and verify_run(dest).problems == ()
    back_up(run, dest)
    assert verify_run(dest).problems == ()
    assert sorted(path.name for path in folder.iterdir()) == ["backup", "config.yaml", "run"]


def test_a_full_disk_is_one_sentence_and_the_backup_of_before_is_as_it_was(folder: Path) -> None:
    before = contents(folder / "backup")
    for number in (0, 9, 30):
        with pytest.raises(DiskFull):
            back_up(folder / "run", folder / "backup", storage=Storage(hook=FailAt(number)))
        assert contents(folder / "backup") == before
        assert sorted(path.name for path in folder.iterdir()) == ["backup", "config.yaml", "run"]


def test_a_destination_that_is_no_earlier_backup_of_the_run_is_refused(folder: Path) -> None:
    run, dest = folder / "run", folder / "backup"
    for wrong, sentence in ((run / "inside", "lie in one another"), (folder, "lie in one another")):
        with pytest.raises(LeagueError, match=sentence):
            back_up(run, wrong)
    (folder / "other").mkdir()
    (folder / "other" / "file").touch()
    with pytest.raises(LeagueError, match="is no backup of a run"):
        back_up(run, folder / "other")
    rewind_run(run, at="3", confirm=lambda report: True)
    go_on(run, env_steps=600)
    assert head_of(run)[0] > head_of(dest)[0]
    with pytest.raises(LeagueError, match="of before a rewind"):
        back_up(run, dest)


def test_a_file_that_the_run_has_lost_is_named_and_the_rest_is_copied(folder: Path) -> None:
    run = folder / "run"
    lost = next(run.glob("snapshots/*/*/weights.safetensors"))
    lost.write_bytes(b"damaged")
    report = back_up(run, folder / "new")
    assert len(report.left_out) == 1 and "snapshot main-0-s" in report.left_out[0] and str(lost) in report.left_out[0]
    assert report.copied > 1 and head_of(folder / "new") == head_of(run)
