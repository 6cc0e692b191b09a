"""Fair sharing of env steps: picks the player furthest behind its step weight, open leases included.

Shape letter: L learning players, in the order in which they came.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from league.core.state.growable_array import GrowableArray


@dataclass
class FairShare:
    """Env steps done and promised.

    Fields:
      step_weight: float64 [L], weight of each player's env steps.
      env_steps: int64 [L], steps of finished leases.
      open_leases: int32 [L]. num_blocking: int32 [L], open directives that keep the player from being leased.
      rating_env_steps, rating_leases: the same of rating matches.
      last_env_steps: steps of the lease that finished last, the guess for open ones.
      base_claim: float64 [L], claim of each player when its weight last changed or it last joined in; base_steps:
        int64 [L], its steps then. What came before does not weigh again.
    """

    step_weight: GrowableArray = field(default_factory=lambda: GrowableArray("float64"))
    env_steps: GrowableArray = field(default_factory=lambda: GrowableArray("int64"))
    open_leases: GrowableArray = field(default_factory=lambda: GrowableArray("int32"))
    num_blocking: GrowableArray = field(default_factory=lambda: GrowableArray("int32"))
    rating_env_steps: int = 0
    rating_leases: int = 0
    last_env_steps: int = 1
    base_claim: GrowableArray = field(default_factory=lambda: GrowableArray("float64"))
    base_steps: GrowableArray = field(default_factory=lambda: GrowableArray("int64"))

    def add(self, step_weight: float) -> int:
        """A player joins; returns its index."""
        self.env_steps.append(0)
        self.open_leases.append(0)
        self.num_blocking.append(0)
        self.base_claim.append(0.0)
        self.base_steps.append(0)
        index = self.step_weight.append(step_weight)
        self.rejoin(index)
        return index

    def reweight(self, index: int, step_weight: float) -> None:
        """Give a player another weight, for the steps from here on."""
        self._rebase(index, float(self._claims(0.0)[index]))
        self.step_weight.values[index] = step_weight

    def rejoin(self, index: int) -> None:
        """A player takes part (again), level with the one furthest behind: it owes and is owed nothing."""
        others = self.num_blocking.values == 0
        others[index] = False
        if others.any():
            self._rebase(index, float(self._claims(0.0)[others].min()))

    def _rebase(self, index: int, claim: float) -> None:
        self.base_claim.values[index] = claim
        self.base_steps.values[index] = self.env_steps.values[index]

    def _claims(self, open_steps: float) -> NDArray[np.float64]:
        """float64 [L], steps for the weight; open_steps: what an open lease counts for."""
        done = self.env_steps.values - self.base_steps.values + self.open_leases.values * open_steps
        claims: NDArray[np.float64] = self.base_claim.values + done / self.step_weight.values
        return claims

    def open(self, index: int | None) -> None:
        """A lease was granted to the player at `index`, or (None) for rating."""
        if index is None:
            self.rating_leases += 1
        else:
            self.open_leases.values[index] += 1

    def close(self, index: int | None, env_steps: int) -> None:
        """A lease ended after so many steps; 0 for one that was lost."""
        if index is None:
            self.rating_leases -= 1
            self.rating_env_steps += env_steps
        else:
            self.open_leases.values[index] -= 1
            self.env_steps.values[index] += env_steps
        if env_steps > 0:
            self.last_env_steps = env_steps

    def next_player(self) -> int | None:
        """Index of the player with the fewest steps for its weight, the first of equals; None when all are blocked."""
        claim = np.where(self.num_blocking.values > 0, np.inf, self._claims(float(self.last_env_steps)))
        if not len(claim) or not np.isfinite(claim.min()):
            return None
        return int(claim.argmin())

    def rating_is_behind(self, step_fraction: float) -> bool:
        """True if rating matches have had less than this fraction of all env steps."""
        rating = self.rating_env_steps + self.rating_leases * self.last_env_steps
        training = int(self.env_steps.values.sum()) + int(self.open_leases.values.sum()) * self.last_env_steps
        return rating < step_fraction * (rating + training)
