"""The league's state and its journal: commands become events, which take effect only once they are durable."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from league.core.chance import seed_of
from league.core.league import apply, decide
from league.core.state.commands import Command, CreateLeague, Refused
from league.core.state.events import EVENTS, Event
from league.core.state.plugin_answers import PluginFault
from league.core.state.state import LeagueState, from_plain, to_plain
from league.errors import JournalError, LeagueError
from league.store.journal import Journal
from league.store.journal_reader import JournalHead, JournalReader
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from league.store.stored_fold import Fold

SAVE_STATE_EVERY = 5_000
"""Events between two stored states: a restart replays so many at most, which takes a third of a second."""

STATE_BYTES_PER_EVENT = 1_000
"""A state of more than so many bytes for each of them is stored less often: storing it must stay a small part of the
work, and reading it takes a restart as long as replaying a few thousand events."""

LEAGUE_FOLD = Fold(LeagueState, apply, to_plain, from_plain, renewed_by="`league resume`")


class JournaledLeague:
    """The one writer of a league's history.

    Args:
      journal: open for writing.
      state: the fold of all its events.
      wall_time: seconds since 1970, a label in the journal that decides nothing.

    Fields:
      notes: sentences for the user about what was found when the journal was opened.
      noted_files: of the last stop, see `JournalReader.noted_files`; the first event since then takes them away there.
    """

    def __init__(self, journal: Journal, state: LeagueState, *, wall_time: Callable[[], float]) -> None:
        self._journal = journal
        self._wall_time = wall_time
        stored = journal.load_state()
        self._saved_seq = 0 if stored is None else stored.seq  # not the head: a start after a crash must store one too
        self._state_bytes = 0 if stored is None else len(stored.payload)
        self._seq = journal.head().seq
        self._unused = np.random.default_rng(0)
        self._pending: list[Event] = []  # applied, and durable with the next commit
        self.state = state
        self.notes: tuple[str, ...] = ()
        self.noted_files = journal.noted_files()

    @classmethod
    def create(cls, path: Path, *, wall_time: Callable[[], float], storage: Storage | None = None) -> JournaledLeague:
        """A new journal. Raises JournalError where there is one."""
        return cls(Journal.create(path, events=EVENTS, storage=storage), LeagueState(), wall_time=wall_time)

    @classmethod
    def open(
        cls, path: Path, *, at_least_seq: int, wall_time: Callable[[], float], storage: Storage | None = None
    ) -> JournaledLeague:
        """An existing journal. Raises JournalError where it is damaged or shorter than it was."""
        journal = Journal.open(path, events=EVENTS, at_least_seq=at_least_seq, storage=storage)
        notes: list[str] = []
        try:
            stored = journal.load_state(note=notes.append)
            if notes:
                journal.forget_states(after_seq=0 if stored is None else stored.seq)
            league = cls(journal, read_state(journal), wall_time=wall_time)
        except BaseException:
            journal.close()
            raise
        league.notes = (*journal.notes, *notes)
        return league

    @property
    def durable_seq(self) -> int:
        """Number of the last durable event."""
        return self._seq

    @property
    def next_seq(self) -> int:
        """Number of the next event."""
        return self._seq + len(self._pending) + 1

    def execute(self, command: Command) -> list[Event]:
        """Decide, note down, apply; durable after the next `commit`.

        Raises:
          LeagueError: a plug-in of the user's own raised, or returned what it may not.
          Refused: the command does not fit, or brings what cannot be recorded or folded; nothing has changed.
        """
        try:
            events = decide(self.state, command, self._rng(command))
        except PluginFault as error:
            raise LeagueError(f"{error}.") from error
        try:
            numbers = self._journal.append(events, wall_time=self._wall_time())
        except JournalError as error:
            if isinstance(command, CreateLeague):
                raise  # the user's own words, not those of a host
            raise Refused(str(error)) from error
        try:
            for event in events:
                apply(self.state, event)
        except Exception as error:  # boundary: what the numbers of other processes cannot fold to must not be durable
            self._take_back(numbers.start)
            raise Refused(f"{type(command).__name__} cannot be folded: {error!r:.300}") from error
        self._pending.extend(events)
        return events

    def execute_all(self, commands: Sequence[Command]) -> list[Event]:
        """As `execute`, of all of them or of none.

        Raises: as `execute`; then nothing has changed.
        """
        first, pending = self.next_seq, len(self._pending)
        try:
            return [event for command in commands for event in self.execute(command)]
        except (Refused, LeagueError):
            if len(self._pending) > pending:
                del self._pending[pending:]
                self._take_back(first)
            raise

    def commit(self) -> None:
        """Make everything noted down durable; from time to time store the state too."""
        self._seq = self._journal.commit()
        self._pending.clear()
        self._journal.compact()
        if self._seq - self._saved_seq >= max(SAVE_STATE_EVERY, self._state_bytes // STATE_BYTES_PER_EVENT):
            self.save_state()

    def save_state(self) -> None:
        """Store the folded state, so that the next start need not replay from zero."""
        payload = LEAGUE_FOLD.encode(self.state)
        self._journal.save_state(payload)
        self._saved_seq, self._state_bytes = self._seq, len(payload)

    def note_files(self, files: Mapping[str, str]) -> None:
        self._journal.note_files(files)

    def head(self) -> JournalHead:
        """Number and chain hash of the last durable event."""
        return self._journal.head()

    def close(self) -> None:
        """Close the journal; may be called twice."""
        self._journal.close()

    def _take_back(self, first: int) -> None:
        """Forget the queued events from number `first` on, and fold the state again that they may have half changed."""
        self._journal.withdraw(first)
        self.state = read_state(self._journal)
        for event in self._pending:
            apply(self.state, event)

    def _rng(self, command: Command) -> np.random.Generator:
        """The generator of one command. Commands without random draws, which are the majority, share one."""
        seed = seed_of(self.state, command)
        return self._unused if seed is None else np.random.default_rng(seed)


def read_state(journal: JournalReader) -> LeagueState:
    """The league of a journal. Raises JournalError where an event is not the one that was recorded."""
    return LEAGUE_FOLD.read(journal)


def state_of_run(folder: RunFolder) -> LeagueState:
    """The league of a run, also of a live one, up to its last durable event.

    Raises:
      JournalError: the journal is missing or damaged.
    """
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        return read_state(journal)


def verified_state(journal: JournalReader) -> LeagueState:
    """The league of a journal from zero, checked.

    Raises:
      JournalError: a link of the chain does not hold, or the stored state differs from the replay or cannot be read.
    """
    return LEAGUE_FOLD.verified(journal)
