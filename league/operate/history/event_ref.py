"""Event references: resolves a reference to an event of a journal."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from league.core.gates.gates import GATE, TIMEOUT
from league.core.quarantine import WEIGHTS_GONE
from league.core.settings import RETIRED_PLAYER
from league.core.state.events import (
    DirectiveDropped,
    DirectiveIssued,
    Event,
    MixtureSolved,
    PlayerAdded,
    PolicyImported,
    SettingsChanged,
    SnapshotAdded,
)
from league.core.state.records import INITIAL, DirectiveKind
from league.errors import LeagueError
from league.store.journal_reader import JournalHead, JournalReader

LATEST, SNAPSHOT_PREFIX = "latest", "snapshot:"
FORMS = f"an event number, {SNAPSHOT_PREFIX}NAME (or its tag; right after it was added) or {LATEST}"
_DECIDED_WITH_OTHERS = (INITIAL, GATE, TIMEOUT, RETIRED_PLAYER)
"""Reasons of snapshots that no command asks for by themselves."""
_NEAREST = 8
"""Snapshots that are named where none is found."""


def point_at(journal: JournalReader, text: str) -> JournalHead:
    """The event that `text` means.

    Events of one decision stay together: no league ever stood between an exploiter's snapshot and the reset that was
    decided with it. The point is then the last event of that decision.

    Raises:
      LeagueError: there is no such event; it says what there is.
    """
    last = journal.head().seq
    if not last:
        raise LeagueError("the journal holds no event yet.")
    if text == LATEST:
        seq = last
    elif text.startswith(SNAPSHOT_PREFIX):
        seq = _event_of_snapshot(journal, text.removeprefix(SNAPSHOT_PREFIX))
    elif text.isascii() and text.isdecimal():
        seq = int(text)
        if not 1 <= seq <= last:
            raise LeagueError(f"there is no event {text}: the journal holds events 1 to {last}.")
    else:
        raise LeagueError(f"{text!r} is no point of a journal: write {FORMS}.")
    return journal.head_at(_end_of_decision(journal, seq))


def belongs_to_the_one_before(event: Event) -> bool:
    """True if the event was decided together with the one before it, by the same command."""
    if isinstance(event, DirectiveIssued):
        return event.directive.kind != DirectiveKind.SNAPSHOT or event.directive.reason in _DECIDED_WITH_OTHERS
    if isinstance(event, DirectiveDropped):
        return event.reason.endswith(WEIGHTS_GONE)
    return isinstance(event, PlayerAdded | MixtureSolved)


def _end_of_decision(journal: JournalReader, seq: int) -> int:
    for number, event in _events(journal, seq + 1, None):
        if not belongs_to_the_one_before(event):
            break
        seq = number
    return seq


def _event_of_snapshot(journal: JournalReader, name: str) -> int:
    known: list[str] = []
    added: dict[str, int] = {}
    tagged: int | None = None
    for seq, event in _events(journal, 1, None):
        if isinstance(event, SnapshotAdded | PolicyImported):
            known.append(event.snapshot.snapshot_id)
            added[known[-1]] = seq
            if known[-1] == name:
                return seq
        elif isinstance(event, SettingsChanged):
            for change in event.changes:
                if change.key == f"tags.{name}":
                    tagged = added.get(str(json.loads(change.new)))
    if tagged is not None:
        return tagged
    newest = ", ".join(known[-_NEAREST:]) or "none"
    raise LeagueError(f"there is no snapshot {name!r} in the journal; the newest of {len(known)}: {newest}.")


def _events(journal: JournalReader, first: int, last: int | None) -> Iterator[tuple[int, Event]]:
    """League events with their numbers: the registry decodes no others."""
    return cast(Iterator[tuple[int, Event]], journal.replay(from_seq=first, to_seq=last))
