"""The report on runs from Python: records, and in a notebook the plots of `league report --html`."""

from __future__ import annotations

import html
import time
from pathlib import Path

import msgspec

from league.see.reports.figures.figures_page import Report, read_report
from league.see.reports.figures.report_html import report_html

HEIGHT_PX = 640
"""Of the frame in a notebook; its content scrolls."""


class ShownReport(Report, frozen=True):
    """A report that a notebook shows as plots."""

    def __repr__(self) -> str:
        return f"<report on {', '.join(run.name for run in self.runs)}>"

    def _repr_html_(self) -> str:
        """The whole report in a frame of its own, which reaches neither the notebook nor a network."""
        page = html.escape(report_html(self), quote=True)
        return (
            f'<iframe sandbox="allow-scripts" title="League report" srcdoc="{page}" '
            f'style="width:100%;height:{HEIGHT_PX}px;border:0"></iframe>'
        )


def report(*runs: str | Path) -> ShownReport:
    """`league report` from Python, as `league.report`: the figures of runs, also of live ones, as records.

    Raises:
      LeagueError: a run cannot be read.
    """
    return ShownReport(**msgspec.structs.asdict(read_report([Path(run) for run in runs], now=time.time())))
