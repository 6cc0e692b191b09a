"""`league doctor`: what is probably wrong with a run, from its journal alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from league.core.state.events import EVENTS, Event
from league.core.state.state import LeagueState
from league.json_report import JsonReport
from league.reports.doctor_checks import CHECKS
from league.reports.doctor_history import Finding, history_of
from league.store.journal_reader import JournalReader
from league.store.journaled_league import read_state
from league.store.run_folder import RunFolder
from league.wording import counted


@dataclass(frozen=True)
class DoctorReport(JsonReport):
    """Findings about a run. games: games examined; counts: the scoring rule; checks: number of them."""

    run: str
    games: int
    checks: int
    findings: tuple[Finding, ...]
    counts: str

    def text(self) -> str:
        """For people."""
        if not self.findings:
            return (
                f"{self.run}: nothing found by {self.checks} checks over {counted(self.games, 'game')} ({self.counts})"
            )
        number = counted(len(self.findings), "finding")
        lines = [f"{self.run}: {number} over {counted(self.games, 'game')} ({self.counts})"]
        for finding in self.findings:
            lines += [
                f"* {finding.check}: {finding.what}",
                f"    seen:   {finding.evidence}",
                f"    change: {finding.change}",
            ]
        return "\n".join(lines)


def examine_run(path: Path) -> DoctorReport:
    """Examine a run, also a live one.

    Raises:
      MissingRun, JournalError.
    """
    folder = RunFolder.open(path)
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        state = read_state(journal)
        return examine(state, (cast(Event, event) for _, event in journal.replay()), run=str(path))


def examine(state: LeagueState, events: Iterator[Event], *, run: str) -> DoctorReport:
    """Examine a league. events: all of them, in order."""
    history = history_of(events, leases=state.next_lease_id - 1, teams=state.teams)
    findings = tuple(finding for check in CHECKS for finding in check(state, history))
    return DoctorReport(run, state.totals.games, len(CHECKS), findings, state.counts)
