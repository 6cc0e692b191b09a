"""Several runs of the served folder beside each other, and the report on one or several as a file."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from league.see.page.guard import Keys
from league.see.page.runs.command_output import written_by
from league.see.page.runs.library import Library
from league.see.page.runs.metric_history import MetricHistory
from league.see.reports.figures.comparison import Comparison, comparison
from league.see.reports.figures.curves import Series, run_curves

MAX_RUNS = 6
"""Runs compared at once: the page keeps eight open."""
MAX_WRITING = 2
"""Reports that are written at once, each by a process of its own."""


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    writing = threading.Semaphore(MAX_WRITING)

    @router.get("/compare")
    def compare(request: Request) -> Response:
        found = compared(library, named_runs(request))
        return Response(msgspec.json.encode(found), media_type="application/json")

    @router.get("/report")
    def report(request: Request) -> Response:
        names = named_runs(request)
        headers = {"content-disposition": f'attachment; filename="{_file_name(names)}"'}
        with writing:
            content = written_by(["report", *(str(library.folder(name).path) for name in names), "--html"])
        return Response(content, media_type="text/html; charset=utf-8", headers=headers)


def named_runs(request: Request) -> list[str]:
    """The runs that a request names, each once.

    Raises:
      HTTPException: too few, or too many.
    """
    names = list(dict.fromkeys(request.query_params.getlist("run")))
    if not 1 <= len(names) <= MAX_RUNS:
        raise HTTPException(422, f"give 1 to {MAX_RUNS} runs, not {len(names)}")
    return names


def _file_name(names: list[str]) -> str:
    """A name of letters that any file system takes."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', '-'.join(names))[:80]}-report.html"


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
