"""The best snapshot of a run, which every tracker has in the end: the files of its weights, and a line about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from league.policies.auto_export import BEST
from league.policies.select import UnknownPolicy, choose
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore

FILES = ("weights.safetensors", "manifest.json")


@dataclass(frozen=True)
class BestSnapshot:
    """A snapshot whose weights are there. files: its weights and manifest. text: a line about it."""

    name: str
    files: Sequence[Path]
    text: str


def best_snapshot(run_path: Path) -> BestSnapshot | None:
    """The one that "best" stands for, by the journal; None where there is none.

    Raises:
      LeagueError: the journal cannot be read.
    """
    run = RunFolder.open(run_path)
    try:
        members = choose(state_of_run(run), BEST).members
    except UnknownPolicy:
        return None
    if not members:  # a restart state, which is no snapshot
        return None
    known = members[0][1]
    folder = LocalSnapshotStore(run.snapshots_path).folder(known.digest)
    files = [folder / file for file in FILES]
    if not all(file.is_file() for file in files):
        return None
    name = known.snapshot_id
    text = f"{name}, frozen after {known.trained_steps:,} trained steps: {files[0]} (sha256 {known.digest})"
    return BestSnapshot(name, files, text)
