"""What lies beside the journal and fits an earlier event of it: the games in flight, and the clock of the schedules."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from league.core.state import LeagueState
from league.errors import StorageError
from league.limits import ClockFile, Spent
from league.store.run_folder import RunFolder

HOSTS_FILE, CLOCK_FILE = "hosts.safetensors", "clock.json"
MAX_HOSTS_BYTES = 4 << 30
MAX_CLOCK_BYTES = 1 << 16


def hosts_at(folder: RunFolder, state: LeagueState) -> bytes | None:
    """The file of the games in flight where it was left by the very stop at which the league stands, else None.

    Games of another moment would bring results of opponents that the league has not met, or of weights not yet trained.
    """
    from league.runtime.hosts_file import decode_hosts  # brings in the runtime, which a rewind need not wait for

    if state.running or state.leases:
        return None
    try:
        content = folder.storage.read_bytes(folder.path / HOSTS_FILE, max_bytes=MAX_HOSTS_BYTES)
        _, next_lease_id = decode_hosts(content)
    except (FileNotFoundError, StorageError):
        return None
    return content if next_lease_id == state.next_lease_id else None


def clock_at(folder: RunFolder, state: LeagueState) -> ClockFile:
    """What the run had used by an event: as noted if nothing was played since, else in proportion to the env steps."""
    try:
        noted = ClockFile.decode(folder.storage.read_bytes(folder.path / CLOCK_FILE, max_bytes=MAX_CLOCK_BYTES))
    except (FileNotFoundError, StorageError, msgspec.DecodeError):
        noted = ClockFile()
    steps, spent = state.totals.env_steps, noted.spent
    if steps >= spent.env_steps:
        return noted if not state.running else replace(noted, env_steps_target=None)
    share = steps / spent.env_steps
    return ClockFile(spent=Spent(spent.seconds * share, spent.core_seconds * share, steps))
