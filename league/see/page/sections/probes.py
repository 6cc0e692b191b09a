"""Probes: each yardstick over the run, and what each probe has cost."""

from __future__ import annotations

import msgspec

from league.run.monitor import names
from league.see.page.page_parts import NoQuery
from league.see.page.runs.expected_probe import expected_probe
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.extent import spread
from league.see.reports.figures.yardsticks import MAX_POINTS, ProbeCurve, probe_curves
from league.see.reports.probes import ProbesReport, probes_of

MAX_READINGS = 60
"""Newest readings that the table lists."""


class ProbeCost(msgspec.Struct, frozen=True):
    """Cost of one kind of probe. env_steps: when each was made; core_seconds: of all of them up to there."""

    probe: str
    env_steps: tuple[int, ...]
    core_seconds: tuple[float, ...]


class ProbeReadingRow(msgspec.Struct, frozen=True):
    """One reading. number: of the probe. core_seconds: of the whole probe, which may have several readings."""

    number: int
    probe: str
    yardstick: str
    snapshot: str
    env_steps: int
    value: float
    low: float
    high: float
    games: int
    core_seconds: float
    note: str


class ProbesSection(msgspec.Struct, frozen=True):
    """The probes of a run.

    Fields:
      curves: readings over the run. costs: by probe. rows: the newest readings first.
      ended, core_seconds, open, unfit, problems, remarks: see `ProbesReport`.
      run_core_seconds: of the whole run so far, None where it was not reported.
      expected: where nothing was measured yet, when the first probe comes.
    """

    curves: tuple[ProbeCurve, ...]
    costs: tuple[ProbeCost, ...]
    rows: tuple[ProbeReadingRow, ...]
    ended: int
    core_seconds: float
    run_core_seconds: float | None
    open: str
    unfit: dict[str, str]
    problems: dict[str, str]
    remarks: dict[str, str]
    expected: str


def read(run: OpenedRun, query: NoQuery) -> ProbesSection:
    """The probes of a run."""
    report = probes_of(run.state, run=str(run.path))
    last = run.metrics.last
    return ProbesSection(
        curves=probe_curves(run.state),
        costs=costs_of(report),
        rows=_rows(report),
        ended=report.ended,
        core_seconds=report.core_seconds,
        run_core_seconds=None if last is None else last.values.get(names.CORE_S.name),
        open=report.open,
        unfit=report.unfit,
        problems=report.problems,
        remarks=report.remarks,
        expected=expected_probe(run),
    )


def costs_of(report: ProbesReport) -> tuple[ProbeCost, ...]:
    """The cost of the probes of each kind after each of them; a probe with several readings counts once."""
    probes: dict[str, dict[int, tuple[int, float]]] = {}
    for series in report.series:
        known = probes.setdefault(series.probe, {})
        known.update({point.number: (point.env_steps, point.core_seconds) for point in series.points})
    costs = []
    for probe, known in probes.items():
        total, steps, sums = 0.0, [], []
        for _, (env_steps, core_seconds) in sorted(known.items()):
            total += core_seconds
            steps.append(env_steps)
            sums.append(total)
        chosen = spread(len(steps), MAX_POINTS)
        costs.append(ProbeCost(probe, tuple(steps[one] for one in chosen), tuple(sums[one] for one in chosen)))
    return tuple(costs)


def _rows(report: ProbesReport) -> tuple[ProbeReadingRow, ...]:
    rows = [
        ProbeReadingRow(
            point.number,
            series.probe,
            series.yardstick,
            point.snapshot,
            point.env_steps,
            point.value,
            point.low,
            point.high,
            point.games,
            point.core_seconds,
            point.note,
        )
        for series in report.series
        for point in series.points[-MAX_READINGS:]
    ]
    return tuple(sorted(rows, key=lambda row: -row.number)[:MAX_READINGS])
