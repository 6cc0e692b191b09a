"""Frames between a parent and a games' process: one letter and, seldom, a JSON text."""

from __future__ import annotations

import json
import socket
import struct
import time
from typing import Any

HEAD = struct.Struct("<cI")
MAX_BYTES = 1 << 28

MAKE, RESET, STEP, RESUME, VISIT, END = b"M", b"R", b"S", b"P", b"V", b"Q"
"""From the parent: make the games, reset them, step them, put them where they were, visit every history, leave."""

MADE, TURN, PROGRESS, TREE, ERROR = b"s", b"t", b"p", b"v", b"e"
"""From the games' process: the spec, a turn is in shared memory, how far a visit is, a tree of so many bytes is there,
an error."""


class ChannelClosed(Exception):  # noqa: N818 - the state of a process
    """The other side has left."""


class ChannelSilent(Exception):  # noqa: N818 - the state of a process
    """The other side said nothing in time."""


class Channel:
    """One end of a stream socket."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._received = b""

    def send(self, kind: bytes, payload: object = None) -> None:
        """Send a frame.

        Raises:
          ChannelClosed, ChannelSilent.
        """
        body = b"" if payload is None else json.dumps(payload).encode()
        try:
            self._end.sendall(HEAD.pack(kind, len(body)) + body)
        except TimeoutError as error:
            raise ChannelSilent from error
        except OSError as error:
            raise ChannelClosed from error

    def receive(self, *, timeout_s: float | None = None) -> tuple[bytes, Any]:
        """The next frame; a part of one is kept for the next call.

        timeout_s: None waits for as long as the other side lives.
        Raises:
          ChannelClosed, ChannelSilent. ValueError: what came is no frame.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            frame = self._frame()
            if frame is not None:
                return frame
            left = None if until is None else max(until - time.monotonic(), 1e-4)
            self._end.settimeout(left)
            try:
                more = self._end.recv(1 << 16)
            except TimeoutError as error:
                raise ChannelSilent from error
            except OSError as error:
                raise ChannelClosed from error
            finally:
                self._end.settimeout(SEND_S)
            if not more:
                raise ChannelClosed
            self._received += more

    def close(self) -> None:
        """Close this end; may be called twice."""
        self._end.close()

    def _frame(self) -> tuple[bytes, Any] | None:
        if len(self._received) < HEAD.size:
            return None
        kind, size = HEAD.unpack_from(self._received)
        if size > MAX_BYTES:
            raise ValueError(f"a frame of {size} bytes; at most {MAX_BYTES} are taken")
        end = HEAD.size + size
        if len(self._received) < end:
            return None
        body, self._received = self._received[HEAD.size : end], self._received[end:]
        return kind, json.loads(body) if body else None


SEND_S = 60.0
"""Longest wait until the other side takes a frame."""
