"""Several runs of the served folder beside each other."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from league.see.page.guard import Keys
from league.see.page.runs.library import Library
from league.see.page.runs.metric_history import MetricHistory
from league.see.reports.figures.comparison import Comparison, comparison
from league.see.reports.figures.curves import Series, run_curves

MAX_RUNS = 6
"""Runs compared at once: the page keeps eight open."""


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    """See `league.see.page.page_parts.ROUTES`."""

    @router.get("/compare")
    def compare(request: Request) -> Response:
        names = list(dict.fromkeys(request.query_params.getlist("run")))
        if not 1 <= len(names) <= MAX_RUNS:
            raise HTTPException(422, f"give 1 to {MAX_RUNS} runs to compare, not {len(names)}")
        return Response(msgspec.json.encode(compared(library, names)), media_type="application/json")


def compared(library: Library, names: list[str]) -> Comparison:
    """The comparison of runs by their names.

    Raises:
      UnknownRun: there is none of a name. JournalError, StorageError: one cannot be read.
    """
    found = []
    for name in names:
        run = library.run(name)
        run.metrics.extend()
        with run.lock:
            found.append((name, run.config, run_curves(series_in(run.metrics))))
    return comparison(found)


def series_in(metrics: MetricHistory) -> Series:
    """Look-up of the metrics of a run that is open."""

    def look_up(name: str) -> tuple[Sequence[float], Sequence[float]]:
        found = metrics.series(name)
        return found.steps, found.values

    return look_up
