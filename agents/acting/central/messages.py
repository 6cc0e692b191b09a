"""Messages between an actor host and its inference host, over a local socket that keeps them apart.

A client first sends `HELLO` with the sizes of its rows and the file of the shared memory. From then on each message
bears a number and has one answer, which repeats it: rows may still be decided while others are sent. Rows, answers and
weights are in the shared memory; messages only say what is there.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import asdict

from league.agents.acting.central.shared_rows import RowSizes

HELLO, HOLD, WEIGHTS, DECIDE = b"H", b"P", b"W", b"D"
"""From a client: sizes as JSON; a policy's newest version; its weights are in the memory; rows are to be decided."""

DONE, WANTED, UNKNOWN, FAILED = b"d", b"w", b"u", b"e"
"""Answers: done; the weights are wanted; a policy of the request is not held; an error, as text."""

MAX_BYTES = 1 << 16
MAX_NAME = 1 << 12
MAX_ERROR_BYTES = 1 << 12

_HEAD = struct.Struct("<cI")
_HOLD = struct.Struct("<cIq?")
_DECIDE = struct.Struct("<cIII")
_PART = struct.Struct("<IH")


def local_address(name: str) -> str:
    """An address without a file: nothing of it outlives the process that listens there."""
    return f"\0league-{name}"


def peer_is_own(end: socket.socket) -> bool:
    """True if the process at the other end belongs to the same user."""
    found = end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return int(struct.unpack("3i", found)[1]) == os.getuid()


def hello(sizes: RowSizes) -> bytes:
    """The first message of a client."""
    return HELLO + json.dumps(asdict(sizes)).encode()


def read_hello(message: bytes) -> RowSizes:
    """Raises ValueError: it is none."""
    if message[:1] != HELLO:
        raise ValueError("the first message is no hello")
    plain = json.loads(message[1:])
    names = set(RowSizes.__dataclass_fields__)
    if not isinstance(plain, dict) or set(plain) != names or not all(type(value) is int for value in plain.values()):
        raise ValueError("a hello with other fields")
    return RowSizes(**plain)


def head(message: bytes) -> tuple[bytes, int]:
    """Kind and number of a message or an answer. Raises struct.error: it is none."""
    kind, number = _HEAD.unpack_from(message)
    return kind, number


def answer(kind: bytes, number: int, text: str = "") -> bytes:
    """The answer to the message of this number."""
    return _HEAD.pack(kind, number) + text.encode()[:MAX_ERROR_BYTES]


def text_of(message: bytes) -> str:
    """The text of an answer."""
    return message[_HEAD.size :].decode(errors="replace")


def hold(kind: bytes, number: int, policy: str, *, version: int, replace: bool) -> bytes:
    """A `HOLD` or `WEIGHTS` message."""
    return _HOLD.pack(kind, number, version, replace) + policy.encode()


def read_hold(message: bytes) -> tuple[str, int, bool]:
    """Policy, version and `replace`. Raises ValueError, struct.error: the message is none."""
    _, _, version, replace = _HOLD.unpack_from(message)
    return _name(message[_HOLD.size :]), version, replace


def decide(number: int, parts: Sequence[tuple[str, int]], *, first: int, table: int) -> bytes:
    """A `DECIDE` message. parts: policy and number of rows, in the order of the rows, of which `first` is the first."""
    names = [(policy.encode(), count) for policy, count in parts]
    start = _DECIDE.pack(DECIDE, number, first, table)
    return start + b"".join(_PART.pack(count, len(name)) + name for name, count in names)


def read_decide(message: bytes) -> tuple[list[tuple[str, int]], int, int]:
    """Parts, first row and table. Raises ValueError, struct.error: the message is none."""
    _, _, first, table = _DECIDE.unpack_from(message)
    parts, at = [], _DECIDE.size
    while at < len(message):
        count, length = _PART.unpack_from(message, at)
        at += _PART.size + length
        if count < 1 or at > len(message):
            raise ValueError(f"a part of {count} rows, {at} bytes of {len(message)}")
        parts.append((_name(message[at - length : at]), count))
    if not parts:
        raise ValueError("a request without rows")
    return parts, first, table


def _name(text: bytes) -> str:
    if not 0 < len(text) <= MAX_NAME:
        raise ValueError(f"a name of {len(text)} bytes")
    return text.decode()
