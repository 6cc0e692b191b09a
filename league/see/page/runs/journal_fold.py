"""The state of a league that is followed from its journal: folded once, then extended by each new event."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import cast

from league.core.league import apply
from league.core.state.events import (
    EVENTS,
    CheckpointSaved,
    Event,
    LeaseFinished,
    LeaseGranted,
    ProgressReported,
)
from league.core.state.probe_events import ProbeSpent
from league.core.state.state import LeagueState
from league.errors import JournalError
from league.store.event_codec import EventCodec
from league.store.journal_reader import JournalHead, JournalReader
from league.store.journaled_league import read_state
from league.store.run_folder import RunFolder

ROUTINE = frozenset(
    kind.__name__ for kind in (LeaseGranted, LeaseFinished, ProgressReported, CheckpointSaved, ProbeSpent)
)
"""Kinds of events that come every few seconds for as long as a run lasts; all others are notable, and kept."""
CHUNK = 1_000
"""Events read at once."""


@dataclass(frozen=True)
class NotableEvent:
    """An event that is not routine. wall_time: seconds since 1970."""

    seq: int
    wall_time: float
    kind: str
    event: Event


class JournalFold:
    """Follows one journal; the caller holds a lock round every call.

    Fields:
      state: the fold of the events up to `seq`; to be read only.
      first_fold: number of the last event that was folded at first.
      notable: notable events, oldest first; those up to `first_fold` are there once `has_history` is true.
    """

    def __init__(self, folder: RunFolder) -> None:
        """Open the journal and fold it.

        Raises:
          JournalError, StorageError: it is missing, damaged, or cannot be read.
        """
        self._folder = folder
        self._codec = EventCodec(EVENTS)
        self._reader = open_journal(folder)
        self._head, self._node = JournalHead(0, ""), 0
        self.state = LeagueState()
        self.notable: list[NotableEvent] = []
        self.first_fold, self.has_history = 0, False
        self._restart()

    @property
    def seq(self) -> int:
        """Number of the last event folded."""
        return self._head.seq

    def extend(self) -> bool:
        """Fold the events that are new; returns whether there were any.

        A journal that was taken back is folded again from its start.
        """
        if self._is_other_file():
            self._reader.close()
            self._reader = open_journal(self._folder)
            self._restart()
            return True
        head = self._reader.head()
        if head == self._head:
            return False
        if head.seq <= self._head.seq or self._reader.head_at(self._head.seq).chain != self._head.chain:
            self._restart()
            return True
        for first in range(self._head.seq + 1, head.seq + 1, CHUNK):
            for row in self._reader.entries(first, min(first + CHUNK - 1, head.seq)):
                event = cast(Event, self._codec.decode(row[1], row[2], seq=row[0]))
                self.state = apply(self.state, event)
                self._head = JournalHead(row[0], row[3].hex())  # now: reading may break off before the next one
                if row[1] not in ROUTINE:
                    self.notable.append(NotableEvent(row[0], row[4], row[1], event))
        return True

    def take_history(self, older: list[NotableEvent], to_seq: int) -> None:
        """Put the notable events up to one in front, unless the journal was folded again meanwhile."""
        if to_seq == self.first_fold and not self.has_history:
            self.notable[:0] = older
            self.has_history = True

    def close(self) -> None:
        """Close the journal."""
        self._reader.close()

    def _restart(self) -> None:
        with self._reader.one_moment():
            self._head = self._reader.head()
            self.state = read_state(self._reader)
        self.first_fold = self._head.seq
        self._node = self._folder.journal_path.stat().st_ino
        self.notable, self.has_history = [], False

    def _is_other_file(self) -> bool:
        try:
            return self._folder.journal_path.stat().st_ino != self._node
        except OSError as error:
            raise JournalError(f"{self._folder.journal_path} is gone.") from error


def open_journal(folder: RunFolder) -> JournalReader:
    """A reader of a run's journal. Raises JournalError, StorageError."""
    return JournalReader.open_readonly(folder.journal_path, events=EVENTS)


def notable_events(folder: RunFolder, to_seq: int, cancelled: threading.Event) -> list[NotableEvent]:
    """The notable events of a journal up to one, oldest first; ends early where it is cancelled."""
    codec, found = EventCodec(EVENTS), []
    with open_journal(folder) as reader:
        for first in range(1, to_seq + 1, CHUNK):
            if cancelled.is_set():
                break
            for seq, kind, body, _, wall_time in reader.entries(first, min(first + CHUNK - 1, to_seq)):
                if kind not in ROUTINE:
                    found.append(NotableEvent(seq, wall_time, kind, cast(Event, codec.decode(kind, body, seq=seq))))
    return found
