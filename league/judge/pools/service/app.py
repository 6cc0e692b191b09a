"""The HTTP application of a pool: every request carries the token, and the version of its sender."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from league.errors import CorruptSnapshot, DiskFull, LeagueError, MissingSnapshot
from league.hosts.on_ray.nodes.host_version import differences, this_version
from league.judge.pools.core.records import BatchAnswer
from league.judge.pools.core.rules import NotOpen, PoolRefused
from league.judge.pools.pool import Pool
from league.judge.pools.service.messages import (
    MAX_BODY_BYTES,
    VERSION_HEADER,
    AskLease,
    Fail,
    Finish,
    Hello,
    Welcome,
    WorkerRefusal,
    version_mark,
)

JSON = "application/json"
NOTHING, UNKNOWN, GONE, TOO_LONG, MISSHAPEN, FULL = 204, 401, 409, 413, 422, 507

Handler = Callable[[Request], Awaitable[Response]]
Message = TypeVar("Message")


class _Refused(Exception):  # noqa: N818 - it is an answer, not a failure
    """A request that is answered with a status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def make_app(pool: Pool, token: str, *, hosts: tuple[str, ...]) -> Starlette:
    """The application behind the listener of a pool.

    Args:
      token: which every request but /healthz carries. hosts: names by which it may be called.
    """
    routes = _Routes(pool, token)
    app = Starlette(
        routes=[
            Route("/healthz", _healthz),
            Route("/v1/hello", routes.guarded(routes.hello, any_version=True), methods=["POST"]),
            Route("/v1/lease", routes.guarded(routes.lease), methods=["POST"]),
            Route("/v1/finish", routes.guarded(routes.finish), methods=["POST"]),
            Route("/v1/fail", routes.guarded(routes.fail), methods=["POST"]),
            Route("/v1/manifest/{digest}", routes.guarded(routes.manifest)),
            Route("/v1/weights/{digest}", routes.guarded(routes.weights)),
        ]
    )
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(hosts), www_redirect=False)
    return app


async def _healthz(request: Request) -> Response:
    return Response("ok")


class _Routes:
    """The requests of workers. The pool's own calls run in threads, since they wait for its lock and for the disk."""

    def __init__(self, pool: Pool, token: str) -> None:
        self._pool = pool
        self._token = token.encode()
        self._version = this_version()
        self._mark = version_mark(self._version)

    def guarded(self, handler: Handler, *, any_version: bool = False) -> Handler:
        """A handler behind the token and the version, whose refusals become answers."""

        async def answer(request: Request) -> Response:
            try:
                given = request.headers.get("authorization", "").removeprefix("Bearer ")
                if not secrets.compare_digest(given.encode(), self._token):
                    raise _Refused(UNKNOWN, "this pool wants its token: `Authorization: Bearer TOKEN`")
                if not any_version and request.headers.get(VERSION_HEADER, "") != self._mark:
                    raise _Refused(GONE, "the pool runs another version than this worker said hello to: join it again")
                return await handler(request)
            except _Refused as refusal:
                return _refusal(refusal.status, str(refusal))
            except (NotOpen, PoolRefused, MissingSnapshot, CorruptSnapshot) as refusal:
                return _refusal(GONE, str(refusal))
            except DiskFull as error:
                return _refusal(FULL, str(error))
            except LeagueError as error:
                return _refusal(500, str(error))

        return answer

    async def hello(self, request: Request) -> Response:
        hello = await _message(request, Hello)
        apart = differences(self._version, hello.version)
        if apart:
            raise _Refused(GONE, f"{hello.worker[:80]} cannot join: {apart}. Install the same versions there.")
        return _json(Welcome(self._pool.game))

    async def lease(self, request: Request) -> Response:
        asked = await _message(request, AskLease)
        granted = await run_in_threadpool(self._pool.lease, asked.worker)
        return Response(status_code=NOTHING) if granted is None else _json(granted)

    async def finish(self, request: Request) -> Response:
        given = await _message(request, Finish)
        await run_in_threadpool(self._pool.finish, given.lease_id, given.token, given.result)
        return Response(status_code=NOTHING)

    async def fail(self, request: Request) -> Response:
        given = await _message(request, Fail)
        answer = BatchAnswer(None, given.reason, given.lacks, given.gave_up)
        await run_in_threadpool(self._pool.answer, given.lease_id, given.token, answer)
        return Response(status_code=NOTHING)

    async def manifest(self, request: Request) -> Response:
        _, manifest = await run_in_threadpool(self._pool.store.get, request.path_params["digest"])
        return _json(manifest)

    async def weights(self, request: Request) -> Response:
        weights, _ = await run_in_threadpool(self._pool.store.get, request.path_params["digest"])
        return Response(weights, media_type="application/octet-stream")


async def _message(request: Request, kind: type[Message]) -> Message:
    """The body of a request; its length is stated and looked at before any of it is read."""
    length = request.headers.get("content-length", "")
    if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
        raise _Refused(TOO_LONG, f"a request takes at most {MAX_BODY_BYTES} bytes and states its length")
    try:
        return msgspec.json.decode(await request.body(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise _Refused(MISSHAPEN, f"this is no {kind.__name__}: {error}") from error


def _json(record: object) -> Response:
    return Response(msgspec.json.encode(record), media_type=JSON)


def _refusal(status: int, sentence: str) -> Response:
    return Response(msgspec.json.encode(WorkerRefusal(sentence)), status, media_type=JSON)
