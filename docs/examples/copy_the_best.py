"""A PBT selection: a player that lies far behind the best one copies it."""

from dataclasses import dataclass

import numpy as np

from league.core.pbt.pbt_selection import Copy, SelectionTrial


@dataclass(frozen=True)
class CopyTheBest:
    """Looks at the scores alone. The fields are its options.

    Fields:
      gap: smallest difference of the scores at which a player copies.
    """

    gap: float = 0.5

    def __call__(self, trial: SelectionTrial, rng: np.random.Generator) -> Copy | None:
        """The donor, or None to let the player go on as it is; drawn numbers would come from `rng` alone."""
        best = int(trial.score.argmax())
        behind = float(trial.score[best] - trial.score[trial.player])
        if best == trial.player or behind < self.gap:
            return None
        return Copy(best, f"{behind:.2f} behind the best")
