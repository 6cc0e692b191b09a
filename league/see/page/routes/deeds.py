"""Deeds on whole runs and pools from the page: a run is fitted and started, and each other one carried out."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from fastapi import APIRouter, HTTPException, Request, Response

from league.config.commented import chosen_in
from league.see.page.guard import Keys
from league.see.page.runs.deeds import DeedsBegun
from league.see.page.runs.library import Library

T = TypeVar("T", bound=msgspec.Struct)


class WantedDeed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of a deed, by name."""

    arguments: dict[str, str] = {}


class WantedFit(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run to be fitted. seconds: its budget; None for that of the configuration. settings: KEY=VALUE, one a line."""

    source: str
    seconds: float | None = None
    settings: str = ""


class WantedStart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A run to be started. name: of its folder. text: its configuration."""

    name: str
    text: str


class FittedChoice(msgspec.Struct, frozen=True):
    """A value that was chosen for the game and the budget, and the reason."""

    key: str
    value: object
    reason: str


def add_routes(router: APIRouter, library: Library, keys: Keys) -> None:
    begun = DeedsBegun(library, may_name_code=not keys.is_secure)

    @router.get("/deeds")
    def listed() -> Response:
        return _json({"deeds": begun.listed()})

    @router.post("/folders/{run}/deeds/{name}/plan")
    async def plan(run: str, name: str, request: Request) -> Response:
        wanted = _decoded(await request.body(), WantedDeed)
        words = await asyncio.to_thread(lambda: begun.words_of(run, name, wanted.arguments))
        return _json({"words": words})

    @router.post("/folders/{run}/deeds/{name}")
    async def carry_out(run: str, name: str, request: Request) -> Response:
        wanted = _decoded(await request.body(), WantedDeed)
        return _json(await asyncio.to_thread(lambda: begun.begin(run, name, wanted.arguments)))

    @router.post("/start/fit")
    async def fit(request: Request) -> Response:
        wanted = _decoded(await request.body(), WantedFit)
        text = await asyncio.to_thread(
            lambda: begun.fitted_text(wanted.source, seconds=wanted.seconds, settings=wanted.settings)
        )
        choices = [FittedChoice(key, value, reason) for key, (value, reason) in chosen_in(text).items()]
        return _json({"text": text, "choices": choices})

    @router.post("/start")
    async def start(request: Request) -> Response:
        wanted = _decoded(await request.body(), WantedStart)
        return _json(await asyncio.to_thread(lambda: begun.start(wanted.name, wanted.text)))


def _decoded(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise HTTPException(422, str(error)) from error


def _json(answer: object) -> Response:
    return Response(msgspec.json.encode(answer), media_type="application/json")
