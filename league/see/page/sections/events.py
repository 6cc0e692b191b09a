"""The events of a run's journal, newest first: searched by kind and by text, and read in pages."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from league.core.state.events import EVENTS
from league.see.page.runs.journal_fold import ROUTINE
from league.see.page.runs.opened_run import OpenedRun
from league.store.journal_segments import Row

PAGE = 50
MAX_PAGE = 200
CHUNK = 500
SEARCH_S = 0.05
"""Time that one request may search; what was not searched is named, and the next request continues there."""
MAX_SHOWN_BYTES = 4_096
"""Of one event; the rest of a longer one is cut off."""


class EventsQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The choice of events.

    Fields:
      text: in the event's JSON, in either case. kind: one kind; empty for all that are not routine, "all" for all.
      before: only events below this number; 0 for the newest. limit: most events of the answer.
    """

    text: str = ""
    kind: str = ""
    before: int = 0
    limit: int = PAGE


class EventRow(msgspec.Struct, frozen=True):
    """One event. body: its JSON, cut off where it is long."""

    seq: int
    wall_time: float
    kind: str
    body: str


class Events(msgspec.Struct, frozen=True):
    """A page of events.

    Fields:
      rows: newest first. next: the events below this number have not been searched; 0 where all were.
      last: number of the newest event of the journal. kinds: every kind. routine: those left out by default.
    """

    rows: tuple[EventRow, ...]
    next: int
    last: int
    kinds: tuple[str, ...]
    routine: tuple[str, ...]


def read(run: OpenedRun, query: EventsQuery) -> Events:
    """A page of events."""
    limit = min(max(query.limit, 1), MAX_PAGE)
    before = query.before if 0 < query.before <= run.seq else run.seq + 1
    needle, deadline = query.text.casefold().encode(), time.monotonic() + SEARCH_S
    found: list[EventRow] = []
    place = before
    for row in _backwards(run, before, query.kind):
        if _matches(row, query.kind, needle):
            found.append(_shown(row))
        place = row[0]
        if len(found) >= limit or time.monotonic() > deadline:
            break
    else:
        place = 1
    return Events(tuple(found), place if place > 1 else 0, run.seq, tuple(EVENTS), tuple(sorted(ROUTINE)))


def _backwards(run: OpenedRun, before: int, kind: str) -> Iterator[Row]:
    """The events below a number that the kind asks for, and maybe others, newest first."""
    if run.has_history and kind != "all" and kind not in ROUTINE:
        for noted in reversed(run.notable):
            if noted.seq < before:
                yield noted.seq, noted.kind, msgspec.json.encode(noted.event), b"", noted.wall_time
        return
    with run.journal() as journal:
        while before > 1:
            first = max(before - CHUNK, 1)
            yield from reversed(journal.entries(first, before - 1))
            before = first


def _matches(row: Row, kind: str, needle: bytes) -> bool:
    if kind == "all" or row[1] == kind or (not kind and row[1] not in ROUTINE):
        return needle in row[2].lower() or needle in row[1].lower().encode()
    return False


def _shown(row: Row) -> EventRow:
    body = row[2].decode(errors="replace")
    return EventRow(row[0], row[4], row[1], body if len(body) <= MAX_SHOWN_BYTES else f"{body[:MAX_SHOWN_BYTES]} ...")
