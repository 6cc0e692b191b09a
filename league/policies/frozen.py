"""Frozen policies as they lie in folders of their own: the folder of one snapshot, and its contents in memory."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from league.envs.protocol import EnvSpec
from league.errors import CorruptSnapshot
from league.policies.auto_export import AUTO, EXPORTS
from league.policies.select import UnknownPolicy
from league.store.snapshots import MAX_MANIFEST_BYTES, LocalSnapshotStore, SnapshotManifest
from league.store.storage import Storage

MANIFEST_FILE = "manifest.json"
MAX_PACKAGE_MANIFEST_BYTES = 4 << 20


@dataclass(frozen=True)
class FrozenCopy:
    """A policy as it can be stored elsewhere.

    Fields:
      name: of the snapshot, or of the player whose restart state it is.
      weight: in the mixture that was chosen, 1 for a single policy.
      weights: safetensors, float32 by parameter name. manifest: what they are, the network's description included.
    """

    name: str
    weight: float
    weights: bytes
    manifest: SnapshotManifest


@dataclass(frozen=True)
class FrozenFolder:
    """The contents of a folder of frozen policies: one snapshot, or the package of an exported policy.

    Fields:
      path: of the folder. name: for people.
      copies: one for a single policy; several of a mixture, of which one is drawn for each game.
      is_drawn: whether it is a mixture.
      spec: facts of the game as a package holds them; None for a snapshot, whose game must be made.
    """

    path: Path
    name: str
    copies: tuple[FrozenCopy, ...]
    is_drawn: bool = False
    spec: EnvSpec | None = None

    def require(self, player: str) -> None:
        """Refuse a name that does not stand for what is in the folder.

        Raises:
          UnknownPolicy.
        """
        members = {name for copy in self.copies for name in (copy.name, copy.manifest.player, copy.manifest.digest)}
        if player in (AUTO, *EXPORTS, self.name) or (player in members and len(self.copies) == 1):
            return
        if self.spec is None:
            raise UnknownPolicy(
                f"{self.path} is one snapshot, of the player {self.copies[0].manifest.player}, not {player!r}: leave "
                "`player` out, or give the run folder."
            )
        raise UnknownPolicy(f"{self.path} is the package of {self.name}, not of {player!r}: leave the name out.")


class SingleFolder(LocalSnapshotStore):
    """A store over a folder that directly holds one snapshot, such as a copied snapshot folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder.parent)
        self._folder = folder

    def folder(self, digest: str) -> Path:
        return self._folder


def read_snapshot_folder(folder: Path) -> FrozenFolder:
    """The contents of one snapshot's folder, verified against each other.

    Raises:
      CorruptSnapshot: a file is missing or not what was written.
    """
    path = folder / MANIFEST_FILE
    try:
        signed = msgspec.json.decode(Storage().read_bytes(path, max_bytes=MAX_MANIFEST_BYTES))
        digest = str(signed["manifest"]["digest"])
    except (msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise CorruptSnapshot(path, f"it is no manifest ({error})") from error
    weights, manifest = SingleFolder(folder).get(digest)
    copy = FrozenCopy(manifest.player or manifest.digest, 1.0, weights, manifest)
    return FrozenFolder(folder, name_of(manifest), (copy,))


def name_of(manifest: SnapshotManifest) -> str:
    """The display name of a snapshot that lies outside its run."""
    return f"{manifest.player}-{manifest.digest[:8]}"
