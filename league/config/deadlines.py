"""Every deadline between daemon, hosts and learners in one table, and their required order.

What waits for something must wait longer than that takes to be noticed as lost, else a healthy host is ended for a hung
one: a lease waits for pushes, a push for room at its learner, and a learner that hangs is noticed before both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

START_S = 120.0
"""Start of a host: its process, the import of torch, one env."""

PROGRESS_EVERY_S = 1.0
"""Time between two questions to a learner host how far it is."""

DIRECTIVE_MARGIN_S = 30.0
"""Time that a directive may take beyond the start of workers and one answer of theirs: building, saving, sending."""

MAX_PUSH_S = 60.0


@dataclass(frozen=True)
class Deadlines:
    """Seconds. The defaults are those of the default configuration.

    Fields:
      lease_s: an actor host's answer to a lease; time in which the lease's learner gives no sign does not count.
      push_s: an actor host's wait for the answer of a learner host to one chunk, or for weights.
      credit_s: a learner host's wait for room for a chunk.
      progress_s: a learner host's answer how far it is; it has a thread of its own, so that nothing stands before it.
      directive_s: a learner host's answer to a directive, from when the directive is its only one.
    """

    lease_s: float = 120.0
    push_s: float = 60.0
    credit_s: float = 30.0
    progress_s: float = 15.0
    directive_s: float = 270.0

    @property
    def noticed_s(self) -> float:
        """Longest time until a learner host that hangs counts as lost."""
        return PROGRESS_EVERY_S + self.progress_s

    def problems(self) -> Iterator[str]:
        """Deadlines in the wrong order, with the arithmetic; sentences for the section `runtime`."""
        if self.push_s <= self.noticed_s:
            least = 2.0 * self.noticed_s
            yield (
                f"lease_deadline_s: half of {self.lease_s:g} s is the deadline of a push, and only after "
                f"{PROGRESS_EVERY_S:g} + {self.progress_s:g} s is a learner noticed that hangs; use more than "
                f"{least:g} s, or lower runtime.progress_deadline_s"
            )


def deadlines_of(
    *, lease_deadline_s: float, progress_deadline_s: float, start_timeout_s: float, stage_timeout_s: float
) -> Deadlines:
    """The table that a configuration asks for, from `runtime.lease_deadline_s` to `learner.pipeline.stage_timeout_s`.

    A push has half of a lease's time and the wait for room half of that, so that each ends before what waits for it.
    """
    push_s = min(MAX_PUSH_S, lease_deadline_s / 2.0)
    return Deadlines(
        lease_s=lease_deadline_s,
        push_s=push_s,
        credit_s=push_s / 2.0,
        progress_s=progress_deadline_s,
        directive_s=start_timeout_s + stage_timeout_s + DIRECTIVE_MARGIN_S,
    )
