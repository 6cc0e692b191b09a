"""Othello on a device, as `league.envs.games.othello`: bitboards of one int64, whose highest bit is the sign.

Shape letters: N games, O openings, D = 4 directions that share the sign of their shift.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from league.agents.device_games.draws import Draws
from league.agents.device_games.game import DeviceTurn, alternating_turn, paid
from league.envs.games.othello import CELLS, PASS, Othello

SHIFTS = (1, 7, 8, 9)
ALL, FIRST_COL, LAST_COL = (1 << 64) - 1, 0x0101010101010101, 0x8080808080808080
UP = (ALL ^ FIRST_COL, ALL ^ LAST_COL, ALL, ALL ^ FIRST_COL)
"""Cells that a shift to the left may reach: those of the far column it reaches only by running round the edge."""
DOWN = tuple(
    reach & (ALL >> shift)
    for reach, shift in zip((ALL ^ LAST_COL, ALL ^ FIRST_COL, ALL, ALL ^ LAST_COL), SHIFTS, strict=True)
)
"""The same to the right; a shift to the right also brings copies of the sign, which the last factor clears."""


class DeviceOthello:
    """N games. Args: source: the same game in numpy, of which each game stands at an opening."""

    def __init__(self, source: Othello, *, num_envs: int, device: torch.device, draws: Draws) -> None:
        self.spec, self.num_envs, self._draws = source.spec, num_envs, draws
        saved = source.save()
        words = np.stack([saved["own"], saved["other"]]).astype(np.uint64).view(np.int64)
        self._openings = torch.from_numpy(words).to(device)  # [2, O]
        self._opening_seat = torch.from_numpy(saved["seat"].astype(np.int64)).to(device)
        self._shifts = torch.tensor(SHIFTS, device=device).unsqueeze(1)
        self._up, self._down = (_words(reach, device).unsqueeze(1) for reach in (UP, DOWN))
        self._bits = _words([1 << cell for cell in range(CELLS)] + [0], device)  # of an action; none for a pass
        self._places = torch.arange(CELLS, device=device)
        self._discs = torch.zeros(2, num_envs, dtype=torch.int64, device=device)  # of the seat to move, of the other
        self._seat = torch.zeros(num_envs, dtype=torch.int64, device=device)

    def reset(self) -> DeviceTurn:
        discs, seat = self._dealt()
        self._discs.copy_(discs)
        self._seat.copy_(seat)
        return self._turn(self._legal(self._discs[0], self._discs[1]))

    def step(self, actions: Tensor) -> DeviceTurn:
        disc = self._bits[actions]
        turned = self._turned(self._discs[0], self._discs[1], disc)
        placed, left = self._discs[0] | disc | turned, self._discs[1] & ~turned
        legal, of_mover = self._legal(left, placed), self._legal(placed, left)
        ended = (legal == 0) & (of_mover == 0)
        discs, seat = torch.stack([left, placed]), 1 - self._seat
        counts = self._planes(discs).sum(dim=2)  # int64 [N, 2]
        rewards = paid((counts[:, 0] - counts[:, 1]).sign(), seat=seat, ended=ended)
        opening, opening_seat = self._dealt()
        self._discs.copy_(torch.where(ended, opening, discs))
        self._seat.copy_(torch.where(ended, opening_seat, seat))
        restarted = self._legal(self._discs[0], self._discs[1])
        return self._turn(torch.where(ended, restarted, legal), rewards, ended)

    def state(self) -> dict[str, Tensor]:
        return {"discs": self._discs, "seat": self._seat}

    def _dealt(self) -> tuple[Tensor, Tensor]:
        """An opening for each game, int64 [2, N], and the seat to move, [N]."""
        count = self._openings.shape[1]
        if count == 1:
            return self._openings.expand(2, self.num_envs), self._opening_seat.expand(self.num_envs)
        drawn = self._draws.below(count, self.num_envs)
        return self._openings[:, drawn], self._opening_seat[drawn]

    def _lines(self, start: Tensor, other: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """For both signs of the shifts: discs of `other` in line behind `start`, and the cells behind them, [D, N]."""
        for reach, is_up in ((self._up, True), (self._down, False)):
            through = other & reach
            lines = self._shifted(start, is_up=is_up) & through
            for _ in range(5):  # at most six discs lie between two on a board of eight
                lines = lines | (self._shifted(lines, is_up=is_up) & through)
            yield lines, self._shifted(lines, is_up=is_up) & reach

    def _shifted(self, words: Tensor, *, is_up: bool) -> Tensor:
        return words << self._shifts if is_up else words >> self._shifts

    def _legal(self, own: Tensor, other: Tensor) -> Tensor:
        """The empty cells, int64 [N], on which a disc of `own` closes in at least one line of `other`."""
        cells = torch.zeros_like(own)
        for _, ends in self._lines(own, other):
            cells = cells | _joined(ends)
        return cells & ~(own | other)

    def _turned(self, own: Tensor, other: Tensor, disc: Tensor) -> Tensor:
        """The discs of `other`, int64 [N], that `disc` of `own` turns over; disc: one bit each, 0 for a pass."""
        discs = torch.zeros_like(own)
        for lines, ends in self._lines(disc, other):
            discs = discs | _joined(torch.where((ends & own) != 0, lines, 0))
        return discs

    def _planes(self, discs: Tensor) -> Tensor:
        """int64 [N, 2, 64], 1 where the seat to move, and where the other, has a disc."""
        return (discs.t().unsqueeze(2) >> self._places) & 1

    def _turn(self, legal: Tensor, rewards: Tensor | None = None, ended: Tensor | None = None) -> DeviceTurn:
        board = self._planes(self._discs).bool().view(-1, 2, 8, 8)
        cells = ((legal.unsqueeze(1) >> self._places) & 1).bool()
        mask = torch.cat([cells, (legal == 0).unsqueeze(1)], dim=1)
        assert mask.shape[1] == PASS + 1
        seat = self._seat.clone()
        return alternating_turn(seat, obs={"board": board}, action_mask=mask, rewards=rewards, terminated=ended)


def _joined(words: Tensor) -> Tensor:
    """The union [N] of words [D, N]."""
    return (words[0] | words[1]) | (words[2] | words[3])


def _words(values: tuple[int, ...] | list[int], device: torch.device) -> Tensor:
    """Unsigned words of 64 bits as int64 of the same bits."""
    return torch.from_numpy(np.array(values, np.uint64).view(np.int64)).to(device)
