"""The probe of exact exploitability, for games whose tree is small."""

from __future__ import annotations

from league.core.state.records import ProbeReading
from league.judge.probes.probe import DoesNotFit, Subject
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.small_game import NoExactValue

NASH_CONV = "nash_conv"


class Exact:
    """NashConv of the snapshot, in the rewards of the game; 0 in an equilibrium."""

    least_core_seconds = 0.3
    num_past = 0

    def measure(self, subject: Subject) -> tuple[ProbeReading, ...]:
        """One reading, which is exact."""
        try:
            value = nash_conv(subject.env, members_of(subject.policy))
        except NoExactValue as error:
            raise DoesNotFit(str(error)) from error
        return (ProbeReading(NASH_CONV, value, value, value, scale="loss"),)
