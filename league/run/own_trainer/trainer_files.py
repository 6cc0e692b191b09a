"""Snapshots of a trainer of the user's own: its files, stored by their sha256, whatever their form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from league.config.run_config import RunConfig
from league.core.retention import most_snapshots
from league.core.state.records import SnapshotInfo
from league.core.state.state import LeagueState, PlayerState
from league.errors import StorageError
from league.store.snapshots import MAX_WEIGHTS_BYTES, LocalSnapshotStore, SnapshotManifest, sha256_hex, weights_name
from league.store.storage import Storage


class TrainerFiles:
    """Files in and out of a run's store; see `league.policies.kept_snapshots.SnapshotFiles`.

    Args:
      config: of the run.
      store: its snapshots.
      warn: called with one sentence where something had to be fallen back on.
    """

    def __init__(self, config: RunConfig, store: LocalSnapshotStore, *, warn: Callable[[str], object]) -> None:
        self._config = config
        self._store = store
        self.warn = warn
        self._verified: set[str] = set()
        self._largest = 1

    @property
    def max_snapshots(self) -> int:
        """See there. By the largest file that this process has seen."""
        retention = self._config.retention
        return most_snapshots(retention.snapshots, retention.snapshots_gib * 2**30, snapshot_bytes=self._largest)

    def snapshot(self, info: SnapshotInfo) -> Path:
        """The path of a snapshot's file, whose content this process has verified once."""
        path = self._store.weights_path(info.digest)
        if info.digest not in self._verified or not path.is_file():
            weights, _ = self._store.get(info.digest)
            self._seen(info.digest, weights)
        return path

    def put(self, path: Path, player: PlayerState, *, trained_steps: int) -> str:
        """Store a file durably; returns its digest.

        Raises:
          StorageError: it cannot be read or stored; nothing has changed.
        """
        try:
            weights = Storage().read_bytes(path.resolve(), max_bytes=MAX_WEIGHTS_BYTES)
        except FileNotFoundError as error:
            raise StorageError(f"{path} does not exist: write the weights of {player.name} there first.") from error
        manifest = SnapshotManifest(
            digest=sha256_hex(weights),
            player=player.name,
            role=player.role,
            parent=player.parent,
            version=player.version,
            trained_steps=trained_steps,
            env_id=self._config.env.id,
            env_spec_hash="",
            env=dict(self._config.env.kwargs),
            network={},
            loader=self._config.trainer.loader,
            file=weights_name(path),
        )
        self._store.put(weights, manifest)
        self._seen(manifest.digest, weights)
        return manifest.digest

    def drop_snapshot(self, snapshot: str, state: LeagueState) -> None:
        """See there; a file that another snapshot shares stays."""
        digest = state.snapshots[snapshot].digest
        if not any(info.digest == digest and state.is_present(name) for name, info in state.snapshots.items()):
            self._verified.discard(digest)
            self._store.remove(digest)

    def _seen(self, digest: str, weights: bytes) -> None:
        self._verified.add(digest)
        self._largest = max(self._largest, len(weights))
