"""The exact values of a run's exports as they lie in its folder, and which of them are of today's policies."""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import replace
from pathlib import Path

import msgspec

from league.core.metagame.meta_game import exported_snapshots, own_snapshots
from league.core.state.state import LeagueState
from league.errors import StorageError
from league.policies.auto_export import EXACT, EXPORTS, ExactExports
from league.policies.select import UnknownPolicy, choose
from league.store.run_folder import RunFolder

MAX_BYTES = 1 << 16
DIGITS = 16
"""Hexadecimal digits of a digest that are kept."""


def read_exact(folder: RunFolder, state: LeagueState) -> ExactExports | None:
    """The values that were computed of exports that still stand for the same policies.

    Returns:
      None where none were computed, or the file is not what was written.
    """
    try:
        payload = folder.storage.read_bytes(folder.exports_path, max_bytes=MAX_BYTES)
        stored = msgspec.json.decode(payload, type=ExactExports)
    except (FileNotFoundError, StorageError, msgspec.DecodeError, UnicodeDecodeError):
        return None
    now = made_of(state)
    made = {name: digest for name, digest in stored.made_of.items() if now.get(name) == digest}
    return replace(
        stored,
        values={name: value for name, value in stored.values.items() if name in made},
        made_of=made,
        mixture=stored.mixture if EXACT in made else {},
        matches=tuple(match for match in stored.matches if {match.home, match.away} <= made.keys()),
        is_current=set(now) == set(made),
    )


def write_exact(run_dir: Path, exact: ExactExports) -> None:
    """Keep the values that were computed last; a folder in which nothing can be written keeps those before."""
    folder = RunFolder.open(run_dir)
    with contextlib.suppress(StorageError):  # a folder of somebody else's, or a full disk
        folder.storage.atomic_write_bytes(folder.exports_path, msgspec.json.encode(exact))


def made_of(state: LeagueState) -> dict[str, str]:
    """Export -> digest of the policies that it stands for; without those that the run has not."""
    found = {}
    for name in EXPORTS:
        try:
            parts = _snapshots(state, candidates(state)) if name == EXACT else _parts(state, name)
        except UnknownPolicy:
            continue
        if parts:
            found[name] = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:DIGITS]
    return found


def candidates(state: LeagueState) -> list[str]:
    """Trained snapshots, among which the least exploitable mixture is sought: of main agents; of all in team games.

    There a counter may hold what no main agent finds, since no seat alone leaves a joint choice. Exact values tell.
    """
    names = own_snapshots(state) if state.has_teammates else exported_snapshots(state)
    return [name for name in names if state.snapshots[name].trained_steps > 0]


def _parts(state: LeagueState, name: str) -> list[str]:
    chosen = choose(state, name)
    if chosen.checkpoint is not None:
        return [chosen.player, chosen.checkpoint.digest, str(chosen.is_ema)]
    return [f"{weight:.12g} {snapshot.snapshot_id} {snapshot.digest}" for weight, snapshot in chosen.members]


def _snapshots(state: LeagueState, names: list[str]) -> list[str]:
    return [f"{name} {state.snapshots[name].digest}" for name in names]
