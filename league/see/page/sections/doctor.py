"""The findings of `league doctor`, made beside the requests, as they read the whole journal."""

from __future__ import annotations

from pathlib import Path

import msgspec

from league.see.page.page_parts import NoQuery
from league.see.page.runs.command_output import command_output
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.doctor import DoctorReport
from league.see.reports.doctor_history import RunFinding

EVERY_S = 30.0


class Doctor(msgspec.Struct, frozen=True):
    """The findings about a run.

    Fields:
      is_ready: False before the first examination has ended. findings, checks, games, counts: see `DoctorReport`.
      as_of: event up to which it saw. error: why there is none, else empty.
    """

    is_ready: bool
    findings: tuple[RunFinding, ...]
    checks: int
    games: int
    counts: str
    as_of: int
    seq: int
    error: str


def read(run: OpenedRun, query: NoQuery) -> Doctor:
    """The newest findings."""
    found = run.background("doctor", lambda: run.path, _examine, every_s=EVERY_S)
    report = found.value or DoctorReport("", 0, 0, (), "")
    return Doctor(
        is_ready=found.value is not None,
        findings=report.findings,
        checks=report.checks,
        games=report.games,
        counts=report.counts,
        as_of=found.seq,
        seq=run.seq,
        error=found.error,
    )


def _examine(path: Path) -> DoctorReport:
    return msgspec.json.decode(command_output(["doctor", str(path), "--json"]), type=DoctorReport)
