"""The application of the page: its files, its sections as JSON, and the routes of the registry, behind the guard."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

import msgspec
from fastapi import APIRouter, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as RoutingError
from starlette.middleware.trustedhost import TrustedHostMiddleware

from league.envs.plugins import load
from league.errors import LeagueError
from league.see.page.guard import API, App, Guard, Keys
from league.see.page.page_parts import ROUTES, SECTIONS
from league.see.page.runs.library import Library, UnknownRun
from league.see.page.runs.opened_run import OpenedRun


@dataclass(frozen=True)
class Section:
    """A section's module.

    Fields:
      query: record of its query parameters, all of which have defaults.
      read: the record that it shows, of a run and a query; called under the lock of the run.
    """

    query: type[msgspec.Struct]
    read: Callable[[OpenedRun, msgspec.Struct], object]


def make_page(library: Library, keys: Keys, *, hosts: tuple[str, ...]) -> App:
    """The application, as uvicorn serves it. hosts: names by which it may be called."""
    page = FastAPI(title="league", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    page.exception_handler(RoutingError)(_refused)
    page.exception_handler(LeagueError)(_told)
    _add_assets(page, read_assets())
    router = APIRouter()
    _add_sections(router, library)
    for module in ROUTES.values():
        load(f"{module}:add_routes")(router, library, keys)
    page.include_router(router, prefix=API)
    return TrustedHostMiddleware(Guard(page, keys=keys), allowed_hosts=list(hosts), www_redirect=False)


def _add_sections(router: APIRouter, library: Library) -> None:
    readers = {name: load(f"{module}:read") for name, module in SECTIONS.items()}
    sections = {name: Section(get_type_hints(read)["query"], read) for name, read in readers.items()}

    @router.get("/runs/{run}/sections/{name}")
    def section(run: str, name: str, request: Request) -> Response:
        found = sections.get(name)
        if found is None:
            raise HTTPException(404, f"there is no section {name!r}")
        try:
            query = msgspec.convert(dict(request.query_params), found.query, strict=False)
        except msgspec.ValidationError as error:
            raise HTTPException(422, f"{name}: {error}") from error
        opened = library.run(run)
        with opened.lock:
            opened.refresh()
            view = found.read(opened, query)
        return Response(msgspec.json.encode(view), media_type="application/json")


def _add_assets(page: FastAPI, assets: Mapping[str, Asset]) -> None:
    @page.get("/")
    def index(request: Request) -> Response:
        return _sent(assets["index.html"], request)

    @page.get("/assets/{path:path}")
    def asset(path: str, request: Request) -> Response:
        if path not in assets:
            raise HTTPException(404, "the page has no such file")
        return _sent(assets[path], request)


def _sent(asset: Asset, request: Request) -> Response:
    headers = {"etag": asset.etag}
    if request.headers.get("if-none-match") == asset.etag:
        return Response(status_code=304, headers=headers)
    return Response(asset.content, media_type=asset.content_type, headers=headers)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RoutingError)
    return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)


async def _told(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 404 if isinstance(error, UnknownRun) else 422)


FOLDER = Path(__file__).parent / "assets"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Suffix -> content type; other files, such as licences, are not served."""


@dataclass(frozen=True)
class Asset:
    """One file. etag: by which a browser asks whether its copy is still good."""

    content: bytes
    content_type: str
    etag: str


def read_assets() -> Mapping[str, Asset]:
    """Path below `FOLDER` -> file."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES and path.is_file():
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[path.relative_to(FOLDER).as_posix()] = Asset(content, TYPES[path.suffix], etag)
    return found
