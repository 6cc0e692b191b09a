"""A snapshot is the bytes that were put, or a named error; it is there whole or not at all."""

from __future__ import annotations

import errno
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from league.errors import CorruptSnapshot, DiskFull, MissingSnapshot, StorageError
from league.store.snapshots import (
    LocalSnapshotStore,
    SnapshotManifest,
    SnapshotStore,
    sha256_hex,
    write_snapshot_files,
)
from league.store.storage import Storage
from tests.league.store.store_faults import DieAt, Died, FailAt, Recorder

WEIGHTS = np.random.default_rng(0).bytes(5000)


def manifest_of(weights: bytes, *, version: int = 7) -> SnapshotManifest:
    return SnapshotManifest(
        digest=sha256_hex(weights),
        player="main-0",
        role="main_agent",
        parent=None,
        version=version,
        trained_steps=1000,
        env_id="connect_four",
        env_spec_hash="0" * 64,
        network={"hidden": [128, 128], "core": "none"},
        hyperparameters={"learning_rate": 6e-4},
    )


def put(root: Path, weights: bytes = WEIGHTS, *, storage: Storage | None = None) -> str:
    return LocalSnapshotStore(root, storage=storage).put(weights, manifest_of(weights))


def points_of_a_put(folder: Path) -> list[str]:
    recorder = Recorder()
    put(folder, storage=Storage(hook=recorder))
    return recorder.passed


@pytest.fixture
def store(tmp_path: Path) -> SnapshotStore:
    return LocalSnapshotStore(tmp_path / "snapshots")


def test_a_store_gives_back_what_was_put(store: SnapshotStore) -> None:
    manifest = manifest_of(WEIGHTS)
    digest = store.put(WEIGHTS, manifest)
    assert digest == sha256_hex(WEIGHTS)
    assert store.get(digest) == (WEIGHTS, manifest)
    assert list(store.digests()) == [digest]
    assert list(store.problems()) == []


def test_a_store_keeps_the_first_manifest_of_equal_weights(store: SnapshotStore) -> None:
    first = manifest_of(WEIGHTS, version=1)
    assert store.put(WEIGHTS, first) == store.put(WEIGHTS, manifest_of(WEIGHTS, version=2))
    assert store.get(first.digest)[1] == first


def test_a_store_refuses_a_manifest_of_other_weights(store: SnapshotStore) -> None:
    with pytest.raises(ValueError, match="the manifest says sha256"):
        store.put(WEIGHTS, manifest_of(WEIGHTS[1:]))
    assert list(store.digests()) == []


def test_a_store_names_a_missing_snapshot(store: SnapshotStore) -> None:
    with pytest.raises(MissingSnapshot):
        store.get("a" * 64)
    for name in ("", "../../etc/passwd", "A" * 64, "a" * 63, "a" * 64 + "\n"):
        with pytest.raises(MissingSnapshot, match="not a sha256 digest"):
            store.get(name)


def test_death_at_any_point_leaves_a_whole_snapshot_or_none(tmp_path: Path) -> None:
    points = points_of_a_put(tmp_path / "reference")
    assert len(points) >= 14
    for index in range(len(points)):
        root = tmp_path / str(index)
        with pytest.raises(Died):
            put(root, storage=Storage(hook=DieAt(index)))
        store = LocalSnapshotStore(root)
        published = index > points.index("folder.before_rename")
        assert list(store.digests()) == ([sha256_hex(WEIGHTS)] if published else [])
        assert list(store.problems()) == []
        store.sweep()
        assert store.get(put(root))[0] == WEIGHTS
        assert not list(root.rglob(".tmp-*"))


def test_a_put_that_starves_or_fails_at_any_point_can_be_repeated(tmp_path: Path) -> None:
    for code, error in ((errno.ENOSPC, DiskFull), (errno.EIO, StorageError)):
        for index in range(len(points_of_a_put(tmp_path / f"reference-{code}"))):
            root = tmp_path / f"{code}-{index}"
            other = put(root, b"other")
            with pytest.raises(error):
                put(root, storage=Storage(hook=FailAt(index, code)))
            store = LocalSnapshotStore(root)
            assert list(store.problems()) == []
            assert store.get(other)[0] == b"other"
            assert store.get(put(root))[0] == WEIGHTS


def test_every_truncation_zero_tail_and_bit_flip_is_refused(tmp_path: Path) -> None:
    digest = put(tmp_path)
    store = LocalSnapshotStore(tmp_path)
    rng = np.random.default_rng(1)
    for name in ("weights.safetensors", "manifest.json"):
        path = store.folder(digest) / name
        good = path.read_bytes()
        for _ in range(60):
            cut = int(rng.integers(len(good)))
            flipped = bytearray(good)
            flipped[cut] ^= 1 << int(rng.integers(8))
            for spoilt in (good[:cut], good[:cut] + b"\0" * (len(good) - cut), bytes(flipped)):
                path.write_bytes(spoilt)
                with pytest.raises(CorruptSnapshot, match=name):
                    store.get(digest)
        path.write_bytes(good)
    assert store.get(digest)[0] == WEIGHTS


@pytest.mark.parametrize("name", ["weights.safetensors", "manifest.json"])
def test_a_missing_file_is_corruption_and_is_listed(tmp_path: Path, name: str) -> None:
    good, bad = put(tmp_path, b"good"), put(tmp_path, b"bad")
    store = LocalSnapshotStore(tmp_path)
    (store.folder(bad) / name).unlink()
    problems = list(store.problems())
    assert [problem.path for problem in problems] == [store.folder(bad) / name]
    assert "the file is missing" in str(problems[0])
    assert store.get(good)[0] == b"good"


def test_putting_a_snapshot_again_mends_its_spoilt_copy(tmp_path: Path) -> None:
    digest = put(tmp_path)
    store = LocalSnapshotStore(tmp_path)
    (store.folder(digest) / "weights.safetensors").write_bytes(b"junk")
    put(tmp_path)
    assert store.get(digest)[0] == WEIGHTS


def test_a_manifest_of_another_snapshot_or_version_is_refused(tmp_path: Path) -> None:
    digest, other = put(tmp_path), put(tmp_path, b"other")
    store = LocalSnapshotStore(tmp_path)
    path = store.folder(digest) / "manifest.json"
    path.write_bytes((store.folder(other) / "manifest.json").read_bytes())
    with pytest.raises(CorruptSnapshot, match="describes the snapshot"):
        store.get(digest)
    write_snapshot_files(Storage(), store.folder(digest), WEIGHTS, replace(manifest_of(WEIGHTS), schema_version=9))
    with pytest.raises(CorruptSnapshot, match="schema version 9"):
        store.get(digest)


def test_a_giant_or_linked_weights_file_is_refused_unread(tmp_path: Path) -> None:
    digest = put(tmp_path)
    store = LocalSnapshotStore(tmp_path, max_weights_bytes=10_000)
    path = store.folder(digest) / "weights.safetensors"
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(CorruptSnapshot, match="more than the 10000 allowed"):
        store.get(digest)
    path.unlink()
    (tmp_path / "elsewhere").write_bytes(WEIGHTS)
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CorruptSnapshot, match="cannot be read"):
        store.get(digest)


def test_weights_over_the_cap_are_not_stored(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="the store takes 100"):
        LocalSnapshotStore(tmp_path, max_weights_bytes=100).put(WEIGHTS, manifest_of(WEIGHTS))
