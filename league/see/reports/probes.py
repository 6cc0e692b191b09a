"""`league probes`: what the probes of a run have measured, and at what cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from league.config.loading import parse_config
from league.core.metagame.probe_series import Point, Series, series_of
from league.core.state.state import LeagueState
from league.json_report import JsonReport
from league.judge.probes.first_probe import first_probe_text
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from league.text_table import TextTable
from league.wording import counted

SHOWN = 12
"""Newest readings of a yardstick that are shown to people."""


@dataclass(frozen=True)
class ProbesReport(JsonReport):
    """Probes of a run.

    Fields:
      series: see `league.core.metagame.probe_series`, of every yardstick.
      ended: how many; core_seconds: of all of them, the start of their processes included.
      open: the probe that is open, with its snapshot and what it is known to have used; empty for none.
      unfit: probe -> why it cannot measure this league. problems: newest failure of each probe that failed last.
      remarks: probe -> what it left out last, and why.
      expected: when the first probe comes; empty once there was one.
    """

    must_be_finite: ClassVar[bool] = True

    run: str
    series: tuple[Series, ...]
    ended: int
    core_seconds: float
    open: str
    unfit: dict[str, str]
    problems: dict[str, str]
    remarks: dict[str, str]
    expected: str = ""

    def text(self) -> str:
        if not self.ended and not self.open:
            return f"{self.run}: nothing was probed yet. {self.expected}"
        lines = [f"{self.run}: {self.ended} probes in {self.core_seconds:.1f} core-seconds"]
        for one in self.series:
            better = "less is better" if one.scale == "loss" else "more is better"
            lines.append(f"{one.probe}: {one.yardstick} ({one.scale}, {better})")
            heads = ("snapshot", one.yardstick, "95 % interval", "games", "cost", "")
            table = TextTable(heads, [_point_cells(point) for point in one.points[-SHOWN:]], left=(0, 2, 5))
            lines += [f"  {line}" for line in table.lines()]
        lines += [f"open: {self.open}"] if self.open else []
        lines += [f"{probe} does not fit: {reason}" for probe, reason in self.unfit.items()]
        lines += [f"{probe} failed: {reason}" for probe, reason in self.problems.items() if probe not in self.unfit]
        lines += [f"{probe} left out: {remark}" for probe, remark in self.remarks.items()]
        return "\n".join(lines)


def _so_far(state: LeagueState) -> str:
    used = state.probes.open_core_seconds
    return f", {used:.1f} core-seconds so far" if used else ""


def _point_cells(point: Point) -> tuple[str, ...]:
    interval = f"[{point.low:.3f}, {point.high:.3f}]" if point.games else "exact"
    games = counted(point.games, "game") if point.games else ""
    return point.snapshot, f"{point.value:.3f}", interval, games, f"{point.core_seconds:.2f} s", point.note


def read_probes(path: Path) -> ProbesReport:
    """The probes of a run, also of a live one.

    Raises:
      MissingRun, JournalError.
    """
    folder = RunFolder.open(path)
    found = probes_of(state_of_run(folder), run=str(path))
    if found.ended or found.open:
        return found
    account = folder.account()
    config = parse_config(folder.read_config(), source=str(path)).probes
    return replace(found, expected=first_probe_text(config, has_ended=account.began and not account.live))


def probes_of(state: LeagueState, *, run: str) -> ProbesReport:
    """The probes of a league."""
    probes = state.probes
    newest = {result.task.probe: (result.problem, result.remark) for result in probes.results}
    return ProbesReport(
        run=run,
        series=tuple(series_of(state).values()),
        ended=probes.begun - (probes.open is not None),
        core_seconds=probes.core_seconds,
        open="" if probes.open is None else f"{probes.open.probe} of {probes.open.snapshot}{_so_far(state)}",
        unfit=dict(probes.unfit),
        problems={probe: problem for probe, (problem, _) in newest.items() if problem},
        remarks={probe: remark for probe, (_, remark) in newest.items() if remark},
    )
