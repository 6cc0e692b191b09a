"""Operations from the page: what one would do, in words, and carrying it out through the run's control door."""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from league.config.loading import parse_config
from league.core.state.events import Event
from league.errors import LeagueError
from league.run.control.client import ControlRefused, operate
from league.run.control.door_file import NoDoor, read_door_file
from league.run.operations.catalogue import OPERATIONS, plan_of
from league.run.operations.plans import PlanInputs
from league.see.page.guard import Keys
from league.see.page.runs.library import Library
from league.see.page.runs.opened_run import OpenedRun
from league.store.known_runs import this_user

MAX_WORDS = 500


class Wanted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An operation's arguments, by name, and the reason for the journal."""

    arguments: dict[str, object] = {}
    reason: str = ""


class Intended(msgspec.Struct, frozen=True):
    """The effect that an operation would have. words: one sentence without a full stop; seq: the last event seen."""

    words: str
    is_undoable: bool
    seq: int


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:

    @router.post("/runs/{run}/operations/{name}/plan")
    async def plan(run: str, name: str, request: Request) -> Response:
        wanted = _wanted(name, await request.body())
        return _json(await asyncio.to_thread(lambda: intended(library.run(run), name, wanted)))

    @router.post("/runs/{run}/operations/{name}")
    async def carry_out(run: str, name: str, request: Request) -> Response:
        wanted = _wanted(name, await request.body())
        try:
            done = await asyncio.to_thread(
                lambda: operate(library.run(run).path, name, wanted.arguments, reason=wanted.reason)
            )
        except (ControlRefused, NoDoor) as error:
            raise HTTPException(409, str(error)) from error
        return _json(done)


def intended(run: OpenedRun, name: str, wanted: Wanted) -> Intended:
    """The effect of an operation on a live run; nothing is done.

    Raises:
      HTTPException: the run is not live, or the operation does not fit.
    """
    with run.lock:
        run.refresh()
        try:
            read_door_file(run.folder)  # of this user's own daemon: its configuration may be read as it reads it
            plan = plan_of(name, wanted.arguments, _plan_inputs(run, wanted.reason))
        except LeagueError as error:
            raise HTTPException(409, str(error)) from error
        return Intended(plan.words, OPERATIONS[name].is_undoable and plan.is_undoable, run.seq)


def _plan_inputs(run: OpenedRun, reason: str) -> PlanInputs:
    def event_of(number: int) -> Event | None:
        if not 1 <= number <= run.seq:
            return None
        with run.journal() as journal:
            return cast(Event, next(journal.replay(from_seq=number, to_seq=number))[1])

    text = run.state.config_text or run.folder.read_config()
    workers = run.account.status.workers
    actors, learners = (tuple(w.name for w in workers if w.kind == kind) for kind in ("actor_host", "learner_host"))
    config = parse_config(text, source="config.yaml")
    return PlanInputs(run.state, config, this_user(), reason, event_of, actors, learners)


def _wanted(name: str, body: bytes) -> Wanted:
    if name not in OPERATIONS:
        raise HTTPException(404, f"there is no operation {name!r}")
    try:
        wanted = msgspec.json.decode(body, type=Wanted)
    except msgspec.DecodeError as error:
        raise HTTPException(422, str(error)) from error
    if len(wanted.reason) > MAX_WORDS:
        raise HTTPException(422, f"a reason has at most {MAX_WORDS} characters")
    return wanted


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
