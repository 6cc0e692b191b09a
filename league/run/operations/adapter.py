"""Lets a run take the remedies of `league.core.adapting`, each as a journaled change with a line on the console."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from league.core.adapting import LOOK_EVERY, Facts, next_remedy
from league.core.state.commands import Command, Refused, RequestReset
from league.core.state.state import LeagueState
from league.hosts.protocol import LearnerProgress
from league.run.operations.operator import Operator
from league.run.operations.plans import OperationRefused

BY = "adapt"
"""The author of these changes, for the journal."""


class Adapter:
    """Looks for a remedy every few leases.

    Args:
      operator: makes the changes. demand: has the league decide on commands, on all or on none; raises `Refused`.
      say: tells the user one sentence.
      leases: finished so far; where a run continues, it looks at the same numbers of leases as without a stop.
    """

    def __init__(
        self,
        operator: Operator,
        *,
        demand: Callable[[Sequence[Command]], object],
        say: Callable[[str], object],
        leases: int,
    ) -> None:
        self._operator = operator
        self._demand = demand
        self._say = say
        self._looked_at = leases
        self._highest: dict[str, float] = {}

    def look(
        self, state: LeagueState, progress: Mapping[str, LearnerProgress], *, budget_fraction: float | None
    ) -> None:
        """Take the next remedy that is due, if it is time to look.

        Args:
          progress: newest report of each learner; empty where a run must repeat exactly and only its state decides.
          budget_fraction: spent, in [0, 1]; None where the run has no budget.
        """
        if self._operator.has_changed:  # config.yaml follows one change at a time
            return
        if budget_fraction is not None and budget_fraction >= 1.0:  # nothing is trained any more
            return
        leases = state.totals.leases_finished
        due = leases // LOOK_EVERY > self._looked_at // LOOK_EVERY
        self._looked_at = leases
        if not due or not self._operator.config.adapt or state.training_paused:
            return
        runtime, learner = self._operator.config.runtime, self._operator.config.learner
        facts = Facts(
            budget_fraction,
            runtime.snapshots_per_budget > 0,
            self._entropies(progress),
            runtime.expected_decisions,
            (learner.entropy_cost, learner.entropy_cost_end),
        )
        remedy = next_remedy(state, facts)
        if remedy is None:
            return
        try:
            words = self._operator.change(
                remedy.pairs, by=BY, reason=remedy.reason, remedy=remedy.name, demand=self._demand
            )
            if remedy.resets:
                self._demand([RequestReset(remedy.resets)])
        except (OperationRefused, Refused) as error:
            self._say(f"A remedy was refused ({remedy.name}): {error}")
            return
        self._say(f"{remedy.reason[0].upper()}{remedy.reason[1:]}: the league {words} (adapt: false leaves it).")

    def _entropies(self, progress: Mapping[str, LearnerProgress]) -> dict[str, tuple[float, float, float]]:
        """Of each player, the entropy of its newest update, the highest seen and the entropy cost."""
        found = {}
        for name, report in progress.items():
            if report.update is not None and report.update.steps:
                entropy = report.update.entropy
                self._highest[name] = max(self._highest.get(name, 0.0), entropy)
                found[name] = (entropy, self._highest[name], report.update.entropy_cost)
        return found
