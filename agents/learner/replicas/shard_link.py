"""Messages between replicas and the shards of a parameter server: fixed records over sockets in the group's folder.

Gradients and weights themselves lie in mapped memory; a message says that they are there.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
from pathlib import Path

from league.agents.learner.replicas.parameter_shard import Due, ParameterShard, Push, ShardAnswer

JOIN, BEGIN, PUSH, NOTHING = range(4)
"""Kinds of requests. NOTHING: the batch came to nothing."""

REQUEST = struct.Struct("=iiqdd")
"""Kind, rank, version, count, learning rate."""

VERDICT = struct.Struct("=qd")
"""Lag and weight."""

LOOK_S = 0.2
"""Longest time until `end` is noticed."""


class ShardLostError(Exception):
    """A shard is gone, or does not answer."""


class ShardLink:
    """A replica's connection to one shard.

    Raises:
      ShardLostError: nobody listens there, or answers.
    """

    def __init__(self, path: Path, *, rank: int, timeout_s: float) -> None:
        self._rank = rank
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout_s)
        try:
            self._socket.connect(os.fspath(path))
        except OSError as error:
            self._socket.close()
            raise ShardLostError(f"no shard listens at {path}") from error
        self._send(JOIN)
        self._verdict()  # a synchronous shard steps with those it knows of: it must know of all before one pushes

    def begin(self) -> None:
        """Wait until a batch may begin. Raises ShardLostError."""
        self._send(BEGIN)
        self._verdict()

    def push(self, push: Push | None) -> None:
        """Say that the gradient is there, or that there is none. Raises ShardLostError."""
        if push is None:
            self._send(NOTHING)
        else:
            self._send(PUSH, push)

    def verdict(self) -> ShardAnswer:
        """Wait for the answer to a push. Raises ShardLostError."""
        return self._verdict()

    def close(self) -> None:
        """Leave; may be called twice."""
        self._socket.close()

    def _send(self, kind: int, push: Push | None = None) -> None:
        numbers = (0, 0.0, 0.0) if push is None else (push.version, push.count, push.learning_rate)
        try:
            self._socket.sendall(REQUEST.pack(kind, self._rank, *numbers))
        except OSError as error:
            raise ShardLostError("the shard is gone") from error

    def _verdict(self) -> ShardAnswer:
        try:
            return ShardAnswer(*VERDICT.unpack(_exactly(self._socket, VERDICT.size)))
        except OSError as error:
            raise ShardLostError("the shard is gone") from error


class ShardServer:
    """Serves one shard in the calling thread.

    Args:
      path: of the socket; one of an earlier server is replaced.
      lock: held while the shard is changed.
    """

    def __init__(self, shard: ParameterShard, path: Path, *, lock: threading.Lock) -> None:
        self._shard = shard
        self._lock = lock
        self._ended = False
        self._ranks: dict[socket.socket, int] = {}
        self._listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()
        self._listener.bind(os.fspath(path))
        self._listener.listen()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until `end` is called."""
        while not self._ended:
            for key, _ in self._selector.select(LOOK_S):
                end = key.fileobj
                assert isinstance(end, socket.socket)
                if end is self._listener:
                    self._selector.register(end.accept()[0], selectors.EVENT_READ)
                else:
                    self._receive(end)
        self._selector.close()
        for connection in (self._listener, *self._ranks):
            connection.close()

    def end(self) -> None:
        """Let `serve` return soon; may be called from another thread."""
        self._ended = True

    def _receive(self, end: socket.socket) -> None:
        """Take one request, or notice that a replica is gone."""
        try:
            kind, rank, *numbers = REQUEST.unpack(_exactly(end, REQUEST.size))
        except OSError:
            self._selector.unregister(end)
            end.close()
            lost = self._ranks.pop(end, None)
            if lost is not None and lost not in self._ranks.values():
                with self._lock:
                    due = self._shard.leave(lost)
                self._answer(due)
            return
        with self._lock:
            due = self._event(end, kind, rank, numbers)
        self._answer(due)

    def _event(self, end: socket.socket, kind: int, rank: int, numbers: list[float]) -> Due:
        if kind == JOIN:
            self._ranks[end] = rank
            return [(rank, ShardAnswer()), *self._shard.join(rank)]
        if kind == BEGIN:
            return self._shard.begin(rank)
        return self._shard.push(rank, Push(int(numbers[0]), *numbers[1:]) if kind == PUSH else None)

    def _answer(self, due: Due) -> None:
        for rank, verdict in due:
            for end, other in self._ranks.items():
                if other == rank:
                    with contextlib.suppress(OSError):  # a replica that is gone is noticed by its end of the socket
                        end.sendall(VERDICT.pack(verdict.lag, verdict.weight))


def _exactly(end: socket.socket, size: int) -> bytes:
    """So many bytes of a stream. Raises OSError where it ends or is late."""
    received = b""
    while len(received) < size:
        part = end.recv(size - len(received))
        if not part:
            raise ConnectionResetError("the other end is closed")
        received += part
    return received
