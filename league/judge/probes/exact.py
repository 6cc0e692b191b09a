"""The probe of exact exploitability, for games whose tree is small."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from league.core.state.records import ProbeReading
from league.judge.probes.probe import DoesNotFit, Subject
from league.policies.exact.behaviours import members_of
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.small_game import VISIT_S, NoExactValue

NASH_CONV = "nash_conv"


@dataclass(frozen=True)
class ExactOptions:
    """seconds: that a visit of every history may take, or one pass over a phantom game."""

    seconds: float = VISIT_S

    def problems(self) -> Iterator[str]:
        if self.seconds <= 0.0:
            yield f"seconds: {self.seconds} must be above 0"


class Exact:
    """NashConv of the snapshot, in the rewards of the game; 0 in an equilibrium."""

    least_core_seconds = 0.3
    num_past = 0

    def __init__(self, options: ExactOptions) -> None:
        self._options = options

    def measure(self, subject: Subject) -> tuple[ProbeReading, ...]:
        """One reading, which is exact."""
        try:
            value = nash_conv(subject.env, members_of(subject.policy), limit_s=self._options.seconds)
        except NoExactValue as error:
            raise DoesNotFit(str(error)) from error
        return (ProbeReading(NASH_CONV, value, value, value, scale="loss"),)
