"""Probes: each yardstick over the run, and what each probe has cost."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from league.run.monitor import names
from league.see.page.page_parts import NoQuery
from league.see.page.runs.expected_probe import expected_probe
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.extent import spread
from league.see.reports.figures.yardsticks import MAX_POINTS, ProbeCurve, probe_curves
from league.see.reports.probes import ProbesReport, probes_of

MAX_READINGS = 60
"""Newest readings of a yardstick that are sent."""


class ProbeCost(msgspec.Struct, frozen=True):
    """Cost of one kind of probe. env_steps: when each was made; core_seconds: of all of them up to there."""

    probe: str
    env_steps: tuple[int, ...]
    core_seconds: tuple[float, ...]


class ProbesSection(msgspec.Struct, frozen=True):
    """The probes of a run.

    Fields:
      report: with the newest readings of every yardstick. curves: readings over the run. costs: by probe.
      run_core_seconds: of the whole run so far, None where it was not reported.
    """

    report: ProbesReport
    curves: tuple[ProbeCurve, ...]
    costs: tuple[ProbeCost, ...]
    run_core_seconds: float | None


def read(run: OpenedRun, query: NoQuery) -> ProbesSection:
    """The probes of a run."""
    report = probes_of(run.state, run=str(run.path))
    last = run.metrics.last
    newest = tuple(replace(series, points=series.points[-MAX_READINGS:]) for series in report.series)
    return ProbesSection(
        report=replace(report, series=newest, expected=expected_probe(run)),
        curves=probe_curves(run.state),
        costs=costs_of(report),
        run_core_seconds=None if last is None else last.values.get(names.CORE_S.name),
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
