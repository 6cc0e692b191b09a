"""Follows the journal of a live run for a tracker, and remembers what the tracker has."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import cast

import msgspec

from league.core.state.events import EVENTS, Event
from league.core.state.state import LeagueState
from league.errors import JournalError, StorageError
from league.see.trackers.chronicle import Chronicle, GateDecision
from league.store.journal_reader import JournalReader
from league.store.journaled_league import read_state
from league.store.storage import Storage

BATCH_EVENTS = 5_000
_MAX_BYTES = 1 << 22


class Told(msgspec.Struct):
    """The part of a run that the tracker has. It is kept beside the spool, and written after the tracker has taken it.

    Fields:
      rewound: the rewind after which these are counted, see `Chronicle`.
      seq: events up to it. elapsed_s, tables_seq: time of training and last event when tables were last sent.
      shown_seq: last event when they were last put into the run itself.
      models: snapshot -> its aliases there. replays: names of the files sent.
      alerts_bytes: of the file of alerts.
    """

    rewound: str = ""
    seq: int = 0
    elapsed_s: float = 0.0
    tables_seq: int = 0
    shown_seq: int = 0
    models: dict[str, list[str]] = msgspec.field(default_factory=dict)
    replays: list[str] = msgspec.field(default_factory=list)
    alerts_bytes: int = 0


class JournalFeed:
    """Folds the journal from its first event on, and hands over the gates' decisions that the tracker lacks.

    Args:
      run_path: of the run; its journal may not be there yet.
    """

    def __init__(self, run_path: Path, *, storage: Storage) -> None:
        self._path = run_path / "journal.db"
        self._told_path = run_path / "wandb" / "told.json"
        self._storage = storage
        self._reader: JournalReader | None = None
        self._seq = 0
        self.chronicle = Chronicle()
        self.told = self._read_told()

    def catch_up(self) -> None:
        """Read to the end of the journal, before any run is opened: ids depend on the last rewind in it."""
        waiting: list[GateDecision] = []
        while found := self._batch():
            waiting += [decision for decision in found if decision is not None]
        if self.chronicle.rewound != self.told.rewound or self.told.seq > self._seq:
            self.told = Told(rewound=self.chronicle.rewound, alerts_bytes=self.told.alerts_bytes)
        self._waiting = [decision for decision in waiting if decision.event > self.told.seq]

    def poll(self) -> list[GateDecision]:
        """Decisions that the tracker lacks, oldest first."""
        waiting, self._waiting = self._waiting, []
        return [*waiting, *(decision for decision in self._batch() if decision is not None)]

    @property
    def seq(self) -> int:
        """Number of the last event that was read."""
        return self._seq

    def keep(self) -> None:
        """Remember that the tracker has all of it.

        Raises:
          StorageError: it could not be written.
        """
        self.told.seq = self._seq
        self._storage.atomic_write_bytes(self._told_path, msgspec.json.encode(self.told), durable=False)

    def state(self) -> LeagueState | None:
        """The league as it is now; None where the journal cannot be read."""
        try:
            with JournalReader.open_readonly(self._path, events=EVENTS) as reader:
                return read_state(reader)
        except (JournalError, StorageError):
            return None

    def close(self) -> None:
        """Close the journal; may be called twice."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _batch(self) -> list[GateDecision | None]:
        """One entry for each event; empty at the end, and where the journal cannot be read for now."""
        if not self._path.exists():
            return []
        try:
            if self._reader is None:
                self._reader = JournalReader.open_readonly(self._path, events=EVENTS)
            rows = list(self._reader.replay(from_seq=self._seq + 1, to_seq=self._seq + BATCH_EVENTS))
        except (JournalError, StorageError):  # busy, or damaged: the daemon says so, a tracker has nothing to add
            self.close()
            return []
        folded = [self.chronicle.fold(seq, cast(Event, event)) for seq, event in rows]
        if rows:
            self._seq = rows[-1][0]
        return folded

    def _read_told(self) -> Told:
        with contextlib.suppress(FileNotFoundError, StorageError, msgspec.MsgspecError):
            return msgspec.json.decode(self._storage.read_bytes(self._told_path, max_bytes=_MAX_BYTES), type=Told)
        return Told()
