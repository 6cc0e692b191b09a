"""Frozen policies on disk, addressed by the sha256 of their weights and checked against it whenever they are read.

    snapshots/<digest[:2]>/<digest>/weights.safetensors
    snapshots/<digest[:2]>/<digest>/manifest.json

Both files are written into a temporary folder that then takes its final name: a snapshot is there whole or not at all.
safetensors does not protect content (a flipped bit or a tail of zeros loads silently), hence the digests here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from league.core.state.records import GameKind
from league.errors import CorruptSnapshot, MissingSnapshot, StorageError
from league.store.storage import Storage, temporary_path

MANIFEST_SCHEMA_VERSION = 2
READABLE_SCHEMA_VERSIONS = (1, 2)
CANONICAL_SPEC_HASH = 2
"""Schema version since which `env_spec_hash` is taken over JSON with sorted keys; before, over what Python prints."""
MAX_WEIGHTS_BYTES = 4 << 30
MAX_MANIFEST_BYTES = 1 << 20
WEIGHTS, _MANIFEST = "weights.safetensors", "manifest.json"
_FILE = re.compile(r"weights(\.[A-Za-z0-9]{1,15})?")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SnapshotManifest:
    """Describes the weights of a snapshot and the game that they fit.

    Fields:
      digest: sha256 (hex) of the weights file.
      player, role, parent, version, trained_steps: as in `SnapshotInfo`.
      env_id, env_spec_hash: the game it plays, and the sha256 (hex) of its spec.
      env: the game's options (the kwargs of its EnvConfig). seat_plan: who plays with whom there and which seats share
        networks, the keys of `league.envs.seat_plan.SeatPlan` that were set. kind: of the game; None in earlier ones.
      network: the network's configuration, as plain values.
      hyperparameters: the player's learner's, as plain values. tuned: those that are the player's own, by name; the
        learner's among them are in `hyperparameters` already.
      loader: of weights that another trainer wrote in a form of its own, code of its user that makes a bot of them;
        they have no `network`. file: name of the weights file, which then ends as that trainer's does.
      schema_version: of this record.
    """

    digest: str
    player: str
    role: str
    parent: str | None
    version: int
    trained_steps: int
    env_id: str
    env_spec_hash: str
    network: dict[str, object]
    env: dict[str, object] = field(default_factory=dict)
    hyperparameters: dict[str, object] = field(default_factory=dict)
    tuned: dict[str, float] = field(default_factory=dict)
    seat_plan: dict[str, object] = field(default_factory=dict)
    kind: GameKind | None = None
    loader: str = ""
    file: str = WEIGHTS
    schema_version: int = MANIFEST_SCHEMA_VERSION

    @property
    def is_of_own_trainer(self) -> bool:
        """True if the weights have a form of their own, which no network of ours reads."""
        return not self.network


class SnapshotStore(Protocol):
    """Stores snapshots: returns exactly the bytes it was given, or raises a named error."""

    def put(self, weights: bytes, manifest: SnapshotManifest) -> str:
        """Store durably and return the digest. Equal weights are stored once and keep their first manifest.

        Raises:
          ValueError: `manifest.digest` is not the sha256 of `weights`.
          DiskFull, StorageError: nothing was stored.
        """
        ...

    def get(self, digest: str) -> tuple[bytes, SnapshotManifest]:
        """The weights and their manifest, both verified.

        Raises:
          MissingSnapshot, CorruptSnapshot.
        """
        ...

    def remove(self, digest: str) -> None:
        """Forget a snapshot; that it is already gone is no error.

        Raises:
          StorageError: it is still there, or a part of it.
        """
        ...

    def digests(self) -> Iterator[str]:
        """Every stored digest, sorted."""
        ...

    def problems(self) -> Iterator[CorruptSnapshot]:
        """Read and verify every snapshot; the ones that do not hold."""
        ...


class _SignedManifest(msgspec.Struct):
    """The manifest file: the record and the sha256 (hex) of its own encoding."""

    manifest: msgspec.Raw
    sha256: str


class LocalSnapshotStore:
    """Snapshots in a folder of this machine (or of a file system that all hosts share)."""

    def __init__(
        self, root: Path, *, storage: Storage | None = None, max_weights_bytes: int = MAX_WEIGHTS_BYTES
    ) -> None:
        self._root = root
        self._storage = storage or Storage()
        self._max_weights_bytes = max_weights_bytes

    def put(self, weights: bytes, manifest: SnapshotManifest) -> str:
        """As in the protocol. A stored copy that has gone bad is replaced by the good one."""
        digest = sha256_hex(weights)
        if manifest.digest != digest:
            raise ValueError(f"the manifest says sha256 {manifest.digest}, the weights have {digest}")
        if len(weights) > self._max_weights_bytes:
            raise StorageError(f"the weights have {len(weights)} bytes, the store takes {self._max_weights_bytes}.")
        folder = self.folder(digest)
        if folder.exists():
            try:
                self.get(digest)
                return digest
            except CorruptSnapshot:
                write_snapshot_files(self._storage, folder, weights, manifest)
                return digest
        self._storage.make_folder(folder.parent)
        temporary = temporary_path(folder)
        self._storage.make_folder(temporary)
        write_snapshot_files(self._storage, temporary, weights, manifest)
        self._storage.publish_folder(temporary, folder)
        return digest

    def take_over(self, digest: str, other: LocalSnapshotStore) -> None:
        """Hold a snapshot of another store too; both share its files, which are never changed in place.

        Raises:
          MissingSnapshot: the other has no such snapshot.
          CorruptSnapshot: it is not what was written.
          DiskFull, StorageError: it was not stored.
        """
        self.share(digest, other)
        self.get(digest)

    def share(self, digest: str, other: LocalSnapshotStore) -> None:
        """As `take_over`, without reading the content.

        Raises:
          MissingSnapshot, DiskFull, StorageError: as there. CorruptSnapshot: a file is missing.
        """
        folder = self.folder(digest)
        if not folder.exists():
            if not other.folder(digest).is_dir():
                raise MissingSnapshot(f"{other.folder(digest)} does not exist: the snapshot was removed.")
            self._storage.make_folder(folder.parent)
            temporary = temporary_path(folder)
            self._storage.make_folder(temporary)
            for path in (other.weights_path(digest), other.folder(digest) / _MANIFEST):
                try:
                    self._storage.link(path, temporary / path.name)
                except FileNotFoundError as error:
                    raise CorruptSnapshot(path, "the file is missing") from error
            self._storage.publish_folder(temporary, folder)

    def get(self, digest: str) -> tuple[bytes, SnapshotManifest]:
        folder = self.folder(digest)
        if not folder.is_dir():
            raise MissingSnapshot(f"{folder} does not exist: the snapshot was removed or belongs to another run.")
        manifest = self._read_manifest(folder / _MANIFEST, digest)
        weights = read_verified(self._storage, folder / manifest.file, digest, max_bytes=self._max_weights_bytes)
        return weights, manifest

    def remove(self, digest: str) -> None:
        """As in the protocol. It loses its name before its content, so that it is there whole or not at all."""
        folder = self.folder(digest)
        if folder.exists():
            doomed = temporary_path(folder)
            self._storage.publish_folder(folder, doomed)
            self._storage.remove_folder(doomed)

    def digests(self) -> Iterator[str]:
        for folder in sorted(self._root.glob("[0-9a-f][0-9a-f]/*")):
            if _DIGEST.fullmatch(folder.name) and folder.parent.name == folder.name[:2]:
                yield folder.name

    def problems(self) -> Iterator[CorruptSnapshot]:
        for digest in self.digests():
            try:
                self.get(digest)
            except CorruptSnapshot as error:
                yield error

    def sweep(self) -> int:
        """Remove what crashed writers left; only while no other writer works here. Returns how many."""
        return sum(self._storage.sweep(folder) for folder in sorted(self._root.glob("[0-9a-f][0-9a-f]")))

    def folder(self, digest: str) -> Path:
        """Returns the folder of the snapshot.

        Raises:
          MissingSnapshot: that is not the form of a digest.
        """
        return self._root / checked_digest(digest)[:2] / digest

    def weights_path(self, digest: str) -> Path:
        """Path of the weights of a snapshot, which need not be there. Raises as `folder`."""
        folder = self.folder(digest)
        return next((path for path in sorted(folder.glob("weights*")) if _FILE.fullmatch(path.name)), folder / WEIGHTS)

    def _read_manifest(self, path: Path, digest: str) -> SnapshotManifest:
        try:
            signed = msgspec.json.decode(
                self._storage.read_bytes(path, max_bytes=MAX_MANIFEST_BYTES), type=_SignedManifest
            )
            if sha256_hex(bytes(signed.manifest)) != signed.sha256:
                raise CorruptSnapshot(path, "its sha256 does not hold")
            manifest = msgspec.json.decode(signed.manifest, type=SnapshotManifest)
        except FileNotFoundError as error:
            raise CorruptSnapshot(path, "the file is missing") from error
        except StorageError as error:
            raise CorruptSnapshot(path, str(error).rstrip(".")) from error
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise CorruptSnapshot(path, f"it is no manifest ({error})") from error
        if manifest.schema_version not in READABLE_SCHEMA_VERSIONS:
            raise CorruptSnapshot(
                path,
                f"it has schema version {manifest.schema_version}, this program reads "
                f"{' and '.join(map(str, READABLE_SCHEMA_VERSIONS))}; use the version that wrote it",
            )
        if manifest.digest != digest:
            raise CorruptSnapshot(path, f"it describes the snapshot {manifest.digest}")
        if _FILE.fullmatch(manifest.file) is None:
            raise CorruptSnapshot(path, f"it calls its weights {manifest.file[:80]!r}")
        return manifest


def weights_name(path: Path) -> str:
    """The name under which the weights in a file of the user's are stored: with its suffix, where that is short."""
    name = f"weights{path.suffix}"
    return name if _FILE.fullmatch(name) else "weights"


def write_snapshot_files(storage: Storage, folder: Path, weights: bytes, manifest: SnapshotManifest) -> None:
    """Write the two files of a snapshot into a folder, which no reader may see before both are there.

    Raises:
      DiskFull, StorageError: the folder need not be whole.
    """
    body = msgspec.json.encode(manifest, order="sorted")
    signed = msgspec.json.encode(_SignedManifest(manifest=msgspec.Raw(body), sha256=sha256_hex(body)))
    storage.atomic_write_bytes(folder / manifest.file, weights)
    storage.atomic_write_bytes(folder / _MANIFEST, signed)


def sha256_hex(payload: bytes) -> str:
    """The digest by which weights and checkpoints are addressed."""
    return hashlib.sha256(payload).hexdigest()


def checked_digest(digest: str) -> str:
    """`digest` itself if it is 64 lower-case hex digits, so that it may become part of a path.

    Raises:
      MissingSnapshot: it is not.
    """
    if _DIGEST.fullmatch(digest) is None:
        raise MissingSnapshot(f"{digest[:80]!r} is not a sha256 digest (64 lower-case hex digits).")
    return digest


def read_verified(storage: Storage, path: Path, digest: str, *, max_bytes: int) -> bytes:
    """The bytes of a file whose sha256 must be `digest`.

    Raises:
      CorruptSnapshot: missing, a link, too long, unreadable, or of another digest.
    """
    try:
        payload = storage.read_bytes(path, max_bytes=max_bytes)
    except FileNotFoundError as error:
        raise CorruptSnapshot(path, "the file is missing") from error
    except StorageError as error:
        raise CorruptSnapshot(path, str(error).rstrip(".")) from error
    found = sha256_hex(payload)
    if found != digest:
        raise CorruptSnapshot(path, f"its sha256 is {found[:16]}..., it should be {digest[:16]}...")
    return payload
