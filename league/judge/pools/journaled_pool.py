"""The state of a pool and its journal: an event takes effect only once it is durable.

The journal is one file after another. After `JournalSizes.carry` events the next begins with the whole state, and the
one before the last is removed: a pool of weeks takes bounded space.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from league.errors import JournalError, StorageError
from league.judge.pools.core.events import EVENTS, PoolEvent, StateCarried
from league.judge.pools.core.rules import CreatePool, PoolCommand, decide
from league.judge.pools.core.state import PoolState, apply, from_plain, to_plain
from league.judge.pools.folder import PoolFolder
from league.store.journal import Journal
from league.store.journal_mark import mark_path
from league.store.journal_reader import JournalReader
from league.store.storage import Storage
from league.store.stored_fold import Fold


@dataclass(frozen=True)
class JournalSizes:
    """Sizes that keep a journal short.

    Fields:
      save_state: events between two stored states; a restart replays so many at most.
      carry: events of a journal file, some 20 MB; then the state is carried to the next.
    """

    save_state: int = 5_000
    carry: int = 200_000


DEFAULT_SIZES = JournalSizes()
POOL_FOLD = Fold(PoolState, apply, to_plain, from_plain, renewed_by="the next command that writes to the pool")


class JournaledPool:
    """The one writer of a pool's history. The caller holds the lock of the folder.

    Args:
      journal: open for writing. state: the fold of its events.
      wall_time: seconds since 1970, a label in the journal.
    """

    def __init__(
        self,
        folder: PoolFolder,
        journal: Journal,
        state: PoolState,
        *,
        generation: int,
        wall_time: Callable[[], float],
        storage: Storage,
        sizes: JournalSizes,
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._generation = generation
        self._wall_time = wall_time
        self._storage = storage
        self._sizes = sizes
        stored = journal.load_state()
        self._saved_seq = 0 if stored is None else stored.seq
        self.state = state

    @classmethod
    def create(
        cls,
        folder: PoolFolder,
        command: CreatePool,
        *,
        wall_time: Callable[[], float],
        storage: Storage | None = None,
        sizes: JournalSizes = DEFAULT_SIZES,
    ) -> JournaledPool:
        """A new pool. Raises JournalError where there is one."""
        storage = storage or Storage()
        journal = Journal.create(folder.journal(1), events=EVENTS, storage=storage)
        pool = cls(folder, journal, PoolState(), generation=1, wall_time=wall_time, storage=storage, sizes=sizes)
        try:
            pool.execute(command)
        except BaseException:
            pool.close()
            raise
        return pool

    @classmethod
    def open(
        cls,
        folder: PoolFolder,
        *,
        wall_time: Callable[[], float],
        storage: Storage | None = None,
        sizes: JournalSizes = DEFAULT_SIZES,
    ) -> JournaledPool:
        """An existing pool. Raises JournalError where its journal is damaged."""
        storage = storage or Storage()
        generation = _remove_unfinished(folder, storage)
        journal = Journal.open(folder.journal(generation), events=EVENTS, storage=storage)
        try:
            state = POOL_FOLD.read(journal)
        except BaseException:
            journal.close()
            raise
        return cls(
            folder,
            journal,
            state,
            generation=generation,
            wall_time=wall_time,
            storage=storage,
            sizes=sizes,
        )

    def execute(self, command: PoolCommand) -> PoolEvent:
        """Decide, make durable, apply.

        Raises:
          PoolRefused: the command does not fit. DiskFull, StorageError: nothing was stored. Nothing has changed.
        """
        event = decide(self.state, command)
        numbers = self._journal.append([event], wall_time=self._wall_time())
        try:
            self._journal.commit()
        except StorageError:
            if self._journal.num_pending:
                self._journal.withdraw(numbers.start)
                raise
            # else the event is durable, and only the journal's mark is behind it
        self.state = apply(self.state, event)
        self._keep_small(numbers.start)
        return event

    def close(self) -> None:
        """Close the journal; may be called twice."""
        self._journal.close()

    def _keep_small(self, seq: int) -> None:
        """Pack old events, store the state, or begin the next file, where it is time; a full disk puts it off."""
        with contextlib.suppress(StorageError):
            if seq >= self._sizes.carry:
                self._carry()
                return
            self._journal.compact()
            if seq - self._saved_seq >= self._sizes.save_state:
                self._journal.save_state(POOL_FOLD.encode(self.state))
                self._saved_seq = seq

    def _carry(self) -> None:
        """Begin the next journal file with the whole state; it counts once that event is durable."""
        path = self._folder.journal(self._generation + 1)
        _remove_journal(self._folder, self._generation + 1, self._storage)
        journal = Journal.create(path, events=EVENTS, storage=self._storage)
        try:
            journal.append([StateCarried(to_plain(self.state))], wall_time=self._wall_time())
            journal.commit()
        except StorageError:
            journal.close()
            self._forget_next()
            raise
        self._journal.close()
        self._journal, self._saved_seq = journal, 0
        self._generation += 1
        for old in self._folder.generations():
            if old < self._generation - 1:
                _remove_journal(self._folder, old, self._storage)

    def _forget_next(self) -> None:
        """Remove a next file that need not be whole. Events after it would be lost if it stayed.

        Raises:
          JournalError: it cannot be removed; the pool must stop here.
        """
        path = self._folder.journal(self._generation + 1)
        try:
            _remove_journal(self._folder, self._generation + 1, self._storage)
        except StorageError as error:
            raise JournalError(f"the pool stops before it writes beside {path}: {error}") from error


def read_pool(folder: PoolFolder) -> PoolState:
    """The state of a pool, also of a live one.

    Raises:
      MissingRun, JournalError.
    """
    for generation in reversed(folder.require().generations()):
        with JournalReader.open_readonly(folder.journal(generation), events=EVENTS) as journal:
            if journal.head().seq:
                return POOL_FOLD.read(journal)
    raise JournalError(f"{folder.path} has an empty journal: `league pool init` was interrupted; remove the folder.")


def verified_pool(folder: PoolFolder) -> PoolState:
    """The fold of the newest journal file from its first event, after checking its chain and its stored state.

    Raises:
      JournalError: something in it does not hold.
    """
    generation = folder.require().generations()[-1]
    with JournalReader.open_readonly(folder.journal(generation), events=EVENTS) as journal:
        return POOL_FOLD.verified(journal)


def _remove_unfinished(folder: PoolFolder, storage: Storage) -> int:
    """Remove a next file that a crash left without its state; returns the number of the newest one that counts."""
    *earlier, newest = folder.require().generations()
    with JournalReader.open_readonly(folder.journal(newest), events=EVENTS) as journal:
        empty = journal.head().seq == 0
    if not empty:
        return newest
    if not earlier:
        raise JournalError(
            f"{folder.path} has an empty journal: `league pool init` was interrupted; remove the folder."
        )
    _remove_journal(folder, newest, storage)
    return earlier[-1]


def _remove_journal(folder: PoolFolder, generation: int, storage: Storage) -> None:
    path = folder.journal(generation)
    for file in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"), mark_path(path)):
        storage.remove(file)
