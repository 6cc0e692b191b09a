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

    def make_room(self, key: tuple[int, int], *, rows: int) -> None:
        """Give a client's table so many rows at least; one that grows keeps its states and moves.

        key: numbers of the client and of its table.
        """
        held = self._used.get(key)
        if held is not None and held.stop - held.start >= rows:
            return
        new = self._room(rows)
        if held is not None:
            self.states[new.start : new.start + held.stop - held.start] = self.states[held]
            self._free.append(held)
        self._used[key] = new

    def start_of(self, key: tuple[int, int]) -> int:
        """The first row of a client's table, for which room was made."""
        return int(self._used[key].start)

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
