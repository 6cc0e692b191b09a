"""A learner restarts from the state that was saved, or is told that it cannot."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.errors import CorruptSnapshot, DiskFull, InvalidName, MissingSnapshot
from league.store.checkpoints import CheckpointStore
from league.store.snapshots import sha256_hex
from league.store.storage import Storage
from tests.league.store.store_faults import DieAt, Died, FailAt, Recorder


def test_a_checkpoint_comes_back_as_put(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    digest = store.put("main-0", b"state")
    assert digest == sha256_hex(b"state")
    assert store.get("main-0", digest) == b"state"


def test_put_removes_nothing_and_prune_keeps_the_two_that_are_named_first(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    digests = [store.put("main-0", f"state {number}".encode()) for number in range(4)]
    other = store.put("main-1", b"other")
    assert set(store.digests("main-0")) == set(digests)
    assert store.prune("main-0", keep=(digests[3], digests[1], digests[0])) == 2
    assert set(store.digests("main-0")) == {digests[3], digests[1]}
    assert store.digests("main-1") == [other]


def test_a_spoilt_checkpoint_is_refused_and_listed(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    first, second = store.put("main-0", b"a" * 100), store.put("main-0", b"b" * 100)
    path = store.path("main-0", second)
    for spoilt in (b"", b"b" * 99, b"b" * 99 + b"\0", b"b" * 99 + b"c"):
        path.write_bytes(spoilt)
        with pytest.raises(CorruptSnapshot, match="is corrupt"):
            store.get("main-0", second)
        assert [problem.path for problem in store.problems()] == [path]
    assert store.get("main-0", first) == b"a" * 100


def test_a_missing_checkpoint_or_a_bad_name_is_named(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    with pytest.raises(MissingSnapshot, match="does not exist"):
        store.get("main-0", "0" * 64)
    with pytest.raises(MissingSnapshot, match="not a sha256"):
        store.get("main-0", "../x")
    with pytest.raises(InvalidName):
        store.put("../x", b"state")


def test_death_at_any_point_leaves_the_old_checkpoint_and_the_new_whole_or_absent(tmp_path: Path) -> None:
    recorder = Recorder()
    CheckpointStore(tmp_path / "reference").put("p", b"old")
    CheckpointStore(tmp_path / "reference", storage=Storage(hook=recorder)).put("p", b"new")
    for index in range(len(recorder.passed)):
        root = tmp_path / str(index)
        store = CheckpointStore(root)
        old = store.put("p", b"old")
        with pytest.raises(Died):
            CheckpointStore(root, storage=Storage(hook=DieAt(index))).put("p", b"new")
        assert store.get("p", old) == b"old"
        assert list(store.problems()) == []
        assert store.digests("p")[0] in (old, sha256_hex(b"new"))
        store.sweep()
        assert not list(root.rglob(".tmp-*"))


def test_a_full_disk_keeps_the_old_checkpoint(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    old = store.put("p", b"old")
    with pytest.raises(DiskFull):
        CheckpointStore(tmp_path, storage=Storage(hook=FailAt(1))).put("p", b"new")
    assert store.digests("p") == [old]
    assert store.get("p", old) == b"old"
