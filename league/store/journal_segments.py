"""Old events of a journal, a thousand to a row and compressed: every one of them stays, at a tenth of the room.

A segment is a row of the events table whose kind is `SEGMENT`. Its number and chain value are those of its last event,
and its body holds the chain value before its first one and its events. The chain is computed through it as through
single rows, so that nothing about it changes.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

SEGMENT = "#segment"
SEGMENT_EVENTS = 1_000
PLAIN_EVENTS = 20_000
"""Newest events that stay single rows: they are read again and again, by a rewind to the last stop among others."""

_MAX_RAW_BYTES = 1 << 30
_CHAIN_BYTES = 32
_LEVEL = 6

Row = tuple[int, str, bytes, bytes, float]
"""Number, kind, body, chain value after it, wall time: a row of the events table."""


@dataclass(frozen=True)
class Segment:
    """A segment that holds. chain_before: before its first event; rows: as they stood before they were put together."""

    chain_before: bytes
    rows: tuple[Row, ...]


def next_chain(chain: bytes, kind: str, body: bytes) -> bytes:
    """The chain value after an event."""
    return hashlib.sha256(b"".join((chain, kind.encode(), b"\0", body))).digest()


def pack_segment(rows: Sequence[Row], *, chain_before: bytes) -> Row:
    """The one row that takes the place of rows with consecutive numbers; `chain_before` is that before the first."""
    content = [(kind, body, wall_time) for _, kind, body, _, wall_time in rows]
    last = rows[-1]
    return last[0], SEGMENT, chain_before + zlib.compress(msgspec.msgpack.encode(content), _LEVEL), last[3], last[4]


def unpack_segment(seq: int, body: object, chain: object) -> Segment | None:
    """The rows of a segment; None where they are not those that were put together."""
    if not isinstance(body, bytes):
        return None
    chain_before, packed = body[:_CHAIN_BYTES], body[_CHAIN_BYTES:]
    try:
        unzip = zlib.decompressobj()
        raw = unzip.decompress(packed, _MAX_RAW_BYTES)
        content = msgspec.msgpack.decode(raw, type=list[tuple[str, bytes, float]])
    except (zlib.error, msgspec.MsgspecError):
        return None
    if not unzip.eof or unzip.unused_data:
        return None
    rows: list[Row] = []
    value = chain_before
    for number, (kind, event, wall_time) in enumerate(content, start=seq - len(content) + 1):
        value = next_chain(value, kind, event)
        rows.append((number, kind, event, value, wall_time))
    return Segment(chain_before, tuple(rows)) if rows and value == chain else None
