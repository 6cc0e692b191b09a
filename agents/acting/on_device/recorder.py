"""Cuts each seat's own decisions into unrolls on a device, as `league.agents.unroll.builder` does on the host.

Shape letters: R rows (one per slot), T unroll length, L = 2 T places of a row, K slots that act in one turn, A actions,
C core state size.

Every write goes to all K slots. Those that are not recorded write to one place behind all rows, which nobody reads: so
no shape depends on a number in the device's memory. A row has room for two unrolls, and whole ones are taken out once
in at most T turns; only then does the host wait.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from league.agents.unroll.builder import OUTCOMES
from league.agents.unroll.device_unrolls import DeviceUnrolls
from league.agents.unroll.unroll import UnrollSpec, learnt_dtype

UNTIL_THEN = (0.0, 1.0, True)
"""Of a decision whose outcome is not known yet, in the order of `OUTCOMES`."""


class DeviceRecorder:
    """Records R rows. Call `observe` before the slots act, `act` after it, `end` where episodes ended."""

    def __init__(self, spec: UnrollSpec, *, num_rows: int, device: torch.device) -> None:
        self._length, self._places = spec.unroll_length, 2 * spec.unroll_length
        self._rows = num_rows
        one = spec.allocate(1, action_dtype=learnt_dtype(spec.action_dtype)).arrays()
        size = num_rows * self._places + 1
        self._flat = {
            name: torch.from_numpy(array[0, :1]).to(device).repeat(size, *[1] * (array.ndim - 2))
            for name, array in one.items()
            if name != "core"
        }
        self._per_observation = [line.name for line in spec.fields if line.per_observation]
        self._per_observation += [f"obs.{name}" for name in spec.game.observations]
        self._decided = [line.name for line in spec.fields if line.per_decision and line.name not in OUTCOMES]
        self._core = torch.zeros(2, num_rows + 1, spec.core_size, device=device)  # before an unroll, before the next
        self._cursor = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self._open = torch.zeros(num_rows, dtype=torch.bool, device=device)
        self._fresh = torch.ones(num_rows, dtype=torch.bool, device=device)
        self._observed = torch.zeros(num_rows, dtype=torch.bool, device=device)  # and not decided yet

    def observe(
        self,
        rows: Tensor,
        records: Tensor,
        *,
        obs: Mapping[str, Tensor],
        action_mask: Tensor | None,
        rewards: Tensor,
        core: Tensor,
    ) -> None:
        """Close each row's last decision with its reward and write the slot's present observation.

        Args:
          rows: int64 [K], distinct; records: bool [K], whether they are recorded.
          obs: name -> [K, ...]; action_mask: bool [K, A]; rewards: float32 [K]; core: float32 [K, C] before it.
        """
        cursor = self._cursor[rows]
        self._flat["rewards"][self._at(rows, cursor - 1, self._open[rows])] = rewards
        self._open.index_fill_(0, rows, value=False)
        places = self._at(rows, cursor, records)
        for name, values in obs.items():
            self._flat[f"obs.{name}"][places] = values
        if action_mask is not None and "action_mask" in self._flat:
            self._flat["action_mask"][places] = action_mask
        self._flat["resets"][places] = self._fresh[rows]
        self._fresh[rows] = self._fresh[rows] & ~records
        self._observed[rows] = records
        if core.shape[1]:
            for begin, states in zip((0, self._length), self._core, strict=True):
                states[torch.where(records & (cursor == begin), rows, self._rows)] = core

    def act(self, rows: Tensor, records: Tensor, **decided: Tensor) -> None:
        """Record the decisions of the rows just observed.

        Args:
          rows: int64 [K], distinct; records: bool [K], whether they are recorded.
          decided: [K, ...] of every field per decision but `OUTCOMES`.
        """
        places = self._at(rows, self._cursor[rows], records)
        for name in self._decided:
            self._flat[name][places] = decided[name]
        for name, number in zip(OUTCOMES, UNTIL_THEN, strict=True):
            self._flat[name].index_fill_(0, places, number)  # an assignment would copy the number from the host
        self._cursor[rows] += records
        self._open[rows] = records
        self._observed.index_fill_(0, rows, value=False)

    def end(self, ended: Tensor, *, rewards: Tensor) -> None:
        """Close the last decisions of rows whose episodes terminated. ended: bool [R]; rewards: float32 [R]."""
        places = self._at(torch.arange(self._rows, device=ended.device), self._cursor - 1, self._open & ended)
        self._flat["rewards"][places] = rewards
        self._flat["discounts"].index_fill_(0, places, 0.0)
        self._open &= ~ended
        self._fresh |= ended

    def take(self) -> DeviceUnrolls | None:
        """The unrolls that are complete, None if there are none; the host waits for their number.

        Between two calls a row may decide at most T times.
        """
        # Complete at the (T + 1)-th observation, which bootstraps one unroll and begins the next.
        done = (self._cursor + self._observed > self._length).nonzero().squeeze(1)
        if not len(done):
            return None
        parts: dict[str, Tensor] = {}
        for name, flat in self._flat.items():
            by_row = flat[:-1].view(self._rows, self._places, *flat.shape[1:])
            length = self._length + (name in self._per_observation)
            parts[name] = by_row[done, :length]
            by_row[done, : self._length] = by_row[done, self._length :]
        core = self._core[0, done]
        self._core[0, done] = self._core[1, done]
        self._cursor[done] -= self._length
        obs = {name.removeprefix("obs."): parts.pop(name) for name in list(parts) if name.startswith("obs.")}
        return DeviceUnrolls(obs=obs, core=core, **parts)

    def state(self) -> dict[str, Tensor]:
        """All that it holds, as the tensors that it changes in place."""
        rows = {"cursor": self._cursor, "open": self._open, "fresh": self._fresh, "observed": self._observed}
        return {**{f"field.{name}": flat for name, flat in self._flat.items()}, **rows, "core": self._core}

    def _at(self, rows: Tensor, steps: Tensor, chosen: Tensor) -> Tensor:
        """Places of steps in the flat fields; the one behind all rows where a row is not chosen."""
        return torch.where(chosen, rows * self._places + steps, self._rows * self._places)
