"""The findings of a chaos run and its verdict."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from league.json_report import JsonReport
from league.operate.chaos.audit import Audit
from league.operate.chaos.follower import Noted
from league.wording import counted


@dataclass
class Findings:
    """Observations of a run while it is struck.

    Fields:
      finished: every finished lease that the outside reader saw, in order.
      recovery_s: fault -> seconds from each strike to the next finished training lease that was granted after it; of a
        stop, slow or fill from its end.
      clean_s: seconds after each end of a daemon until nothing was left.
      left: what was left ten seconds after such an end, one line each.
      strikes: fault -> number. missed: faults whose target was not there.
      left_early: daemons that ended although nothing had struck, with their last lines.
      restarts: of the daemon, after kills and after faults that it does not survive.
      noticed: damaged copies that were found out. unnoticed: those that were not, one sentence each.
    """

    finished: list[Noted] = field(default_factory=list)
    recovery_s: dict[str, list[float]] = field(default_factory=dict)
    clean_s: list[float] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    strikes: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)
    left_early: list[str] = field(default_factory=list)
    restarts: int = 0
    noticed: int = 0
    unnoticed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Recovery:
    """Seconds of a fault's recoveries."""

    fault: str
    number: int
    median_s: float
    p95_s: float
    longest_s: float


@dataclass(frozen=True)
class ChaosVerdict(JsonReport):
    """The outcome of a chaos run.

    Fields:
      run: its folder. seed: of the plan. seconds: that it took.
      strikes, missed: fault -> number. restarts: of the daemon.
      leases_seen: finished leases that an outside reader saw; leases, games: in the journal at the end.
      lost, doubled, off: of the books, one sentence each, see `league.operate.chaos.audit.Audit`.
      problems: that `league verify` finds. left: remains of ended daemons. left_early: daemons that ended unasked.
      noticed, unnoticed: damaged copies that were found out, and those that were not.
      failure: why it was broken off; empty where it was not.
    """

    run: str
    seed: int
    seconds: float
    strikes: dict[str, int]
    missed: dict[str, int]
    restarts: int
    recoveries: tuple[Recovery, ...]
    leases_seen: int
    leases: int
    games: int
    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    off: tuple[str, ...]
    problems: tuple[str, ...]
    left: tuple[str, ...]
    left_early: tuple[str, ...]
    noticed: int
    unnoticed: tuple[str, ...]
    failure: str = ""

    @property
    def holds(self) -> bool:
        """True if nothing was found."""
        return not any((*self._faults().values(), self.failure))

    def json_extras(self) -> Mapping[str, object]:
        """`ok`: true where nothing is wrong."""
        return {"ok": self.holds}

    def text(self) -> str:
        strikes = ", ".join(f"{number} x {name}" for name, number in sorted(self.strikes.items())) or "none"
        lines = [
            f"{self.run}: {'holds' if self.holds else 'does NOT hold'} (seed {self.seed}, {self.seconds:.0f} s)",
            f"  faults: {strikes}; {counted(self.restarts, 'restart')} of the daemon",
            f"  {counted(self.leases_seen, 'finished lease')} seen from outside, {self.leases:,} with "
            f"{counted(self.games, 'game')} in the journal; "
            f"{counted(self.noticed, 'damaged copy', 'damaged copies')} found out",
        ]
        for row in self.recoveries:
            lines.append(
                f"  {row.fault:<16} recovered in {row.median_s:5.1f} s (median), {row.p95_s:5.1f} s (95 %), "
                f"{row.longest_s:5.1f} s (longest)"
            )
        for what, found in self._faults().items():
            lines.append(f"  {'ok ' if not found else 'BAD'}  {len(found)} {what}")
            lines += [f"         {line}" for line in found]
        return "\n".join([*lines, *([f"  BAD  broken off: {self.failure}"] if self.failure else [])])

    def _faults(self) -> dict[str, tuple[str, ...]]:
        return {
            "acknowledged results lost or changed": self.lost,
            "results counted twice, and other broken rules": self.doubled,
            "totals that are not the sum of the leases": self.off,
            "problems of the journal and the stores": self.problems,
            "things left by ended daemons": self.left,
            "daemons that ended unasked": self.left_early,
            "damaged copies that were not noticed": self.unnoticed,
        }


def verdict_of(
    findings: Findings, found: Audit, problems: list[str], *, run: str, seed: int, seconds: float, failure: str = ""
) -> ChaosVerdict:
    """The verdict on what was seen and what the books say in the end."""
    return ChaosVerdict(
        run=run,
        seed=seed,
        seconds=round(seconds, 1),
        strikes=dict(findings.strikes),
        missed=dict(findings.missed),
        restarts=findings.restarts,
        recoveries=tuple(recovery_of(fault, times) for fault, times in sorted(findings.recovery_s.items())),
        leases_seen=len(findings.finished),
        leases=found.leases,
        games=found.games,
        lost=found.lost,
        doubled=found.doubled,
        off=found.off,
        problems=tuple(problems),
        left=tuple(findings.left),
        left_early=tuple(findings.left_early),
        noticed=findings.noticed,
        unnoticed=tuple(findings.unnoticed),
        failure=failure,
    )


def recovery_of(fault: str, times: list[float]) -> Recovery:
    """The quantiles of a fault's recoveries; the 95 % one is a value that was measured."""
    ordered = sorted(times)
    p95 = ordered[max(-(-95 * len(ordered) // 100) - 1, 0)]
    return Recovery(fault, len(ordered), round(statistics.median(ordered), 2), round(p95, 2), round(ordered[-1], 2))
