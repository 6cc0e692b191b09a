"""The way to an inference host in another process of this machine, by shared memory and a local socket."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from mmap import mmap

from agents.acting.central.central_policy import Asked, InferenceLost
from agents.acting.central.messages import (
    DONE,
    FAILED,
    HOLD,
    MAX_BYTES,
    UNKNOWN,
    WANTED,
    WEIGHTS,
    decide,
    hello,
    hold,
    local_address,
    peer_is_own,
)
from agents.acting.central.shared_rows import RowSizes, SharedRows, block_size
from agents.nets.network import Network
from agents.weights import Weights
from envs.protocol import EnvSpec

CONNECT_S = 0.05
"""Time between two tries to connect."""


class SocketClient:
    """Connects when it is first used, and again after its host was lost.

    Args:
      name: of the host's address. capacity: most rows of a request.
      deadline_s: longest wait for an answer, and for a host to be there.
    """

    returns_core = False

    def __init__(self, name: str, spec: EnvSpec, network: Network, *, capacity: int, deadline_s: float) -> None:
        sizes = RowSizes.of(network, capacity=capacity)
        size = block_size(spec, sizes)
        self._address = local_address(name)
        self._deadline_s = deadline_s
        self._memory = os.memfd_create("league-rows")
        os.ftruncate(self._memory, size)
        self.rows = SharedRows(spec, sizes, mmap(self._memory, size))
        self._end: socket.socket | None = None

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        """As in the protocol. Raises InferenceLost."""
        answer = self._ask(hold(HOLD, policy, version=weights.version, replace=replace))
        if answer == WANTED:
            self.rows.weights[...] = weights.vector
            self._ask(hold(WEIGHTS, policy, version=weights.version, replace=replace))

    def decide(self, asked: Sequence[Asked], *, table: int) -> None:
        """As in the protocol. Raises InferenceLost."""
        message = decide([(part.policy, part.count) for part in asked], table=table)
        if self._ask(message) == UNKNOWN:
            for part in asked:
                self.hold(part.policy, part.weights)
            if self._ask(message) == UNKNOWN:
                raise self._lost(f"it does not keep {', '.join(part.policy for part in asked)}")

    def close(self) -> None:
        """Leave the host; may be called twice."""
        if self._end is not None:
            self._end.close()
            self._end = None

    def _ask(self, message: bytes) -> bytes:
        """Send a message; returns the kind of its answer."""
        end = self._end or self._connect()
        try:
            end.send(message)
            answer = end.recv(MAX_BYTES)
        except TimeoutError as error:
            raise self._lost(f"no answer within {self._deadline_s:g} s") from error
        except OSError:
            answer = b""
        if not answer:
            raise self._lost("it has ended")
        if answer[:1] == FAILED:
            raise self._lost(answer[1:].decode(errors="replace"))
        return answer[:1]

    def _connect(self) -> socket.socket:
        until = time.monotonic() + self._deadline_s
        while True:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            end.settimeout(self._deadline_s)
            try:
                end.connect(self._address)
                if not peer_is_own(end):
                    raise PermissionError("another user listens at its address")
                socket.send_fds(end, [hello(self.rows.sizes)], [self._memory])
                answer = end.recv(MAX_BYTES)
            except OSError as error:
                end.close()
                if time.monotonic() > until:
                    raise InferenceLost(f"no inference host after {self._deadline_s:g} s: {error}") from error
                time.sleep(CONNECT_S)
                continue
            if answer != DONE:
                end.close()
                raise InferenceLost(f"the inference host refused: {answer[1:].decode(errors='replace')}")
            self._end = end
            return end

    def _lost(self, reason: str) -> InferenceLost:
        self.close()
        return InferenceLost(f"the inference host was lost: {reason}")

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self.close()
            os.close(self._memory)
