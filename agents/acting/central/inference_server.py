"""Serves an inference host to the actor hosts of this machine, in batches by deadline and size."""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import selectors
import socket
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from mmap import mmap

from league.agents.acting.central.inference_host import InferenceHost, InferenceRequest, Part, PolicyNotHeld
from league.agents.acting.central.messages import (
    DECIDE,
    DONE,
    FAILED,
    HOLD,
    MAX_BYTES,
    UNKNOWN,
    WANTED,
    WEIGHTS,
    answer,
    head,
    local_address,
    peer_is_own,
    read_decide,
    read_hello,
    read_hold,
)
from league.agents.acting.central.shared_rows import RowSizes, SharedRows, block_size
from league.agents.nets.network import Network
from league.agents.weights import Layout, Weights, WeightsError, layout_of
from league.envs.protocol import EnvSpec

logger = logging.getLogger(__name__)

LOOK_S = 0.25
"""Longest wait for a message; then the server shows that it lives, and looks whether it is to end."""

HELLO_S = 5.0
"""Longest wait for the first message of a client."""

MAX_WAIT_S = 0.002
"""Longest wait of a request for those of other clients."""

EXPECTED_S = 0.02
"""Time since its last answer after which a client is not waited for."""

MAX_BATCH_ROWS = 16_384


@dataclass
class Client:
    """One actor host.

    Fields:
      number: never used twice. answered_at: time of its last answer.
      requests: what it waits for, by the numbers of the messages.
    """

    number: int
    end: socket.socket
    shared: SharedRows
    answered_at: float
    requests: dict[int, InferenceRequest] = field(default_factory=dict)


@dataclass
class Counts:
    """Work so far. batches: forward batches; requests: in them; rows: in these."""

    batches: int = 0
    requests: int = 0
    rows: int = 0


class InferenceServer:
    """Listens at a local address and decides what its clients ask.

    A request waits until every client that is expected to ask has asked, until the batch is full, or `MAX_WAIT_S`.
    A client that asks for one part of its games while it steps another is not waited for: it has asked.

    Args:
      name: of the address. network: of every policy, with float32 parameters.
      max_wait_s: longest wait of a request for others.
    Raises:
      OSError: the address is taken.
    """

    def __init__(
        self, host: InferenceHost, spec: EnvSpec, network: Network, *, name: str, max_wait_s: float = MAX_WAIT_S
    ) -> None:
        self.name = name
        self._host = host
        self._spec = spec
        self._layout: Layout = layout_of(network)
        self._sizes = RowSizes.of(network, capacity=0)
        self._max_wait_s = max_wait_s
        self._clients: dict[socket.socket, Client] = {}
        self._next_number = 0
        self._first_at = 0.0
        self._ended = False
        self.counts = Counts()
        self.lived_at = time.monotonic()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(local_address(name))
        self._listener.listen(128)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)

    def serve(self) -> None:
        """Serve until `end` is called."""
        with contextlib.ExitStack() as stack:
            stack.callback(self._close)
            while not self._ended:
                self._turn()

    def end(self) -> None:
        """Let `serve` return soon; may be called from another thread."""
        self._ended = True

    def _turn(self) -> None:
        """Take what has come, and decide a batch where it is time."""
        wait_s = LOOK_S
        if self._waiting():
            wait_s = max(self._first_at + self._max_wait_s - time.monotonic(), 0.0)
        for key, _ in self._selector.select(wait_s):
            end = key.fileobj
            assert isinstance(end, socket.socket)
            if end is self._listener:
                self._accept()
            else:
                self._receive(self._clients[end])
        self.lived_at = time.monotonic()
        waiting = self._waiting()
        if waiting and self._is_time(waiting):
            self._decide(waiting)

    def _waiting(self) -> list[tuple[Client, int, InferenceRequest]]:
        """Every request with its client and its number."""
        return [(client, *asked) for client in self._clients.values() for asked in client.requests.items()]

    def _is_time(self, waiting: Sequence[tuple[Client, int, InferenceRequest]]) -> bool:
        now = time.monotonic()
        if now - self._first_at >= self._max_wait_s or _rows(waiting) >= MAX_BATCH_ROWS:
            return True
        return not any(
            not client.requests and now - client.answered_at < EXPECTED_S for client in self._clients.values()
        )

    def _decide(self, waiting: Sequence[tuple[Client, int, InferenceRequest]]) -> None:
        self.counts.batches += 1
        self.counts.requests += len(waiting)
        self.counts.rows += _rows(waiting)
        kind, text = DONE, ""
        try:
            self._host.decide([request for _, _, request in waiting])
        except Exception as error:  # boundary: a network of the user's own may raise anything
            logger.exception("a batch failed")
            kind, text = FAILED, f"{type(error).__name__}: {error}"
        for client, number, _ in waiting:
            del client.requests[number]
            self._answer(client, answer(kind, number, text))

    def _accept(self) -> None:
        end, _ = self._listener.accept()
        end.settimeout(HELLO_S)
        files: list[int] = []
        try:
            if not peer_is_own(end):
                raise ValueError("another user")
            message, files, _, _ = socket.recv_fds(end, MAX_BYTES, 1)
            shared = self._shared(read_hello(message), files)
            end.send(answer(DONE, 0))
        except (OSError, ValueError) as error:
            logger.warning("a client was refused: %s", error)
            with contextlib.suppress(OSError):
                end.send(answer(FAILED, 0, str(error)))
            end.close()
            return
        finally:
            for file in files:
                os.close(file)
        self._clients[end] = Client(self._next_number, end, shared, time.monotonic())
        self._next_number += 1
        self._selector.register(end, selectors.EVENT_READ)

    def _shared(self, sizes: RowSizes, files: list[int]) -> SharedRows:
        """The rows of a client. Raises ValueError: they are for another network, or too small."""
        own = replace(self._sizes, capacity=sizes.capacity)
        if sizes != own or sizes.capacity < 1:
            raise ValueError(f"rows of {sizes}, and the network here needs {own}")
        size = block_size(self._spec, sizes)
        if len(files) != 1 or os.fstat(files[0]).st_size < size:
            raise ValueError(f"no memory of {size} bytes came with the hello")
        return SharedRows(self._spec, sizes, mmap(files[0], size))

    def _receive(self, client: Client) -> None:
        try:
            message = client.end.recv(MAX_BYTES)
        except OSError:
            message = b""
        if not message:
            self._drop(client)
            return
        number = 0
        try:
            kind, number = head(message)
            self._take(client, kind, number, message)
        except PolicyNotHeld:
            self._answer(client, answer(UNKNOWN, number))
        except (ValueError, struct.error, WeightsError) as error:
            self._answer(client, answer(FAILED, number, str(error)))

    def _take(self, client: Client, kind: bytes, number: int, message: bytes) -> None:
        """Carry a message out, or keep it for the next batch."""
        if kind == DECIDE:
            counted, first, table = read_decide(message)
            ends = list(itertools.accumulate((count for _, count in counted), initial=first))
            if ends[-1] > client.shared.sizes.capacity:
                raise ValueError(f"a request of the rows {first} to {ends[-1]}")
            parts = (Part(policy, *rows) for (policy, _), rows in zip(counted, itertools.pairwise(ends), strict=True))
            request = InferenceRequest(client.number, table, client.shared, tuple(parts))
            self._host.require(request)
            if not self._waiting():
                self._first_at = time.monotonic()
            client.requests[number] = request
        elif kind in (HOLD, WEIGHTS):
            policy, version, replace = read_hold(message)
            held = self._host.version_of(policy)
            if kind == WEIGHTS:
                weights = Weights(client.shared.weights, self._layout, version)
                self._host.hold(policy, weights, replace=replace)
            is_wanted = replace or held is None or version > held
            self._answer(client, answer(WANTED if kind == HOLD and is_wanted else DONE, number))
        else:
            raise ValueError(f"a message of kind {kind!r}")

    def _answer(self, client: Client, message: bytes) -> None:
        client.answered_at = time.monotonic()
        try:
            client.end.send(message)
        except OSError:
            self._drop(client)

    def _drop(self, client: Client) -> None:
        """Free what a client that has left had here."""
        if self._clients.pop(client.end, None) is not None:
            self._selector.unregister(client.end)
            client.end.close()
            self._host.forget(client.number)

    def _close(self) -> None:
        for client in list(self._clients.values()):
            self._drop(client)
        self._selector.close()
        self._listener.close()


def _rows(waiting: Sequence[tuple[Client, int, InferenceRequest]]) -> int:
    """Rows of all these requests."""
    return sum(part.stop - part.start for _, _, request in waiting for part in request.parts)
