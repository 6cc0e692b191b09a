"""Collects episodes until every perturbation that counts was played with its opposite.

Shape letter: n pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.agents.unroll.episodes import SeatEpisodes


@dataclass(frozen=True)
class Pairs:
    """Complete pairs, by ascending index.

    Fields:
      indices: int32 [n], perturbations in the noise table. returns: float32 [n, 2], with it and with its opposite.
      decisions: in all episodes together.
    """

    indices: NDArray[np.int32]
    returns: NDArray[np.float32]
    decisions: int


class EpisodePairs:
    """Episodes of one version of the weights, in pairs. Those of other versions, and copies, are dropped and counted.

    Attributes:
      late: episodes dropped so far because newer weights had come.
      unpaired: episodes dropped so far whose opposite had not come when their version ended.
    """

    def __init__(self) -> None:
        self.late = self.unpaired = 0
        self._version = 0
        self._halves: dict[int, tuple[float, int]] = {}
        self._complete: list[tuple[int, float, float, int]] = []

    @property
    def num_complete(self) -> int:
        """Pairs that are whole."""
        return len(self._complete)

    def begin(self, version: int) -> None:
        """From now on, count episodes of these weights alone."""
        if version != self._version:
            self.unpaired += len(self._halves)
            self._version = version
            self._halves, self._complete = {}, []

    def add(self, episodes: SeatEpisodes) -> None:
        """Take episodes in any order."""
        is_new = episodes.versions == self._version
        self.late += int(np.count_nonzero(~is_new))
        whole = {index for index, *_ in self._complete}
        for number, earned, decisions in zip(
            episodes.perturbations[is_new].tolist(),
            episodes.returns[is_new].tolist(),
            episodes.decisions[is_new].tolist(),
            strict=True,
        ):
            index = abs(number) - 1
            if index in whole or number in self._halves:
                continue  # a host that was lost plays its rounds again
            other = self._halves.pop(-number, None)
            if other is None:
                self._halves[number] = earned, decisions
                continue
            plus, minus = (earned, other[0]) if number > 0 else (other[0], earned)
            whole.add(index)
            self._complete.append((index, plus, minus, decisions + other[1]))

    def take(self) -> Pairs:
        """The complete pairs, which are forgotten."""
        pairs, self._complete = sorted(self._complete), []
        return Pairs(
            np.array([pair[0] for pair in pairs], np.int32),
            np.array([pair[1:3] for pair in pairs], np.float32).reshape(-1, 2),
            sum(pair[3] for pair in pairs),
        )
