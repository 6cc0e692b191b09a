"""Weights of snapshots in Ray's object store: put there once, and given up when newer ones need the room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from agents.weights import Weights


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

    def reference(self, snapshot: str, weights: Weights) -> Any:
        """The reference to a snapshot's weights."""
        if snapshot not in self._held:
            self._held[snapshot] = (self._put(weights), weights.vector.nbytes)
            self.bytes += weights.vector.nbytes
        self._held.move_to_end(snapshot)
        while self.bytes > self._max_bytes and len(self._held) > 1:
            _, (_, num_bytes) = self._held.popitem(last=False)
            self.bytes -= num_bytes
        return self._held[snapshot][0]
