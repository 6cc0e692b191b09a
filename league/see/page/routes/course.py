"""The course of a run for the axes of its plots: moments in four counts, snapshots by time, and events as marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from fastapi import APIRouter, Response

from league.core.state.events import (
    PlayerReset,
    PlayerTransplanted,
    RunStarted,
    RunStopped,
    SettingsChanged,
    SnapshotAdded,
)
from league.core.state.records import INITIAL
from league.see.page.guard import Keys
from league.see.page.runs.event_text import event_text
from league.see.page.runs.journal_fold import NotableEvent
from league.see.page.runs.library import Library
from league.see.page.runs.opened_run import OpenedRun

MAX_MARKS = 200
"""Newest events that are marked."""
MAX_SNAPSHOTS = 2_000
"""Newest snapshots whose times are given."""


class CourseMark(msgspec.Struct, frozen=True):
    """An event worth a mark. time: seconds since 1970. kind: "gate", "reset", "change" or "start"."""

    time: float
    kind: str
    text: str


class RunCourse(msgspec.Struct, frozen=True):
    """The course of a run.

    Fields:
      wall, env_steps, trained_steps, core_seconds: the same moments in four counts, see `Moments`; core_seconds is
        empty where it was never reported.
      gaps: (from, to) in wall time, in which nothing ran. snapshots: id -> wall time at which it came.
      marks: oldest first.
    """

    wall: Sequence[float]
    env_steps: Sequence[float]
    trained_steps: Sequence[float]
    core_seconds: Sequence[float]
    gaps: Sequence[tuple[float, float]]
    snapshots: dict[str, float]
    marks: tuple[CourseMark, ...]


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:

    @router.get("/runs/{run}/course")
    def course(run: str) -> Response:
        opened = library.run(run)
        with opened.lock:
            opened.refresh()
            found = course_of(opened)
        return Response(msgspec.json.encode(found), media_type="application/json")


def course_of(run: OpenedRun) -> RunCourse:
    """The course of a run so far; called under its lock."""
    moments = run.metrics.moments()
    added = [noted for noted in run.notable if isinstance(noted.event, SnapshotAdded)][-MAX_SNAPSHOTS:]
    return RunCourse(
        wall=moments.wall,
        env_steps=moments.env_steps,
        trained_steps=moments.trained_steps,
        core_seconds=moments.core_seconds if any(moments.core_seconds) else (),
        gaps=moments.silences,
        snapshots={noted.event.snapshot.snapshot_id: noted.wall_time for noted in added},  # type: ignore[union-attr]
        marks=tuple(marks_of(run.notable))[-MAX_MARKS:],
    )


def marks_of(events: Sequence[NotableEvent]) -> Iterator[CourseMark]:
    """The events that are worth a mark, in their order."""
    is_running, has_run = False, False
    for noted in events:
        event, kind, text = noted.event, "", ""
        if isinstance(event, RunStarted):
            if has_run:
                kind = "start"
                text = "The run was started again" + (", after it had broken off." if is_running else ".")
            is_running = has_run = True
        elif isinstance(event, RunStopped):
            is_running = False
        elif isinstance(event, PlayerReset | PlayerTransplanted):
            kind = "reset"
        elif isinstance(event, SettingsChanged):
            kind = "change"
        elif isinstance(event, SnapshotAdded) and event.snapshot.reason != INITIAL:
            kind = "gate"
        if kind:
            yield CourseMark(noted.wall_time, kind, text or event_text(event))
