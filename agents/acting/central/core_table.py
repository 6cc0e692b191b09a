"""Core states of the games of many clients in one tensor, so that one call reaches those of a whole batch.

Shape letter: C core state size.
"""

from __future__ import annotations

import torch


class CoreTable:
    """The core states of the tables of many clients, behind one another.

    Attributes:
      states: float32 [rows of all, C]; replaced when it grows.
    """

    def __init__(self, core_size: int, device: torch.device) -> None:
        self.states = torch.zeros(0, core_size, device=device)
        self._used: dict[tuple[int, int], slice] = {}
        self._free: list[slice] = []

    def __len__(self) -> int:
        """Number of tables."""
        return len(self._used)

    def start_of(self, key: tuple[int, int], *, least: int, capacity: int) -> int:
        """The first row of a client's table.

        Args:
          key: numbers of the client and of its table. least: rows that it needs now. capacity: that a new one gets.
        """
        held = self._used.get(key)
        if held is None or held.stop - held.start < least:
            new = self._room(max(least, capacity))
            if held is not None:
                self.states[new.start : new.start + held.stop - held.start] = self.states[held]
                self._free.append(held)
            self._used[key] = held = new
        return int(held.start)

    def forget(self, client: int) -> None:
        """Give up the tables of a client."""
        for key in [key for key in self._used if key[0] == client]:
            self._free.append(self._used.pop(key))

    def _room(self, rows: int) -> slice:
        """Rows of zeros: the smallest gap in which they fit, else new ones at the end."""
        fitting = [gap for gap in self._free if gap.stop - gap.start >= rows]
        if fitting:
            chosen = min(fitting, key=lambda gap: gap.stop - gap.start)
            self._free.remove(chosen)
            self.states[chosen] = 0.0
            return chosen
        start = len(self.states)
        self.states = torch.cat([self.states, self.states.new_zeros(rows, self.states.shape[1])])
        return slice(start, start + rows)
