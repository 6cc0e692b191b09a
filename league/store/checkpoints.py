"""Restart states of learners on disk: the newest few of each player, each named by the sha256 of its content.

    checkpoints/<player>/<digest>.ckpt

Which of them is current stands in the journal (CheckpointSaved); a file not named there is a crash's left-over.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from league.errors import CorruptSnapshot, MissingSnapshot
from league.store.snapshots import checked_digest, read_verified, sha256_hex
from league.store.storage import Storage, checked_name

MAX_CHECKPOINT_BYTES = 16 << 30
KEPT_PER_PLAYER = 2
"""The current one, and the one before in case the current one goes bad."""


class CheckpointStore:
    """Bytes in, the same bytes out or a named error."""

    def __init__(self, root: Path, *, storage: Storage | None = None, max_bytes: int = MAX_CHECKPOINT_BYTES) -> None:
        self._root = root
        self._storage = storage or Storage()
        self._max_bytes = max_bytes

    def put(self, player: str, payload: bytes) -> str:
        """Store durably; returns the digest. Removes nothing: call `prune` once the journal names the new one.

        Raises:
          InvalidName, DiskFull, StorageError.
        """
        digest = sha256_hex(payload)
        self._storage.make_folder(self._folder(player))
        self._storage.atomic_write_bytes(self.path(player, digest), payload)
        return digest

    def get(self, player: str, digest: str) -> bytes:
        """The state, verified.

        Raises:
          MissingSnapshot: there is no such file.
          CorruptSnapshot: it is not what was written.
        """
        path = self.path(player, digest)
        if not path.exists():
            raise MissingSnapshot(f"{path} does not exist: the checkpoint was removed or belongs to another run.")
        return read_verified(self._storage, path, digest, max_bytes=self._max_bytes)

    def take_over(self, player: str, digest: str, other: CheckpointStore) -> None:
        """Hold a checkpoint of another store too, whatever becomes of it there; both share the file.

        Raises:
          MissingSnapshot: the other has no such file, or no more.
          CorruptSnapshot: it is not what was written; then it is not held here either.
          DiskFull, StorageError: it was not stored.
        """
        self._storage.make_folder(self._folder(player))
        path = self.path(player, digest)
        if not path.exists():
            try:
                self._storage.link(other.path(player, digest), path)
            except FileNotFoundError as error:
                raise MissingSnapshot(f"{other.path(player, digest)} does not exist.") from error
        try:
            self.get(player, digest)
        except CorruptSnapshot:
            self._storage.remove(path)
            raise

    def prune(self, player: str, *, keep: tuple[str, ...]) -> int:
        """Remove all but the given digests (at most `KEPT_PER_PLAYER` of them are kept); returns how many went."""
        kept = set(keep[:KEPT_PER_PLAYER])
        removed = 0
        for path in sorted(self._folder(player).glob("*.ckpt")):
            if path.stem not in kept:
                self._storage.remove(path)
                removed += 1
        return removed

    def digests(self, player: str) -> list[str]:
        """The stored digests of a player, newest file first; the order is a hint, the journal decides."""
        found = [(path.stat().st_mtime_ns, path.stem) for path in self._folder(player).glob("*.ckpt")]
        return [digest for _, digest in sorted(found, reverse=True)]

    def problems(self) -> Iterator[CorruptSnapshot]:
        """Read and verify every checkpoint; the ones that do not hold."""
        for path in sorted(self._root.glob("*/*.ckpt")):
            try:
                read_verified(self._storage, path, path.stem, max_bytes=self._max_bytes)
            except CorruptSnapshot as error:
                yield error

    def sweep(self) -> int:
        """Remove what crashed writers left; only while no other writer works here. Returns how many."""
        return sum(self._storage.sweep(folder) for folder in sorted(self._root.glob("*")) if folder.is_dir())

    def path(self, player: str, digest: str) -> Path:
        """Returns the path of the checkpoint.

        Raises:
          InvalidName, MissingSnapshot: the name or the digest is not of the allowed form.
        """
        return self._folder(player) / f"{checked_digest(digest)}.ckpt"

    def _folder(self, player: str) -> Path:
        return self._root / checked_name(player, what="the player")
