"""A file is replaced whole or not at all, whatever happens in between."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from league.errors import DiskFull, InvalidName, StorageError
from league.store.checkpoints import CheckpointStore
from league.store.journal import Journal
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from league.store.storage import FAULT_POINTS, Storage, checked_name, temporary_path
from tests.league.store.store_faults import DieAt, Died, FailAt, Recorder

OLD, NEW = b"old" * 100, b"new" * 1000


def points_of_a_write() -> list[str]:
    return [point for point in FAULT_POINTS if point.startswith("write.")]


def test_a_write_passes_every_write_point_in_order(tmp_path: Path) -> None:
    recorder = Recorder()
    Storage(hook=recorder).atomic_write_bytes(tmp_path / "file", NEW)
    assert recorder.passed == points_of_a_write()


@pytest.mark.parametrize("index", range(len(points_of_a_write())))
def test_death_at_any_point_leaves_the_old_bytes_or_the_new(tmp_path: Path, index: int) -> None:
    path = tmp_path / "file"
    Storage().atomic_write_bytes(path, OLD)
    with pytest.raises(Died):
        Storage(hook=DieAt(index)).atomic_write_bytes(path, NEW)
    renamed = index >= points_of_a_write().index("write.before_folder_fsync")
    assert path.read_bytes() == (NEW if renamed else OLD)
    assert [found.name for found in tmp_path.glob("[!.]*")] == ["file"]
    Storage().sweep(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("index", range(4))
def test_a_full_disk_keeps_the_old_file_and_leaves_no_temporary(tmp_path: Path, index: int) -> None:
    path = tmp_path / "file"
    Storage().atomic_write_bytes(path, OLD)
    with pytest.raises(DiskFull, match="is full"):
        Storage(hook=FailAt(index)).atomic_write_bytes(path, NEW)
    assert path.read_bytes() == OLD
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_io_error_is_named_and_not_a_full_disk(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="could not be written") as caught:
        Storage(hook=FailAt(2, errno.EIO)).atomic_write_bytes(tmp_path / "file", NEW)
    assert not isinstance(caught.value, DiskFull)


def test_a_symbolic_link_is_replaced_on_write_and_refused_on_read(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_bytes(OLD)
    link.symlink_to(target)
    with pytest.raises(StorageError, match="cannot be read"):
        Storage().read_bytes(link, max_bytes=1 << 20)
    Storage().atomic_write_bytes(link, NEW)
    assert target.read_bytes() == OLD
    assert not link.is_symlink()


def test_a_folder_is_refused_by_its_name_and_left_closed(tmp_path: Path) -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    with pytest.raises(StorageError, match=f"{tmp_path} cannot be read: Is a directory"):
        Storage().read_bytes(tmp_path, max_bytes=1024)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_file_over_the_cap_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would exhaust the memory
    with pytest.raises(StorageError, match="more than the 1024 allowed"):
        Storage().read_bytes(path, max_bytes=1024)


def test_a_torn_line_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "log"
    Storage().append_line(path, b"first")
    with pytest.raises(Died):
        Storage(hook=DieAt(1)).append_line(path, b"second")
    Storage().append_line(path, b"third")
    assert path.read_bytes() == b"first\nsec\nthird\n"


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EMLINK])
def test_a_file_that_cannot_have_a_second_name_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*names: object, **options: object) -> None:
        raise OSError(code, os.strerror(code))

    (tmp_path / "file").write_bytes(NEW)
    Storage().link(tmp_path / "file", tmp_path / "linked")
    monkeypatch.setattr(os, "link", refuse)
    Storage().link(tmp_path / "file", tmp_path / "copied")
    assert (tmp_path / "linked").samefile(tmp_path / "file")
    assert not (tmp_path / "copied").samefile(tmp_path / "file")
    assert (tmp_path / "copied").read_bytes() == NEW


def test_a_second_name_never_takes_the_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(NEW)
    (tmp_path / "other").write_bytes(OLD)
    with pytest.raises(StorageError, match="could not be written"):
        Storage().link(tmp_path / "file", tmp_path / "other")
    with pytest.raises(FileNotFoundError):
        Storage().link(tmp_path / "nothing", tmp_path / "third")
    assert (tmp_path / "other").read_bytes() == OLD


@pytest.mark.parametrize("is_exchanged", [True, False])
def test_two_folders_change_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_exchanged: bool) -> None:
    if not is_exchanged:
        monkeypatch.setattr("league.store.storage._exchange", lambda one, other: False)
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    Storage().swap_folder(tmp_path / "new", tmp_path / "old")
    assert {path.name: (path / "file").read_text() for path in tmp_path.iterdir()} == {"old": "new", "new": "old"}
    with pytest.raises(StorageError, match="could not be written"):
        Storage().swap_folder(tmp_path / "new", tmp_path / "nothing")


def test_a_folder_is_removed_with_all_in_it_and_may_be_gone_already(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "file").write_bytes(OLD)
    for _ in range(2):
        Storage().remove_folder(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_an_unlisted_fault_point_is_refused() -> None:
    with pytest.raises(AssertionError, match="not listed"):
        Storage().fault("write.somewhere")


def test_every_listed_fault_point_is_passed_by_some_writer(tmp_path: Path) -> None:
    recorder = Recorder()
    storage = Storage(hook=recorder)
    storage.append_line(tmp_path / "log", b"line")
    temporary_path(tmp_path / "left").write_bytes(OLD)
    storage.sweep(tmp_path)
    manifest = SnapshotManifest(sha256_hex(NEW), "p", "main_agent", None, 0, 0, "e", "h", {})
    LocalSnapshotStore(tmp_path / "snapshots", storage=storage).put(NEW, manifest)
    checkpoints = CheckpointStore(tmp_path / "checkpoints", storage=storage)
    checkpoints.put("p", OLD)
    storage.link(tmp_path / "log", tmp_path / "second")
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    storage.swap_folder(tmp_path / "new", tmp_path / "old")
    storage.remove_folder(checkpoints.path("p", sha256_hex(OLD)).parent)
    checkpoints.put("p", OLD)
    checkpoints.prune("p", keep=())
    with Journal.create(tmp_path / "journal.db", events={}, storage=storage) as journal:
        journal.save_state(b"state")
        for files in ({}, {"clock.json": "0" * 64}):
            journal.note_files(files)
    assert set(recorder.passed) == set(FAULT_POINTS)


@pytest.mark.parametrize("name", ["a", "main-0", "0", "a" * 64, "x_y-z9"])
def test_plain_names_are_accepted(name: str) -> None:
    assert checked_name(name) == name


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "-a", "_a", "A", "a" * 65, "a\n", "a\0", "con.txt", "ä", "ａ", "a b", "~", "c:"]
)
def test_names_that_could_leave_the_folder_are_refused(name: str) -> None:
    with pytest.raises(InvalidName, match="is not allowed"):
        checked_name(name)


@given(st.text(max_size=70))
def test_an_accepted_name_stays_in_its_folder(name: str) -> None:
    root = Path("/root/folder")
    try:
        path = root / checked_name(name)
    except InvalidName:
        return
    assert path.parent == root and os.path.normpath(path) == str(path)
