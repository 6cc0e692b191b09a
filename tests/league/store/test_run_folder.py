"""One live daemon per run folder, and an honest word on who that is."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest

from league.errors import InvalidName, MissingRun, RunExists, RunInUse, StorageError
from league.store.lock import Holder, RunLock, is_alive, this_process
from league.store.run_folder import RunFolder, RunStatus, WorkerStatus, new_run_path, require_lasting
from league.store.supervision import Supervision, read_supervision, write_supervision

HOLD = """
import sys
from pathlib import Path
from league.store.lock import RunLock
lock = RunLock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def status_of(holder: Holder, *, phase: str = "running") -> RunStatus:
    return RunStatus(
        daemon=holder,
        phase=phase,
        started_at=1.0,
        heartbeat_at=2.0,
        journal_seq=3,
        workers=(WorkerStatus("actor_host", 7),),
    )


def test_a_second_daemon_is_refused_with_pid_and_host_and_a_dead_ones_lock_is_free(tmp_path: Path) -> None:
    path = tmp_path / "run.lock"
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(RunInUse, match=f"process {process.pid} on host {socket.gethostname()}") as caught:
            RunLock(path).acquire()
        assert (caught.value.pid, caught.value.host) == (process.pid, socket.gethostname())
        process.send_signal(signal.SIGKILL)
        process.wait()
    with RunLock(path) as lock:
        assert lock.held


def test_two_locks_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with RunLock(tmp_path / "run.lock"), pytest.raises(RunInUse, match=str(os.getpid())):
        RunLock(tmp_path / "run.lock").acquire()
    with RunLock(tmp_path / "run.lock"):
        pass


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / "run.lock")
    lock.acquire()
    ready_read, ready_write = os.pipe()
    end_read, end_write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(end_write)
        os.write(ready_write, b"1")
        os.read(end_read, 1)
        os._exit(0)
    os.close(end_read)
    os.read(ready_read, 1)
    lock.release()
    try:
        with RunLock(tmp_path / "run.lock") as second:
            assert second.held
    finally:
        os.close(end_write)
        os.waitpid(child, 0)


def test_the_child_of_a_holder_does_not_free_the_lock(tmp_path: Path) -> None:
    with RunLock(tmp_path / "run.lock"):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitpid(child, 0)
        with pytest.raises(RunInUse):
            RunLock(tmp_path / "run.lock").acquire()


def test_release_twice_is_harmless(tmp_path: Path) -> None:
    lock = RunLock(tmp_path / "run.lock")
    lock.acquire()
    lock.release()
    lock.release()
    assert not lock.held


def test_create_makes_the_layout_and_refuses_a_second_run(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "runs" / "a", config_yaml="name: a\n")
    assert run.read_config() == "name: a\n"
    assert sorted(found.name for found in run.path.iterdir()) == [
        "checkpoints",
        "config.yaml",
        "logs",
        "snapshots",
        "wandb",
    ]
    with pytest.raises(RunExists, match="league resume"):
        RunFolder.create(run.path, config_yaml="name: b\n")
    assert RunFolder.open(run.path).read_config() == "name: a\n"


def test_paths_are_absolute_whatever_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = RunFolder.create(Path("here"), config_yaml="")
    assert run.journal_path == tmp_path / "here" / "journal.db"


def test_a_folder_without_a_configuration_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(MissingRun, match=r"has no config\.yaml"):
        RunFolder.open(tmp_path)


def test_what_is_no_run_is_said_to_be_missing_a_file_or_a_part_of_a_run(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "a", config_yaml="")
    run.journal_path.touch()
    for path, words in (
        (tmp_path / "nowhere", "does not exist: give a run folder"),
        (run.snapshots_path, f"is not a run folder but a part of one: give {run.path}"),
        (run.config_path, f"is not a run folder but a part of one: give {run.path}"),
        (tmp_path / "file", "is not a run folder \\(it is a file\\)"),
    ):
        (tmp_path / "file").touch()
        with pytest.raises(MissingRun, match=words):
            RunFolder.open(path)


def test_the_heartbeat_reads_back_as_written(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "a", config_yaml="")
    assert run.read_status() is None
    status = status_of(this_process())
    run.write_status(status)
    assert run.read_status() == status
    assert run.is_live(status)


def test_a_heartbeat_of_another_kind_is_named_and_counts_no_events(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = RunFolder.create(tmp_path / "a", config_yaml="")
    run.status_path.write_bytes(b'{"daemon": 1}')
    with pytest.raises(StorageError, match="not a status file"):
        run.read_status()
    assert run.durable_seq() == 0
    assert "the journal is read without the heartbeat" in caplog.text


@pytest.mark.parametrize("left", [b"", bytes(4096), b'{"daemon":{"pid":17', b"\xff\xfe\x00\x81"])
def test_a_heartbeat_that_a_power_cut_emptied_or_tore_is_none(left: bytes, tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "a", config_yaml="")
    status = status_of(this_process())
    run.write_status(status)
    assert run.durable_seq() == status.journal_seq
    run.status_path.write_bytes(left)
    assert run.read_status() is None
    assert run.durable_seq() == 0


def test_a_dead_or_stopped_daemon_is_not_live(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "a", config_yaml="")
    me = this_process()
    assert not run.is_live(status_of(me, phase="stopped"))
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert not run.is_live(status_of(Holder(pid=process.pid, host=me.host, started=0)))


def test_a_recycled_pid_is_not_taken_for_the_daemon() -> None:
    me = this_process()
    assert is_alive(me)
    assert not is_alive(Holder(pid=me.pid, host=me.host, started=me.started - 1))
    assert is_alive(Holder(pid=me.pid, host="elsewhere", started=1))


def test_a_copy_of_a_live_run_is_not_live(tmp_path: Path) -> None:
    """The copy names the daemon of the original, which a command given the copy must not reach."""
    run = RunFolder.create(tmp_path / "a", config_yaml="")
    run.write_status(status_of(this_process(run.path)))
    write_supervision(run, Supervision(this_process(run.path), 0.0))
    (tmp_path / "link").symlink_to(run.path)
    shutil.copytree(run.path, tmp_path / "copy")
    for path, expected in ((run.path, True), (tmp_path / "link", True), (tmp_path / "copy", False)):
        folder = RunFolder(path)
        status, supervision = folder.read_status(), read_supervision(folder)
        assert status is not None
        assert supervision is not None
        assert folder.is_live(status) == expected
        assert supervision.is_alive(folder) == expected
    shutil.rmtree(run.path)
    assert not RunFolder(tmp_path / "copy").is_live(status), "nor is it once the original is gone"


def test_run_names_carry_the_time_and_never_collide(tmp_path: Path) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5)
    first = new_run_path("connect-four", now=now, root=tmp_path)
    assert first == tmp_path / "connect-four-20260102-030405"
    first.mkdir()
    assert new_run_path("connect-four", now=now, root=tmp_path).name == "connect-four-20260102-030405-2"
    with pytest.raises(InvalidName):
        new_run_path("../x", now=now, root=tmp_path)


def test_a_folder_that_goes_with_its_ray_job_is_refused(tmp_path: Path) -> None:
    copy = tmp_path / "session_1" / "runtime_resources" / "working_dir_files" / "_ray_pkg_1"
    with pytest.raises(StorageError, match="give `--run-dir` on a disk that stays"):
        require_lasting(copy / "runs" / "first")
    require_lasting(tmp_path / "runs" / "first")
