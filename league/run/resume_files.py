"""Files beside the journal that fit an earlier event of it: the games in flight, and the clock of the schedules."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import msgspec

from league.core.state.state import LeagueState
from league.errors import StorageError
from league.run.budget import ClockFile, Limits, Spent
from league.store.checked_bytes import payload_in
from league.store.run_folder import CLOCK_FILE, HOSTS_FILE, RESUME_FILES, RunFolder


def hosts_at(folder: RunFolder, state: LeagueState) -> bytes | None:
    """The file of the games in flight where it was left by the very stop at which the league stands, else None.

    Games of another moment would bring results of opponents that the league has not met, or of weights not yet trained.
    """
    from league.hosts.actors.actor_state_file import (
        decode_actor_state,  # brings in the runtime, which a rewind need not wait for
    )

    if state.running or state.leases:
        return None
    try:
        content = folder.read_resume_file(HOSTS_FILE)
        _, next_lease_id = decode_actor_state(content)
    except (FileNotFoundError, StorageError):
        return None
    return content if next_lease_id == state.next_lease_id else None


def clock_at(folder: RunFolder, state: LeagueState) -> ClockFile:
    """The resources used by an event: as noted if nothing was played since, else in proportion to the env steps."""
    try:
        noted = ClockFile.decode(folder.read_resume_file(CLOCK_FILE))
    except (FileNotFoundError, StorageError, msgspec.DecodeError):
        noted = ClockFile()
    steps, spent = state.totals.env_steps, noted.spent
    if steps >= spent.env_steps:
        return noted if not state.running else replace(noted, env_steps_target=None)
    part = steps / spent.env_steps
    return ClockFile(spent=Spent(spent.seconds * part, spent.core_seconds * part, steps))


def read_noted(folder: RunFolder, noted: Mapping[str, str], name: str) -> bytes:
    """The clock or the games in flight; where the journal's mark names the content, that content and no other.

    Args:
      noted: `JournalReader.noted_files` as it was before this start of the run.
      name: HOSTS_FILE or CLOCK_FILE.
    Raises:
      FileNotFoundError: there is none, and none need be there.
      StorageError: it is not the one that was noted, or cannot be read.
    """
    path, digest = folder.path / name, noted.get(name)
    try:
        content = folder.read_resume_file(name)
    except FileNotFoundError as error:
        if digest is None:
            raise
        raise StorageError(f"{path} is missing, although the last stop left it") from error
    if digest is not None and hashlib.sha256(content).hexdigest() != digest:
        raise StorageError(f"{path} is not the one that the last stop left")
    return content


def files_to_note(folder: RunFolder) -> dict[str, str]:
    """The files left by a stop, a fork or a rewind that the journal's mark records."""
    return {
        name: hashlib.sha256(folder.read_resume_file(name)).hexdigest()
        for name in RESUME_FILES
        if (folder.path / name).exists()
    }


def file_problems(folder: RunFolder, noted: Mapping[str, str]) -> Iterator[str]:
    """Faults of the games in flight and the clock, one sentence each."""
    for name in RESUME_FILES:
        try:
            content = read_noted(folder, noted, name)
            if name == CLOCK_FILE:
                ClockFile.decode(content)
            elif payload_in(content) is None:
                yield f"{folder.path / name} is damaged: its sha256 is another"
        except FileNotFoundError:
            continue
        except (StorageError, msgspec.DecodeError) as error:
            text = str(error)
            yield text if str(folder.path) in text else f"{folder.path / name}: {text}"


def read_clock(folder: RunFolder, noted: Mapping[str, str], *, say: Callable[[str], object]) -> ClockFile:
    """Time and steps used by earlier starts of the run.

    A lost file costs a schedule, not a result: it warns and restarts.
    """
    try:
        return ClockFile.decode(read_noted(folder, noted, CLOCK_FILE))
    except FileNotFoundError:
        return ClockFile()
    except (msgspec.DecodeError, StorageError) as error:
        say(
            f"{folder.clock_path} cannot be used ({error}): the schedules start again from the beginning of the budget."
        )
        return ClockFile()


def begun_at(clock: ClockFile, state: LeagueState, limits: Limits) -> Spent:
    """The amounts that limits are measured from."""
    steps = state.totals.env_steps
    if limits.env_steps is not None and clock.env_steps_target is not None:
        steps = clock.env_steps_target
    return replace(clock.spent, env_steps=steps)
