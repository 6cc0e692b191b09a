"""Damages checkpoints, snapshots and journals at random; whatever is read afterwards must be what was written.

A file may be refused by a named error, or read as it was where the damage hit bytes that hold nothing. It counts as
accepted where it is read and is not what was written, and as unexpected where the error is not a named one.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report
from league.core.state.commands import ConfirmSnapshot, CreateLeague, FinishLease, RequestLease, StartRun
from league.core.state.events import EVENTS, LeaseGranted
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.core.state.records import AssignmentOutcome
from league.core.state.state import digest
from league.errors import LeagueError
from league.hosts.actors.actor_state_file import decode_actor_state, encode_actor_state
from league.hosts.protocol import HostState
from league.run.budget import ClockFile, Spent
from league.run.resume_files import files_to_note, read_noted
from league.store.checkpoints import CheckpointStore
from league.store.journal_reader import JournalReader
from league.store.journaled_league import JournaledLeague, verified_state
from league.store.run_folder import CLOCK_FILE, HOSTS_FILE, RunFolder
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from league.store.weights_file import encode_arrays, stored_arrays

LEASES = 40
BLOCK = 64


def flip_bits(content: bytearray, rng: random.Random) -> None:
    """One to eight bits."""
    for _ in range(rng.choice((1, 1, 1, 2, 8))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)


def cut_off(content: bytearray, rng: random.Random) -> None:
    """The end is missing."""
    del content[rng.randrange(len(content)) :]


def zero_tail(content: bytearray, rng: random.Random) -> None:
    """The end is zeros, as after a loss of power."""
    start = rng.randrange(len(content))
    content[start:] = bytes(len(content) - start)


def zero_block(content: bytearray, rng: random.Random) -> None:
    """A block in the middle is zeros."""
    start = rng.randrange(len(content))
    content[start : start + BLOCK] = bytes(len(content[start : start + BLOCK]))


def swap_blocks(content: bytearray, rng: random.Random) -> None:
    """Two blocks have changed places."""
    one, other = (rng.randrange(max(len(content) // BLOCK, 1)) * BLOCK for _ in range(2))
    first, second = bytes(content[one : one + BLOCK]), bytes(content[other : other + BLOCK])
    if len(first) == len(second):
        content[one : one + BLOCK], content[other : other + BLOCK] = second, first


def shift(content: bytearray, rng: random.Random) -> None:
    """Some bytes came in between, or went."""
    place = rng.randrange(len(content))
    if rng.random() < 0.5:
        content[place:place] = rng.randbytes(rng.randint(1, 9))
    else:
        del content[place : place + rng.randint(1, 9)]


def append(content: bytearray, rng: random.Random) -> None:
    """Something follows the end."""
    content += rng.randbytes(rng.randint(1, 100))


def scramble(content: bytearray, rng: random.Random) -> None:
    """A block of other bytes."""
    start = rng.randrange(len(content))
    content[start : start + BLOCK] = rng.randbytes(len(content[start : start + BLOCK]))


DAMAGES: tuple[Callable[[bytearray, random.Random], None], ...] = (
    flip_bits,
    cut_off,
    zero_tail,
    zero_block,
    swap_blocks,
    shift,
    append,
    scramble,
)


@dataclass(frozen=True)
class Target:
    """A file that is damaged.

    Fields:
      path: of the file. read: raises a named error, or returns what it read, to be compared with `whole`.
      whole: what was written. others: files that are put back with it before each case.
    """

    path: Path
    read: Callable[[], object]
    whole: object
    others: tuple[Path, ...] = ()


@dataclass
class Counts:
    """Cases by their end: "refused", "whole" or "accepted" and "unexpected", with a line for each of the last two."""

    ends: Counter[str] = field(default_factory=Counter)
    lines: list[str] = field(default_factory=list)


def made_run(path: Path) -> RunFolder:
    """A small run with everything in it that is damaged here."""
    folder = RunFolder.create(path, config_yaml="name: damaged\n")
    league = JournaledLeague.create(folder.journal_path, wall_time=lambda: 1.7e9)
    players = (PlayerConfig(role="main_agent", count=2), PlayerConfig(role="main_exploiter"))
    league.execute(CreateLeague(0, 2, (0, 1), LeagueConfig(players=players)))
    league.execute(StartRun())
    for directive in list(league.state.directives):
        league.execute(ConfirmSnapshot(directive, f"{directive:064x}", 1, 100))
    league.commit()
    for number in range(LEASES):
        granted = next(
            event for event in league.execute(RequestLease("actor-0", "train")) if isinstance(event, LeaseGranted)
        )
        lease = granted.lease
        outcomes = tuple(
            AssignmentOutcome(row.policies, 2, 0, 14, ((0, 1), (1, 0)), ((0, 0), (0, 0)), (0.5, -0.5))
            for row in lease.assignments
        )
        league.execute(FinishLease(lease.lease_id, lease.token, 100, outcomes))
        league.commit()
        if number == LEASES // 2:
            league.save_state()
    league.save_state()
    folder.write_resume_file(CLOCK_FILE, ClockFile(Spent(12.0, 20.0, 4_000)).encode())
    hosts = HostState(arrays={"boards": np.arange(200)}, generations={"main-0": 1})
    folder.write_resume_file(HOSTS_FILE, encode_actor_state(hosts, next_lease_id=LEASES + 1))
    league.note_files(files_to_note(folder))
    league.close()
    return folder


def targets(folder: RunFolder) -> dict[str, Target]:
    """Name -> file of a run that is damaged."""
    rng = np.random.default_rng(0)
    arrays: dict[str, NDArray[np.generic]] = {
        "values": rng.normal(size=300).astype(np.float32),
        "counters": np.arange(4),
    }
    payload = encode_arrays(arrays)
    checkpoints, snapshots = CheckpointStore(folder.checkpoints_path), LocalSnapshotStore(folder.snapshots_path)
    checkpoint = checkpoints.put("main-0", payload)
    manifest = SnapshotManifest(sha256_hex(payload), "main-0", "main_agent", None, 7, 700, "tic_tac_toe", "0" * 64, {})
    snapshot = snapshots.put(payload, manifest)
    where = snapshots.folder(snapshot)
    noted = journal_of(folder)[2]

    def restart_state() -> object:
        found = stored_arrays(checkpoints.get("main-0", checkpoint), source=folder.path)
        return sorted((name, array.tobytes()) for name, array in found.items())

    def hosts() -> object:
        state, number = decode_actor_state(read_noted(folder, noted, HOSTS_FILE))
        return sorted(state.arrays), dict(state.generations), number

    journal = (folder.journal_path, folder.journal_path.with_suffix(".mark"))
    reads: dict[str, tuple[Path, Callable[[], object], tuple[Path, ...]]] = {
        "checkpoints": (checkpoints.path("main-0", checkpoint), restart_state, ()),
        "weights of snapshots": (where / "weights.safetensors", lambda: snapshots.get(snapshot), ()),
        "manifests of snapshots": (where / "manifest.json", lambda: snapshots.get(snapshot), ()),
        "journals": (folder.journal_path, lambda: journal_of(folder)[:2], journal[1:]),
        "marks of journals": (journal[1], lambda: journal_of(folder)[:2], journal[:1]),
        "clocks": (folder.clock_path, lambda: ClockFile.decode(read_noted(folder, noted, CLOCK_FILE)), ()),
        "games in flight": (folder.hosts_path, hosts, ()),
    }
    return {name: Target(path, read, read(), others) for name, (path, read, others) in reads.items()}


def journal_of(folder: RunFolder) -> tuple[str, str, dict[str, str]]:
    """Digest of a journal's state, its chain, and its files, once it was opened as a resume does and read whole."""
    league = JournaledLeague.open(folder.journal_path, at_least_seq=0, wall_time=lambda: 0.0)
    try:
        noted, opened = league.noted_files, digest(league.state)
    finally:
        league.close()
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        state, head = verified_state(journal), journal.head()
    assert digest(state) == opened, "the journal that a resume continues is not the one that verify reads"
    return opened, head.chain, noted


def damage(target: Target, cases: int, rng: random.Random) -> Counts:
    """Damage a file so many times, each time from the whole one."""
    counts = Counts()
    kept = {path: path.read_bytes() for path in (target.path, *target.others)}
    for _ in range(cases):
        content = bytearray(kept[target.path])
        while content == kept[target.path]:
            how = rng.choice(DAMAGES)
            how(content, rng)
        for suffix in ("-wal", "-shm"):
            target.path.with_name(target.path.name + suffix).unlink(missing_ok=True)
        for path, whole in kept.items():
            path.unlink(missing_ok=True)  # a new file: what an error still holds of the last one locks nothing
            path.write_bytes(content if path == target.path else whole)
        end = "whole"
        try:
            if target.read() != target.whole:
                end = "accepted"
                counts.lines.append(f"{target.path.name} after {how.__name__}: read, and not what was written")
        except LeagueError:
            end = "refused"
        except Exception as error:  # boundary: it is the finding
            end = "unexpected"
            counts.lines.append(f"{target.path.name} after {how.__name__}: {error!r:.200}")
        counts.ends[end] += 1
    for path, whole in kept.items():
        path.write_bytes(whole)
    return counts


def run_cases(folder: Path, cases: int, *, seed: int) -> dict[str, Counts]:
    """Damage each target equally often; returns target -> counts."""
    run = made_run(folder / "run")
    found = targets(run)
    try:
        share = -(-cases // len(found))
        return {name: damage(target, share, random.Random(f"{seed} {name}")) for name, target in found.items()}
    finally:
        shutil.rmtree(run.path)


def report_of(counted: dict[str, Counts]) -> Report:
    """The rows of the report."""
    report = Report()
    for name, counts in counted.items():
        total = sum(counts.ends.values())
        report.add(f"damaged {name}", total, "cases", at_least=1)
        report.add(f"damaged {name}: refused by name", counts.ends["refused"], "cases")
        report.add(f"damaged {name}: read as they were", counts.ends["whole"], "cases")
        report.add(f"damaged {name}: accepted although other", counts.ends["accepted"], "cases", at_most=0)
        report.add(f"damaged {name}: an error without a name", counts.ends["unexpected"], "cases", at_most=0)
    return report


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Adds the rows of ten thousand cases at scale 1."""
    report.rows += report_of(run_cases(folder, max(round(10_000 * scale), 10), seed=seed)).rows
