"""The way to an inference host in another process of this machine, by shared memory and a local socket."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Sequence
from mmap import mmap

from league.agents.acting.central.central_policy import AskedRows, InferenceLost, RequestRows
from league.agents.acting.central.messages import (
    DONE,
    FAILED,
    HOLD,
    MAX_BYTES,
    UNKNOWN,
    WANTED,
    WEIGHTS,
    decide,
    head,
    hello,
    hold,
    local_address,
    peer_is_own,
    text_of,
)
from league.agents.acting.central.shared_rows import RowSizes, SharedRows, block_size
from league.agents.nets.network import Network
from league.agents.weights import Weights
from league.envs.protocol import EnvSpec

CONNECT_S = 0.05
"""Time between two tries to connect."""

MAX_NUMBER = (1 << 32) - 1
"""Of a message; the next one has the number 1 again."""


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
        self.free = RequestRows(capacity)
        self._end: socket.socket | None = None
        self._last_number = 0
        self._asked: dict[int, tuple[Sequence[AskedRows], int, int]] = {}
        self._answers: dict[int, bytes] = {}

    def hold(self, policy: str, weights: Weights, *, replace: bool = False) -> None:
        """As in the protocol. Raises InferenceLost."""
        number = self._number()
        self._send(hold(HOLD, number, policy, version=weights.version, replace=replace))
        if self._answer_to(number) == WANTED:
            self.rows.weights[...] = weights.vector
            number = self._number()
            self._send(hold(WEIGHTS, number, policy, version=weights.version, replace=replace))
            self._answer_to(number)

    def ask(self, asked: Sequence[AskedRows], *, first: int, table: int) -> int:
        """As in the protocol. Raises InferenceLost."""
        number = self._number()
        self._send(decide(number, [(part.policy, part.count) for part in asked], first=first, table=table))
        self._asked[number] = (asked, first, table)
        return number

    def wait(self, number: int) -> None:
        """As in the protocol. Raises InferenceLost."""
        if number not in self._asked:
            raise InferenceLost("the inference host was lost with what it was asked")
        kind, (asked, first, table) = self._answer_to(number), self._asked.pop(number)
        if kind == UNKNOWN:
            for part in asked:
                self.hold(part.policy, part.weights)
            again = self.ask(asked, first=first, table=table)
            kind = self._answer_to(again)
            del self._asked[again]
        if kind == UNKNOWN:
            raise self._lost(f"it does not keep {', '.join(part.policy for part in asked)}")

    def close(self) -> None:
        """Leave the host, and give up what it was asked; may be called twice."""
        self._asked.clear()
        self._answers.clear()
        self.free.clear()
        if self._end is not None:
            self._end.close()
            self._end = None

    def _number(self) -> int:
        """The number of the next message."""
        self._last_number = self._last_number % MAX_NUMBER + 1
        return self._last_number

    def _send(self, message: bytes) -> None:
        end = self._end or self._connect()
        try:
            end.send(message)
        except TimeoutError as error:
            raise self._lost(f"nothing was taken within {self._deadline_s:g} s") from error
        except OSError as error:
            raise self._lost("it has ended") from error

    def _answer_to(self, number: int) -> bytes:
        """The kind of the answer to a message; answers to others are kept for later."""
        while number not in self._answers:
            answer = self._received()
            kind, answered = head(answer)
            if kind == FAILED:
                raise self._lost(text_of(answer))
            self._answers[answered] = kind
        return self._answers.pop(number)

    def _received(self) -> bytes:
        assert self._end is not None, "an answer is waited for, and nothing was asked"
        try:
            answer = self._end.recv(MAX_BYTES)
        except TimeoutError as error:
            raise self._lost(f"no answer within {self._deadline_s:g} s") from error
        except OSError:
            answer = b""
        if not answer:
            raise self._lost("it has ended")
        return answer

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
            if not answer or head(answer)[0] != DONE:
                end.close()
                raise InferenceLost(f"the inference host refused: {text_of(answer)}")
            self._end = end
            return end

    def _lost(self, reason: str) -> InferenceLost:
        self.close()
        return InferenceLost(f"the inference host was lost: {reason}")

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            self.close()
            os.close(self._memory)
