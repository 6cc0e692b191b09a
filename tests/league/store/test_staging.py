"""A run put together elsewhere gets its name when it is whole, and files shared between runs stay what they are."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pytest

from league.errors import CorruptSnapshot, DiskFull, MissingSnapshot, RunExists, RunInUse, StorageError
from league.store.checkpoints import CheckpointStore
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from league.store.staging import staged_run, staging_path
from league.store.storage import Storage
from tests.league.store.store_faults import Died, FailAtPoint, Recorder

WEIGHTS = b"weights" * 100
STORAGE = Storage()


def snapshots_with_one(folder: Path) -> tuple[LocalSnapshotStore, str]:
    store = LocalSnapshotStore(folder)
    return store, store.put(WEIGHTS, SnapshotManifest(sha256_hex(WEIGHTS), "p", "main_agent", None, 0, 0, "e", "h", {}))


def test_a_run_gets_its_name_at_the_end_and_is_locked_until_then(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "new"
    with staged_run(path, config_yaml="name: a\n", storage=STORAGE) as run:
        assert not path.exists()
        with (
            pytest.raises(RunInUse),
            staged_run(path, config_yaml="name: b\n", storage=STORAGE),
        ):
            pass
        assert run.read_config() == "name: a\n"
    assert RunFolder.open(path).read_config() == "name: a\n"
    assert [found.name for found in path.parent.iterdir()] == ["new"]


def test_what_is_there_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "inside").write_text("x")
    for name in ("file", "folder"):
        with pytest.raises(RunExists), staged_run(tmp_path / name, config_yaml="", storage=STORAGE):
            pass
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder", "inside"]


def test_an_error_leaves_nothing_and_a_death_only_what_the_next_attempt_removes(tmp_path: Path) -> None:
    path = tmp_path / "new"
    for error in (StorageError("full"), KeyboardInterrupt()):
        with pytest.raises(type(error)), staged_run(path, config_yaml="", storage=STORAGE):
            raise error
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(Died), staged_run(path, config_yaml="", storage=STORAGE) as run:
        (run.path / "left").mkdir()
        (run.path / "left" / "over").write_text("x")
        raise Died
    assert list(tmp_path.iterdir()) == [staging_path(path)]
    with staged_run(path, config_yaml="", storage=STORAGE):
        pass
    assert list(tmp_path.iterdir()) == [path]
    assert not list(path.rglob("over"))


def test_a_disk_that_is_full_before_the_first_byte_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)  # the name of the holder in the lock
    with (
        pytest.raises(DiskFull, match="give the command again"),
        staged_run(tmp_path / "new", config_yaml="", storage=STORAGE),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def interrupt_at(point: str) -> Callable[[str], None]:
    """Ctrl-C at the first pass of a fault point."""
    passed = Recorder()

    def hook(reached: str) -> None:
        passed(reached)
        if reached == point and passed.passed.count(point) == 1:
            raise KeyboardInterrupt

    return hook


@pytest.mark.parametrize(
    "point", ["swap.before_exchange", "swap.before_fsync", "remove.before_rmtree", "remove.before_fsync"]
)
@pytest.mark.parametrize("hook", [interrupt_at, lambda point: FailAtPoint(point, errno.EIO)], ids=["ctrl-c", "eio"])
def test_replacing_a_folder_leaves_the_old_or_the_new_one(
    tmp_path: Path, point: str, hook: Callable[[str], Callable[[str], None]]
) -> None:
    path = tmp_path / "new"
    with staged_run(path, config_yaml="old", storage=STORAGE):
        pass
    with (
        pytest.raises((StorageError, KeyboardInterrupt)),
        staged_run(path, config_yaml="new", storage=Storage(hook=hook(point)), replaces=True),
    ):
        pass
    assert RunFolder.open(path).read_config() == ("old" if point == "swap.before_exchange" else "new")


def test_a_snapshot_taken_over_is_the_same_file_and_checked(tmp_path: Path) -> None:
    theirs, digest = snapshots_with_one(tmp_path / "theirs")
    ours = LocalSnapshotStore(tmp_path / "ours")
    for _ in range(2):
        ours.take_over(digest, theirs)
    assert ours.get(digest) == theirs.get(digest)
    assert (ours.folder(digest) / "weights.safetensors").samefile(theirs.folder(digest) / "weights.safetensors")
    with pytest.raises(MissingSnapshot):
        ours.take_over("0" * 64, theirs)


@pytest.mark.parametrize("name", ["weights.safetensors", "manifest.json"])
def test_a_damaged_snapshot_is_not_taken_over_in_silence(tmp_path: Path, name: str) -> None:
    theirs, digest = snapshots_with_one(tmp_path / "theirs")
    path = theirs.folder(digest) / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorruptSnapshot):
        LocalSnapshotStore(tmp_path / "ours").take_over(digest, theirs)
    path.unlink()
    with pytest.raises(CorruptSnapshot, match="the file is missing"):
        LocalSnapshotStore(tmp_path / "other").take_over(digest, theirs)


def test_a_checkpoint_taken_over_outlives_its_removal_by_the_other(tmp_path: Path) -> None:
    theirs, ours = CheckpointStore(tmp_path / "theirs"), CheckpointStore(tmp_path / "ours")
    digest = theirs.put("main-0", WEIGHTS)
    ours.take_over("main-0", digest, theirs)
    theirs.prune("main-0", keep=())
    assert ours.get("main-0", digest) == WEIGHTS
    with pytest.raises(MissingSnapshot):
        CheckpointStore(tmp_path / "third").take_over("main-0", digest, theirs)


def test_a_damaged_checkpoint_is_not_held(tmp_path: Path) -> None:
    theirs, ours = CheckpointStore(tmp_path / "theirs"), CheckpointStore(tmp_path / "ours")
    digest = theirs.put("main-0", WEIGHTS)
    theirs.path("main-0", digest).write_bytes(WEIGHTS[:-1])
    with pytest.raises(CorruptSnapshot):
        ours.take_over("main-0", digest, theirs)
    assert ours.digests("main-0") == []
    assert theirs.path("main-0", digest).exists()
