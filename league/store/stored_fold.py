"""The fold of a journal into a state, and the state stored beside the events so that a start need not replay them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from league.errors import JournalError
from league.store.journal_reader import JournalReader, StoredState

State = TypeVar("State")


@dataclass(frozen=True)
class Fold(Generic[State]):
    """The rule of one kind of journal.

    Fields:
      empty: makes the state before the first event. apply: returns the state after an event.
      to_plain: the state as JSON can hold it, exactly. from_plain: the state again; raises KeyError, TypeError or
        ValueError where another version wrote it in another form.
      renewed_by: for messages, the command that replays the events and stores the state again.
    """

    empty: Callable[[], State]
    apply: Callable[[State, Any], State]
    to_plain: Callable[[State], Any]
    from_plain: Callable[[Any], State]
    renewed_by: str

    def encode(self, state: State) -> bytes:
        """The state as it is stored."""
        return json.dumps(self.to_plain(state), separators=(",", ":"), allow_nan=False).encode()

    def read(self, journal: JournalReader, *, until: int | None = None) -> State:
        """The state of a journal, from its newest stored one where that is of use and this version can read it.

        Args:
          until: the last event that counts; None for all.
        Raises:
          JournalError: an event is not the one that was recorded.
        """
        stored = journal.load_state()
        if stored is not None and until is not None and stored.seq > until:
            stored = None
        known = None if stored is None else self._decode(stored)
        state, first = self.empty(), 1
        if stored is not None and known is not None:
            state, first = known, stored.seq + 1
        for _, event in journal.replay(from_seq=first, to_seq=until):
            state = self.apply(state, event)
        return state

    def verified(self, journal: JournalReader) -> State:
        """The state of a journal from zero, after checking its chain and that the stored state is the same.

        Raises:
          JournalError: a link of the chain does not hold, or the stored state differs from the replay or cannot be
            read.
        """
        journal.verify()
        stored, state = journal.load_state(), self.empty()
        for seq, event in journal.replay():
            state = self.apply(state, event)
            if stored is not None and seq == stored.seq:
                self._require_same(stored, state)
        return state

    def _require_same(self, stored: StoredState, state: State) -> None:
        known = self._decode(stored)
        if known is None:
            raise JournalError(
                f"the state stored at event {stored.seq} was written by another version; the events hold: "
                f"{self.renewed_by} replays them and stores it again"
            )
        if self.encode(known) != self.encode(state):
            raise JournalError(f"the state stored at event {stored.seq} is not what the events up to there give")

    def _decode(self, stored: StoredState) -> State | None:
        """A stored state, whose bytes are those that were written; None where another version wrote it otherwise."""
        try:
            return self.from_plain(json.loads(stored.payload))
        except (KeyError, TypeError, ValueError):
            return None
