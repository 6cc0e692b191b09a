"""Weights in Ray's object store, put there once: snapshots for leases, and a learner's newest ones for actor hosts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from league.agents.learner.evolution.published import EvolvedWeights, WeightSteps
from league.agents.weights import Weights

INLINE_BYTES = 1 << 20
"""Smaller weights come with each answer. Putting them once for all callers takes 7 % of the plies of Connect Four with
two hosts and 140 KB of weights, which change every few milliseconds."""


MAX_SERIALS = 256
"""Serials whose versions are remembered, of all players together."""


@dataclass(frozen=True)
class NewestAnswer:
    """Weights that a caller does not have.

    Fields:
      serial: of these weights on their learner host. Their version does not tell them apart from those before a
        transplant, whose donor may have made as many updates.
      weights: small ones, or the steps to them where these are shorter. reference: of large ones.
    """

    serial: int
    weights: Weights | WeightSteps | None = None
    reference: Any = None


class NewestObjects:
    """The newest weights of each player, for many callers; may be used from any thread.

    Large weights are put once, so that every machine fetches them once, however many actor hosts it has.

    Args:
      put: stores a value and returns the reference to it.
    """

    def __init__(self, put: Callable[[Weights], Any]) -> None:
        self._put = put
        self._lock = threading.Lock()
        self._num_seen = 0
        self._held: dict[str, tuple[Weights, NewestAnswer]] = {}
        self._versions: OrderedDict[int, int] = OrderedDict()  # of the weights of the newest serials

    def answer(self, player: str, newest: Weights, *, have: int) -> NewestAnswer | None:
        """The answer to a caller that has the weights of serial `have`; None where these are the newest.

        Args:
          newest: the same object until the weights change.
        """
        with self._lock:
            held = self._held.get(player)
            if held is None or held[0] is not newest:
                self._num_seen += 1
                is_small = newest.vector.nbytes < INLINE_BYTES or isinstance(newest, EvolvedWeights)
                self._versions[self._num_seen] = newest.version
                while len(self._versions) > MAX_SERIALS:
                    self._versions.popitem(last=False)
                weights, reference = (newest, None) if is_small else (None, self._put(newest))
                self._held[player] = held = (newest, NewestAnswer(self._num_seen, weights, reference))
            since = self._versions.get(have)
        if held[1].serial == have:
            return None
        if isinstance(newest, EvolvedWeights):
            return NewestAnswer(held[1].serial, newest.since(newest.version if since is None else since))
        return held[1]


class FrozenObjects:
    """References by snapshot, the one used last given up last.

    An object lives as long as its reference is held: a lease on its way holds those that it names.

    Args:
      put: stores a value and returns the reference to it.
      max_bytes: of all weights that are held here; the newest is held whatever its size.
    """

    def __init__(self, put: Callable[[Weights], Any], *, max_bytes: int) -> None:
        self._put = put
        self._max_bytes = max_bytes
        self._held: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def __contains__(self, snapshot: str) -> bool:
        return snapshot in self._held

    def references(self, named: Iterable[str], weights: Mapping[str, Weights]) -> dict[str, Any]:
        """The references by snapshot, for as many as are named at once; other names than of snapshots are passed over.

        Args:
          weights: of all named snapshots that are not held.
        """
        found = {}
        for snapshot in named:
            if snapshot not in self._held and snapshot in weights:
                self._held[snapshot] = (self._put(weights[snapshot]), weights[snapshot].vector.nbytes)
                self.bytes += weights[snapshot].vector.nbytes
            if snapshot in self._held:
                self._held.move_to_end(snapshot)
                found[snapshot] = self._held[snapshot][0]
        while self.bytes > self._max_bytes and len(self._held) > 1:
            _, (_, num_bytes) = self._held.popitem(last=False)
            self.bytes -= num_bytes
        return found
