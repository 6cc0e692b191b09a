"""Sweeps on the page: what `league sweep-report` says, read again beside the requests as the sweep proceeds."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
from fastapi import APIRouter, Response

from league.see.page.guard import Keys
from league.see.page.runs.command_output import command_output
from league.see.page.runs.library import SWEEP_FILE, Library

EVERY_S = 5.0


class SweepPicture(msgspec.Struct, frozen=True):
    """A sweep. report: the fields of `SweepReport`, None before it is read. error: why there is none, else empty."""

    name: str
    path: str
    report: msgspec.Raw | None
    error: str


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    del keys
    reading = threading.Lock()

    @router.get("/sweeps/{name}")
    def sweep(name: str) -> Response:
        path = library.sweep(name)
        with reading:
            found = library.sweep_reports.get(name, _mark_of(path), lambda: path, _report, EVERY_S)
        report = msgspec.Raw(found.value) if isinstance(found.value, bytes) else None
        picture = SweepPicture(name, str(path), report, found.error)
        return Response(msgspec.json.encode(picture), media_type="application/json")


def _mark_of(path: Path) -> int:
    """A number that is another one once the sweep has gone on."""
    return (path / SWEEP_FILE).stat().st_mtime_ns


def _report(path: object) -> bytes:
    return command_output(["sweep-report", str(path), "--json"])
