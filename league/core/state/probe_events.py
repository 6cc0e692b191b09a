"""Events of probes; `league.core.state.events` has all kinds of events."""

from __future__ import annotations

from dataclasses import dataclass

from league.core.state.records import ProbeOutcome, ProbeTask


@dataclass(frozen=True)
class ProbeBegun:
    """A probe is open until it ends; after a crash it is run again."""

    task: ProbeTask


@dataclass(frozen=True)
class ProbeSpent:
    """The processor time that a long attempt at the open probe has used so far.

    Fields:
      number: of the probe. core_seconds: of the attempt, its process included.
      is_lost: whether the attempt was interrupted. Its time then counts, and the probe is run again.
    """

    number: int
    core_seconds: float
    is_lost: bool


@dataclass(frozen=True)
class ProbeEnded:
    """The open probe is over."""

    outcome: ProbeOutcome
