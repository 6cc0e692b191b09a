"""A small game as tables: its information states and endings, and the protocols of games that have them.

Shape letters: I information states, A actions, S seats, Z endings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
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


@dataclass(frozen=True)
class Endings:
    """Every history at which the game is over. A seat's last decision stands for all of its decisions.

    Fields:
      chance: float64 [Z], probability of all draws of chance on the way.
      returns: float64 [Z, S], in the rewards of the game.
      info_state: int64 [Z, S], where each seat decided last, -1 for a seat that never did.
      action: int64 [Z, S], what it did there.
    """

    chance: NDArray[np.float64]
    returns: NDArray[np.float64]
    info_state: NDArray[np.int64]
    action: NDArray[np.int64]


@dataclass(frozen=True)
class DecisionTree:
    """A game whose every history has been visited."""

    info_states: InformationStates
    endings: Endings


@runtime_checkable
class TreeGame(Protocol):
    """An env whose game may be small enough to visit every history."""

    def decision_tree(self, *, limit_s: float = math.inf) -> DecisionTree:
        """The tree of the game.

        Args:
          limit_s: processor seconds that a visit of all histories may take.
        Raises:
          EnvError: the game is too large, takes too long to visit, or does not name its information states.
        """
        ...


@runtime_checkable
class TableGame(Protocol):
    """A simultaneous game over a payoff table, float32 [A_0, ..., A_(S-1), S]."""

    @property
    def payoffs(self) -> NDArray[np.float32]:
        """Payoffs of one round."""
        ...

    @property
    def rounds(self) -> int:
        """Turns of one episode."""
        ...


def has_tree(env: object) -> bool:
    """True if an env says itself what its histories are, so that none has to be visited."""
    return isinstance(env, TreeGame) or (isinstance(env, TableGame) and env.rounds == 1)


def log_endings(log_choices: Sequence[float]) -> float:
    """Natural logarithm of an estimate of the number of endings of a game without chance.

    Args:
      log_choices: of each of some random games, the logarithm of the product of all numbers of choices on its way. That
        product has the number of endings as its mean.
    Source: Knuth 1975, Estimating the efficiency of backtrack programs.
    """
    return float(np.logaddexp.reduce(np.asarray(log_choices, np.float64))) - math.log(len(log_choices))
