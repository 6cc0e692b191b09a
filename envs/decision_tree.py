"""The information states of a small game, and the protocol of games whose exact exploitability can be computed.

Shape letters: I information states, A actions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class InformationStates:
    """Every situation that a seat can tell from all others. Each has a higher index than its parent.

    Fields:
      seat: int64 [I], the seat that must act.
      fields: name -> [I, ...], what it observes.
      legal: bool [I, A].
      parent: int64 [I], the same seat's information state before, -1 at its first decision.
      parent_action: int64 [I], the action taken there.
    """

    seat: NDArray[np.int64]
    fields: Mapping[str, NDArray[np.generic]]
    legal: NDArray[np.bool_]
    parent: NDArray[np.int64]
    parent_action: NDArray[np.int64]


class DecisionTree(Protocol):
    """A game whose every history has been visited."""

    @property
    def info_states(self) -> InformationStates: ...

    def nash_conv(self, table: NDArray[np.float64]) -> float:
        """NashConv in the rewards of the game when all seats play `table`, float64 [I, A]."""
        ...


@runtime_checkable
class TreeGame(Protocol):
    """An env whose game may be small enough to visit every history."""

    def decision_tree(self) -> DecisionTree:
        """The tree of the game.

        Raises:
          EnvError: the game is too large, or does not name its information states.
        """
        ...
