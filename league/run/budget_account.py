"""The account of one command: what its run has spent, and what of the budget and of the command's limits is left."""

from __future__ import annotations

from league.config.run_config import BudgetConfig
from league.run.budget import BUDGET, LIMIT, Limits, Meter, Spent, budget_spent, follows_clock, fraction_spent


class BudgetAccount:
    """Weighs what is spent against the budget and the limits of this command.

    Args:
      meter: of time; started by the owner of the account once every learner is in place.
      limits: when this command stops. begun: what they are measured from.
    """

    def __init__(self, budget: BudgetConfig, meter: Meter, *, limits: Limits, begun: Spent) -> None:
        self.budget = budget
        self.meter = meter
        self.limits, self.begun = limits, begun
        self.spent = meter.read(env_steps=begun.env_steps)

    def read(self, *, env_steps: int) -> None:
        """Take up what is spent by now. env_steps: of the run since its first start."""
        self.spent = self.meter.read(env_steps=env_steps)

    @property
    def fraction(self) -> float:
        """Fraction of the budget spent, in [0, 1], see `fraction_spent`."""
        return fraction_spent(self.budget, self.spent, limits=self.limits)

    @property
    def follows_clock(self) -> bool:
        """True if time drives the schedules, see `follows_clock`."""
        return follows_clock(self.budget, self.limits)

    @property
    def ended(self) -> str | None:
        """BUDGET or LIMIT once that is reached."""
        if budget_spent(self.budget, self.spent, limits=self.limits):
            return BUDGET
        return LIMIT if self.limits.reached(self.spent, begun=self.begun) else None
