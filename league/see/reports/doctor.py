"""`league doctor`: what is probably wrong with a run, from its journal and the cadence in its configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from league.config.loading import plain_config
from league.config.run_config import RuntimeConfig
from league.core.state.events import EVENTS, Event
from league.core.state.state import LeagueState
from league.json_report import JsonReport
from league.see.reports.doctor_checks import CHECKS
from league.see.reports.doctor_history import RunFinding, history_of
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
    findings: tuple[RunFinding, ...]
    counts: str

    def text(self) -> str:
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
        events = (cast(Event, event) for _, event in journal.replay())
        number = _snapshots_per_budget(folder)
        return examine(state, events, run=str(path), snapshots_per_budget=number, seat_names=folder.seat_names)


def examine(
    state: LeagueState,
    events: Iterator[Event],
    *,
    run: str,
    snapshots_per_budget: int = 0,
    seat_names: tuple[str, ...] = (),
) -> DoctorReport:
    """Examine a league.

    Args:
      events: all of them, in order. snapshots_per_budget: of the run's configuration. seat_names: of its game.
    """
    history = history_of(
        events,
        leases=state.next_lease_id - 1,
        teams=state.teams,
        snapshots_per_budget=snapshots_per_budget,
        seat_names=seat_names,
    )
    findings = tuple(finding for check in CHECKS for finding in check(state, history))
    return DoctorReport(run, state.totals.games, len(CHECKS), findings, state.counts)


def _snapshots_per_budget(folder: RunFolder) -> int:
    """As in the configuration of a run, which loads none of the code that it names; 0 where that has no such number."""
    plain, _ = plain_config(folder.read_config(), source=str(folder.config_path))
    runtime = plain.get("runtime")
    number = runtime.get("snapshots_per_budget") if isinstance(runtime, dict) else None
    return number if isinstance(number, int) else RuntimeConfig.snapshots_per_budget
