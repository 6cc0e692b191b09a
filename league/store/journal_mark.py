"""The journal mark: a small file beside a journal that records its last durable event.

sqlite drops the end of a damaged write-ahead log silently; the mark makes that loss visible.

The file has two slots of one disk sector each, written in turn after every commit, so that one is whole whatever
happens. A slot is JSON padded with spaces, and its sha256 in hex. The mark may be behind the journal (a crash between
the two writes), but a journal behind its mark has lost events that were durable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from league.errors import StorageError
from league.store.storage import Storage

SLOT_BYTES = 512
MAX_BYTES = 1 << 16
"""Of a mark file that is looked at: whatever follows the two slots is none of ours and does no harm."""

_BODY_BYTES = SLOT_BYTES - 64
NO_FILES: Mapping[str, str] = {}


class JournalMark(msgspec.Struct, frozen=True):
    """One mark.

    Fields:
      count: of the marks of this journal so far; the larger of two slots is the newer one.
      seq, chain: number of the last durable event and the chain value (hex) after it.
      files: name -> sha256 (hex) of the files beside the journal that were left at this event by an orderly stop. They
        stand here and not in an event, since a clock differs between runs whose events are the same.
    """

    count: int
    seq: int
    chain: str
    files: dict[str, str] = {}


class MarkFile:
    """The marks of one journal."""

    def __init__(self, journal_path: Path, *, storage: Storage) -> None:
        self.path = mark_path(journal_path)
        self._storage = storage
        self._count = 0

    def read(self) -> tuple[JournalMark | None, int]:
        """The newest mark that holds, None where there is none, and how many of the two slots are damaged.

        Raises:
          StorageError: the file cannot be read.
        """
        try:
            content = self._storage.read_bytes(self.path, max_bytes=MAX_BYTES)
        except FileNotFoundError:
            return None, 0
        slots = [_decode(content[first : first + SLOT_BYTES]) for first in (0, SLOT_BYTES)]
        whole = [slot for slot in slots if slot is not None]
        newest = max(whole, key=lambda slot: slot.count, default=None)
        self._count = 0 if newest is None else newest.count
        return newest, len(slots) - len(whole)

    def write(self, seq: int, chain: str, *, durable: bool, files: Mapping[str, str] = NO_FILES) -> None:
        """Put a newer mark in the place of the older slot.

        Args:
          durable: whether it is to survive a power cut too; a mark that does not is behind, which is no error.
        Raises:
          DiskFull, StorageError: the newest mark need not be there; the one before it is.
        """
        self._count += 1
        slot = _encode(JournalMark(self._count, seq, chain, dict(files)))
        if self.path.exists():
            place = SLOT_BYTES * (self._count % 2)
            self._storage.overwrite(self.path, slot, offset=place, durable=durable)
        else:
            self._storage.atomic_write_bytes(self.path, slot + slot)


def mark_path(journal_path: Path) -> Path:
    """Returns the path of a journal's mark file."""
    return journal_path.with_suffix(".mark")


def _encode(mark: JournalMark) -> bytes:
    body = msgspec.json.encode(mark).ljust(_BODY_BYTES)
    assert len(body) == _BODY_BYTES, "a mark fits one slot"
    return body + hashlib.sha256(body).hexdigest().encode()


def _decode(slot: bytes) -> JournalMark | None:
    body, digest = slot[:_BODY_BYTES], slot[_BODY_BYTES:]
    if hashlib.sha256(body).hexdigest().encode() != digest:
        return None
    try:
        return msgspec.json.decode(body, type=JournalMark)
    except msgspec.DecodeError:
        return None


def mark_problem(mark: JournalMark | None, damaged_slots: int, *, path: Path, num_events: int) -> str:
    """Describes a fault of the mark file in one sentence; empty if there is none."""
    if mark is None and num_events:
        state = "is damaged" if damaged_slots else "is missing"
        return f"{path} {state}: it says how far the journal went, so a lost end of the journal would not be noticed."
    return f"{path} is damaged: one of its two marks does not hold." if damaged_slots else ""


def read_mark(journal_path: Path) -> tuple[JournalMark | None, int]:
    """The newest mark of a journal, for those who only read it; an unreadable file counts as two damaged slots."""
    try:
        return MarkFile(journal_path, storage=Storage()).read()
    except StorageError:
        return None, 2
