"""The folder of a tournament: its journal, the weights of its contenders, and the files that it leaves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Self

from league.errors import LeagueError
from league.judge.contenders.contender import Contender
from league.judge.contenders.finding import finder_of
from league.judge.contenders.stored import contender_of_copies
from league.judge.recording.replay import Replay
from league.judge.recording.replay_file import SUFFIX, write_replay
from league.judge.tournaments.records import (
    EVENTS,
    BatchKey,
    BatchPlayed,
    Enrolled,
    EnrolledPolicy,
    TournamentConfig,
    TournamentCreated,
)
from league.policies.frozen import FrozenCopy
from league.store.journal import Journal
from league.store.lock import RunLock
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage

JOURNAL_FILE = "tournament.db"
LOCK_FILE = "tournament.lock"
PGN_FILE = "games.pgn"
REPLAYS, RECORDS = "replays", "records"


class OtherTournament(LeagueError):  # noqa: N818
    """A folder holds another tournament than the one that was asked for."""


@dataclass(frozen=True)
class Begun:
    """The contents of a journal. created: the tournament; played: its batches in the order in which they ended."""

    created: TournamentCreated
    played: tuple[BatchPlayed, ...]


class TournamentFolder:
    """The one writer of a tournament's folder; a context manager that holds its lock.

    Raises on entry:
      RunInUse: another process plays it. JournalError: its journal is damaged.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._storage = Storage()
        self._storage.make_folder(path)
        self._lock = RunLock(path / LOCK_FILE)
        self._journal: Journal | None = None
        self.snapshots = LocalSnapshotStore(path / "snapshots")

    def __enter__(self) -> Self:
        self._lock.acquire()
        file = self.path / JOURNAL_FILE
        try:
            make = Journal.open if file.exists() else Journal.create
            self._journal = make(file, events=EVENTS, storage=self._storage)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        assert self._journal is not None
        self._journal.close()
        self._lock.release()

    def begun(self) -> Begun | None:
        """The recorded events; None where there are none."""
        assert self._journal is not None
        events = [event for _, event in self._journal.replay()]
        if not events:
            return None
        assert isinstance(events[0], TournamentCreated)
        return Begun(events[0], tuple(event for event in events[1:] if isinstance(event, BatchPlayed)))

    def record(self, event: TournamentCreated | BatchPlayed) -> None:
        """Record an event durably."""
        assert self._journal is not None
        self._journal.append([event], wall_time=time.time())
        self._journal.commit()

    def enrol(self, contender: Contender) -> Enrolled:
        """Keep a contender's weights in the folder, so that the tournament no longer needs where they came from."""
        members = []
        for copy in contender.copies:
            members.append(EnrolledPolicy(copy.name, copy.weight, self.snapshots.put(copy.weights, copy.manifest)))
        return Enrolled(contender.name, contender.identity, contender.reason, tuple(members))

    def contender(self, enrolled: Enrolled) -> Contender:
        """An enrolled contender again.

        Raises:
          OtherTournament: a bot or an engine is not the one that was enrolled. LeagueError: it cannot be had.
        """
        if enrolled.members:
            copies = []
            for member in enrolled.members:
                weights, manifest = self.snapshots.get(member.digest)
                copies.append(FrozenCopy(member.name, member.weight, weights, manifest))
            return contender_of_copies(enrolled.name, enrolled.reason, copies, self.path)
        (found,) = finder_of(enrolled.name)(enrolled.name)
        if found.identity != enrolled.identity:
            raise OtherTournament(
                f"{enrolled.name} is not what it was when the tournament in {self.path} began: give --out another"
                " folder to play with what it is now."
            )
        return found

    def write(self, name: str, text: str) -> None:
        """Write one of the files that the tournament leaves; it appears whole."""
        self._storage.atomic_write_bytes(self.path / name, text.encode())

    def write_games(self, key: BatchKey, replays: Sequence[Replay], records: str) -> None:
        """Keep the games of a batch. It comes before the batch is recorded, so that no recorded game is missing.

        Args:
          replays: one for each rotation. records: in the manner of PGN, empty where moves have no names.
        """
        self._storage.make_folder(self.path / REPLAYS)
        for rotation, replay in enumerate(replays):
            name = f"{_stem(key)}-{rotation}{SUFFIX}"
            write_replay(self.path / REPLAYS / name, replay, storage=self._storage)
        if records:
            self._storage.make_folder(self.path / RECORDS)
            self.write(str(Path(RECORDS) / _record_file(key)), records)

    def gather_records(self, keys: Sequence[BatchKey]) -> None:
        """Put the records of all batches into one file, where there are any."""
        paths = [self.path / RECORDS / _record_file(key) for key in keys]
        texts = [path.read_text() for path in paths if path.exists()]
        if texts:
            self.write(PGN_FILE, "\n".join(texts))

    def remove_games(self, keys: Sequence[BatchKey]) -> None:
        """Remove the games of batches that do not count."""
        for key in keys:
            files = [*(self.path / REPLAYS).glob(f"{_stem(key)}-*{SUFFIX}"), self.path / RECORDS / _record_file(key)]
            for file in files:
                if file.exists():
                    self._storage.remove(file)


def _record_file(key: BatchKey) -> str:
    return f"{_stem(key)}.pgn"


def _stem(key: BatchKey) -> str:
    """Beginning of the names of the files of a batch."""
    return f"{key.round}-{'-'.join(map(str, key.lineup))}-{key.number}"


def require_same(asked: TournamentConfig, held: TournamentConfig, path: Path) -> None:
    """Refuse to play one tournament in the folder of another.

    Raises:
      OtherTournament: names the settings that differ.
    """
    different = [item.name for item in fields(asked) if getattr(asked, item.name) != getattr(held, item.name)]
    if different:
        raise OtherTournament(
            f"{path} holds another tournament: {', '.join(different)} differ. Give --out another folder, or only"
            f" --out {path} to continue that one."
        )
