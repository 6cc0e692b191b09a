"""The way in, the list of runs and the sections, and the news of a run as server-sent events."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from league.envs.registry import BUILT_IN
from league.run.control.lifecycle import row_of
from league.see.page.guard import CSRF_HEADER, Entrance, Keys
from league.see.page.page_parts import SECTIONS
from league.see.page.runs.library import Library
from league.see.page.runs.opened_run import OpenedRun
from league.see.page.runs.run_rows import ListedRuns
from league.version import __version__

MAX_WATCHING = 32
"""Streams of news at once; each open page is one."""
LOOK_S = 0.5
ALIVE_S = 15.0
"""Seconds after which a stream without news says that it is alive."""
COOKIE_S = 30 * 24 * 3600


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The token behind `#` in the address of the page."""

    token: str


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    watching, rows = asyncio.Semaphore(MAX_WATCHING), ListedRuns()

    @router.post("/session")
    async def enter(request: Request) -> Response:
        try:
            entry = msgspec.json.decode(await request.body(), type=Entry)
        except msgspec.DecodeError as error:
            raise HTTPException(422, str(error)) from error
        entrance = keys.by_token(entry.token)
        if entrance is None:
            raise HTTPException(401, "this is not the token of this page: open the address that was printed last")
        answer = JSONResponse(_session(entrance, library))
        answer.set_cookie(
            keys.cookie_name,
            entrance.session,
            max_age=COOKIE_S,
            httponly=True,
            samesite="strict",
            path="/",
            secure=keys.is_secure,
        )
        return answer

    @router.get("/session")
    def session(request: Request) -> Response:
        return JSONResponse(_session(request.state.entrance, library))

    @router.get("/runs")
    def runs() -> Response:
        rows = [{"id": name, **msgspec.to_builtins(row_of(folder))} for name, folder in library.folders().items()]
        return Response(msgspec.json.encode({"runs": rows}), media_type="application/json")

    @router.get("/run-table")
    def table() -> Response:
        found = {
            "rows": rows.rows(library.folders()),
            "games": [name for name in BUILT_IN if not name.startswith("probe_")],
            "pools": list(library.pools()),
            "sweeps": list(library.sweeps()),
        }
        return Response(msgspec.json.encode(found), media_type="application/json")

    @router.get("/runs/{run}/news")
    async def news(run: str) -> Response:
        opened = await asyncio.to_thread(library.run, run)
        if watching.locked():
            raise HTTPException(503, f"{MAX_WATCHING} pages are open already")
        return StreamingResponse(_stream(opened, watching), media_type="text/event-stream")


def _session(entrance: Entrance, library: Library) -> dict[str, object]:
    return {
        "csrf": entrance.csrf,
        "header": CSRF_HEADER,
        "may_change": entrance.may_change,
        "sections": list(SECTIONS),
        "command": library.command,
        "is_of_one_run": library.is_of_one_run,
        "version": __version__,
    }


async def _stream(run: OpenedRun, watching: asyncio.Semaphore) -> AsyncIterator[bytes]:
    async with watching:
        run.watch()
        try:
            known, said_at = None, time.monotonic()
            while True:
                news = run.news
                if news != known:
                    known, said_at = news, time.monotonic()
                    yield b"event: changed\ndata: " + msgspec.json.encode(news) + b"\n\n"
                elif time.monotonic() - said_at > ALIVE_S:
                    said_at = time.monotonic()
                    yield b": alive\n\n"
                await asyncio.sleep(LOOK_S)
        finally:
            run.unwatch()
