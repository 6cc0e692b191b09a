"""The API of the control door: health, metrics, and the operations on a live league, typed for OpenAPI.

It reads the heartbeat and the newest metrics of the run folder and hands operations to the daemon's queue. It never
touches the league itself, which belongs to the daemon's thread.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Annotated, Protocol

import msgspec
from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, create_model
from starlette.exceptions import HTTPException as RoutingError
from starlette.middleware.trustedhost import TrustedHostMiddleware

from league.errors import LeagueError
from league.http.token_file import Tokens
from league.run.control.exposition import CONTENT_TYPE, exposition
from league.run.operations.catalogue import OPERATIONS, Argument, Operation
from league.run.operations.operator import Done
from league.store.run_folder import RunFolder
from league.version import __version__

ANSWER_S = 30.0
"""Longest wait for the daemon to carry an operation out; it may still do so later."""
SILENT_S = 30.0
"""Age of the heartbeat above which the daemon counts as unhealthy."""
MAX_BODY_BYTES = 64 << 10
MAX_WORDS = 500

_TYPES: Mapping[str, type] = {"text": str, "number": float, "integer": int, "json": object}


class Queue(Protocol):
    """Takes operations for the daemon's thread, see `league.run.operations.operator.Operator`."""

    def submit(self, name: str, arguments: Mapping[str, object], *, by: str, reason: str = "") -> Future[Done]: ...


@dataclass(frozen=True)
class Caller:
    """The sender of a request. name: for the journal. may_change: whether operations are allowed."""

    name: str
    may_change: bool


class Answer(BaseModel):
    """The answer to an operation, see `league.run.operations.operator.Done`."""

    words: str
    first_event: int
    last_event: int
    undoable: bool


class Refusal(BaseModel):
    """The refusal of a request, one sentence on its reason."""

    error: str


def make_api(folder: RunFolder, queue: Queue, *, tokens: Tokens | None, hosts: tuple[str, ...] = ()) -> FastAPI:
    """The application behind one listener of the door of a run.

    Args:
      queue: of the daemon.
      tokens: None where only the run's own user can reach the listener, as a unix socket of mode 0600. A property of
        the listener: what a request says about its origin can be forged.
      hosts: names by which the door may be called, beside those of this machine's loopback.
    """
    api = FastAPI(title="league", version=__version__, docs_url=None, redoc_url=None)
    allowed = ["localhost", "127.0.0.1", "[::1]", *hosts]
    api.add_middleware(TrustedHostMiddleware, allowed_hosts=allowed, www_redirect=False)
    api.middleware("http")(_bounded)
    api.exception_handler(RoutingError)(_refused)
    api.exception_handler(RequestValidationError)(_misshapen)
    api.exception_handler(LeagueError)(_told)
    guard = _owner if tokens is None else _token_guard(tokens)
    _add_reading(api, folder, Depends(guard))
    for operation in OPERATIONS.values():
        _add_operation(api, operation, queue, guard)
    return api


def _owner() -> Caller:
    return Caller("", may_change=True)


def _token_guard(tokens: Tokens) -> Callable[[Request], Caller]:
    def guard(request: Request) -> Caller:
        given = request.headers.get("authorization", "").removeprefix("Bearer ")
        for token, may_change in ((tokens.operator, True), (tokens.reader, False)):
            if secrets.compare_digest(given.encode(), token.encode()):
                host = "unknown" if request.client is None else request.client.host
                return Caller(f"token@{host}", may_change)
        raise HTTPException(401, "this door wants a token: `Authorization: Bearer TOKEN`, from a file of RUN/tokens")

    return guard


def _add_reading(api: FastAPI, folder: RunFolder, guard: object) -> None:
    needs_guard = [guard]

    @api.get("/healthz", summary="Healthy while the daemon's loop turns")
    def healthz() -> Response:
        age = _heartbeat_age(folder)
        return JSONResponse(
            {"healthy": age < SILENT_S, "heartbeat_age_s": round(age, 1)}, 200 if age < SILENT_S else 503
        )

    @api.get("/readyz", summary="Ready while the league trains")
    def readyz() -> Response:
        status = folder.read_status()
        ready = status is not None and status.phase == "running"
        return JSONResponse({"ready": ready, "phase": "" if status is None else status.phase}, 200 if ready else 503)

    @api.get("/metrics", summary="Metrics for Prometheus", dependencies=needs_guard)  # type: ignore[arg-type]
    def metrics() -> Response:
        return Response(exposition(folder), media_type=CONTENT_TYPE)

    @api.get("/api/v1/run", summary="The daemon's heartbeat", dependencies=needs_guard)  # type: ignore[arg-type]
    def run() -> Response:
        status = folder.read_status()
        return Response(b"null" if status is None else msgspec.json.encode(status), media_type="application/json")


def _add_operation(api: FastAPI, operation: Operation, queue: Queue, guard: Callable[..., Caller]) -> None:
    """One typed route: POST /api/v1/operations/NAME with the operation's arguments, `by` and `reason`."""
    model = _model_of(operation)

    async def carry_out(given: BaseModel, caller: Caller) -> Answer:
        if not caller.may_change:
            raise HTTPException(403, "this token may read only")
        plain = given.model_dump(exclude_unset=True)
        by, reason = plain.pop("by", ""), plain.pop("reason", "")
        who = " ".join(word for word in (str(by), caller.name) if word) or "unknown"
        waiting = asyncio.wrap_future(queue.submit(operation.name, plain, by=who, reason=str(reason)))
        try:
            done = await asyncio.wait_for(asyncio.shield(waiting), ANSWER_S)
        except TimeoutError as error:
            raise HTTPException(
                504, f"the daemon has not answered within {ANSWER_S:g} s; it may still do so, see the journal"
            ) from error
        return Answer(
            words=done.words, first_event=done.first_event, last_event=done.last_event, undoable=done.undoable
        )

    # FastAPI reads these; written at the function they could not name what is made here.
    carry_out.__annotations__ = {"given": model, "caller": Annotated[Caller, Depends(guard)], "return": Answer}
    api.post(
        f"/api/v1/operations/{operation.name}",
        summary=operation.what,
        operation_id=operation.name,
        response_model=Answer,
        responses={status: {"model": Refusal} for status in (401, 403, 409, 422, 504)},
    )(carry_out)


def _model_of(operation: Operation) -> type[BaseModel]:
    fields: dict[str, object] = {argument.name: _field_of(argument) for argument in operation.arguments}
    words = {"by": "who asks, for the journal", "reason": "why, for the journal"}
    for name, what in words.items():
        fields[name] = (str, Field("", description=what, max_length=MAX_WORDS))
    config = ConfigDict(extra="forbid", strict=False)
    name = f"{operation.name.capitalize()}Request"
    made: type[BaseModel] = create_model(name, __config__=config, **fields)  # type: ignore[call-overload]
    return made


def _field_of(argument: Argument) -> tuple[object, object]:
    kind: object = _TYPES[argument.kind]
    if argument.is_required:
        return kind, Field(description=argument.what)
    return kind if argument.default is not None else kind | None, Field(argument.default, description=argument.what)  # type: ignore[operator]


def _heartbeat_age(folder: RunFolder) -> float:
    status = folder.read_status()
    return float("inf") if status is None else max(time.time() - status.heartbeat_at, 0.0)


async def _bounded(request: Request, call_next: Callable[[Request], Awaitable[Response]]) -> Response:
    """Refuse a body that is too long or of unknown length before any of it is read."""
    if request.method == "POST":
        length = request.headers.get("content-length", "")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            return JSONResponse({"error": f"a request takes at most {MAX_BODY_BYTES} bytes and states its length"}, 413)
    return await call_next(request)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, RoutingError)
    return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)


async def _misshapen(request: Request, error: Exception) -> Response:
    """Arguments of another type or name: which, without repeating what was sent."""
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(each["type"] == "json_invalid" or each["loc"] == ("body",) for each in found):
        return JSONResponse({"error": "the request must be a JSON object, sent as application/json"}, 422)
    problems = [f"{'.'.join(str(part) for part in each['loc'][1:])}: {each['msg']}" for each in found]
    return JSONResponse({"error": "; ".join(problems)}, 422)


async def _told(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409)
