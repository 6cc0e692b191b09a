"""The step that an arena is in: its next part, and results of the parts before it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.turn_policies import Decisions


@dataclass
class ArenaStep:
    """One step of N games; K slots act in its turn.

    Fields:
      left: steps to make, this one among them. part: index in `arena.PARTS` of what comes next.
      is_waiting: whether another process works on that.
      rows: int64 [K], of the slots. recorded: those slots that are recorded. deciding: what the slots decide.
    """

    left: int = 0
    part: int = 0
    is_waiting: bool = False
    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    recorded: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    deciding: Decisions | None = None
