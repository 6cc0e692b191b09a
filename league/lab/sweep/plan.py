"""The plan of a sweep: budgets, rungs and the measure of its trials."""

from __future__ import annotations

import msgspec

from league.errors import LeagueError
from league.lab.trials.objective import TrialObjective

MIN_CORE_SECONDS = 1.0


class SweepPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Kept in the folder of a sweep, which is only continued as it began.

    Fields:
      source: configuration file or the id of an env, absolute where it is a file. overrides: over it.
      space: text of the file. core_seconds: budget of each trial.
      rungs: how often a trial is measured; reduction: of so many trials one passes a rung, and trains so many times as
        long up to the next.
      seed: of the draws.
    """

    source: str
    space: str
    core_seconds: float
    overrides: tuple[str, ...] = ()
    objective: TrialObjective = TrialObjective()
    rungs: int = 1
    reduction: int = 3
    seed: int = 0

    @property
    def steps(self) -> tuple[int, ...]:
        """Training up to each rung, in units of the first."""
        return tuple(self.reduction**rung for rung in range(self.rungs))

    def core_seconds_at(self, rung: int) -> float:
        """Training up to a rung, counted from 0."""
        return self.core_seconds * self.steps[rung] / self.steps[-1]

    def require_valid(self) -> None:
        """Refuse a plan that cannot be carried out.

        Raises:
          LeagueError: one sentence.
        """
        if self.rungs < 1 or self.reduction < 2:
            raise LeagueError("give --rungs of at least 1 and a --reduction of at least 2.")
        first = self.core_seconds_at(0)
        if first < MIN_CORE_SECONDS:
            raise LeagueError(
                f"the first rung would be {first:.2g} core-seconds ({self.core_seconds:g} / {self.steps[-1]}): give "
                "more --core-seconds or fewer --rungs."
            )
