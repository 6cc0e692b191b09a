"""The application of a served policy: routes, checks of every request, and metrics."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import msgspec
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from league.deploy.serving.batching import Batcher, Overloaded
from league.deploy.serving.served_policy import BadRequest, ServedPolicy
from league.deploy.serving.sessions import SessionError, Sessions
from league.deploy.serving.wire import (
    ACT,
    HEALTH,
    METRICS,
    POLICY,
    SESSIONS,
    ActRequest,
    PolicyFacts,
    ServingRefusal,
    SessionAnswer,
    to_json,
)
from league.policies.observation import ObservationMismatch
from league.version import __version__

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

RETRY_S = 1
BODY_S = 10.0
"""Longest wait for the body of a request."""
JSON = "application/json"
RESTART = "/restart"
LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
BATCH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class ServingConfig:
    """The limits of a served policy.

    Fields:
      max_batch: decisions computed together. deadline_ms: longest wait of one for others.
      max_waiting: decisions that may wait; a further one is answered 503.
      max_sessions: games at once. session_s: seconds without a request after which one is forgotten.
      max_body_bytes: of a request.
    """

    max_batch: int = 64
    deadline_ms: float = 2.0
    max_waiting: int = 1024
    max_sessions: int = 10_000
    session_s: float = 900.0
    max_body_bytes: int = 1 << 20


@dataclass(frozen=True)
class Reply:
    """An answer. retry: whether the caller may try again soon. allow: methods that the path takes, of a refused one."""

    status: int
    body: bytes
    content_type: str = JSON
    retry: bool = False
    allow: str = ""


class PolicyApp:
    """The application behind one listener.

    Args:
      policy: that is served. config: limits.
      token: that every request must bring but that for health; empty where only this user reaches the listener.
      hosts: names by which it may be called, beside those of this machine.
      clock: monotonic seconds.
    """

    def __init__(
        self,
        policy: ServedPolicy,
        config: ServingConfig,
        *,
        token: str,
        hosts: tuple[str, ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._policy = policy
        self._config = config
        self._token = token
        self._hosts = {*LOCAL_HOSTS, *(host.strip("[]") for host in hosts)}
        self._clock = clock
        self._registry = CollectorRegistry()
        self._requests = Counter("league_policy_requests", "Requests answered.", ["status"], registry=self._registry)
        self._seconds = Histogram("league_policy_seconds", "Seconds from request to answer.", registry=self._registry)
        batches = Histogram("league_policy_batch", "Rows of a batch.", buckets=BATCH_BUCKETS, registry=self._registry)
        self.sessions = Sessions(
            policy.first_state, max_sessions=config.max_sessions, idle_s=config.session_s, clock=clock
        )
        self.callers: Callable[[], int] = lambda: config.max_batch
        self._batcher = Batcher(
            policy,
            max_batch=config.max_batch,
            deadline_s=config.deadline_ms / 1000.0,
            max_waiting=config.max_waiting,
            callers=self._callers_now,
            note=batches.observe,
        )
        Gauge("league_policy_sessions", "Open sessions.", registry=self._registry).set_function(
            lambda: len(self.sessions)
        )
        Gauge("league_policy_waiting", "Decisions that wait.", registry=self._registry).set_function(
            lambda: self._batcher.waiting
        )
        self._decoder = msgspec.json.Decoder(ActRequest)
        self._facts = to_json(_facts_of(policy, config))

    def _callers_now(self) -> int:
        return self.callers()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request of ASGI."""
        if scope["type"] != "http":
            return
        started = self._clock()
        reply = await self._reply(scope, receive)
        self._requests.labels(str(reply.status)).inc()
        self._seconds.observe(self._clock() - started)
        headers = [(b"content-type", reply.content_type.encode()), (b"content-length", b"%d" % len(reply.body))]
        if reply.retry:
            headers.append((b"retry-after", b"%d" % RETRY_S))
        if reply.allow:
            headers.append((b"allow", reply.allow.encode()))
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    async def _reply(self, scope: Scope, receive: Receive) -> Reply:
        method, path = scope["method"], scope["path"]
        headers = {name: value for name, value in scope["headers"] if name in (b"host", b"authorization", b"origin")}
        refusal = self._unwelcome(path, headers)
        if refusal is not None:
            return refusal
        allowed = _methods_of(path)
        if not allowed:
            return _refused(404, f"there is {ACT}, {POLICY}, {SESSIONS}, {HEALTH} and {METRICS}")
        if method not in allowed:
            return _refused(405, f"{path} takes {' and '.join(allowed)}", allow=", ".join(allowed))
        if path == ACT:
            return await self._act_on(receive)
        if path == HEALTH:
            return Reply(200, b'{"healthy":true}')
        if path == POLICY:
            return Reply(200, self._facts)
        if path == METRICS:
            return Reply(200, generate_latest(self._registry), CONTENT_TYPE_LATEST)
        return self._session(method, path.removeprefix(SESSIONS).removeprefix("/"))

    def _unwelcome(self, path: str, headers: dict[bytes, bytes]) -> Reply | None:
        """The refusal of a caller: of another site, or without the token."""
        host = urlsplit(f"//{headers.get(b'host', b'').decode('latin-1')}").hostname
        if host not in self._hosts:
            return _refused(400, "the host of the request is none of this server's names: see --host")
        if b"origin" in headers:
            return _refused(403, "requests from web pages are refused")
        given = headers.get(b"authorization", b"").removeprefix(b"Bearer ")
        if self._token and path != HEALTH and not secrets.compare_digest(given, self._token.encode()):
            return _refused(401, "this server wants its token: `Authorization: Bearer TOKEN`")
        return None

    async def _body(self, receive: Receive) -> bytes | None:
        """The body of a request; None if it is too long.

        Raises:
          TimeoutError: it does not come.
        """
        parts, size = [], 0
        while True:
            message = await receive()
            part = message.get("body", b"")
            size += len(part)
            if size > self._config.max_body_bytes:
                return None
            parts.append(part)
            if not message.get("more_body", False):
                return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _act_on(self, receive: Receive) -> Reply:
        try:
            async with asyncio.timeout(BODY_S):
                body = await self._body(receive)
        except TimeoutError:
            return _refused(408, f"the request did not come within {BODY_S:g} s")
        if body is None:
            return _refused(413, f"a request takes at most {self._config.max_body_bytes} bytes")
        return await self._act(body)

    async def _act(self, body: bytes) -> Reply:
        try:
            request = self._decoder.decode(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            return _refused(422, f"the request is none for an action: {error}")
        session, state = request.session, None
        try:
            if session:
                if request.state is not msgspec.UNSET:
                    return _refused(422, "a request has a session or a state, not both")
                state = self.sessions.take(session)
            try:
                decided = await self._batcher.decide(self._policy.row(request, state))
                if session:
                    self.sessions.put(session, decided.state)
            finally:
                if session:
                    self.sessions.release(session)
        except SessionError as error:
            return _refused(error.status, str(error))
        except Overloaded:
            return _refused(503, f"{self._config.max_waiting} decisions wait already: try again later")
        except (BadRequest, ObservationMismatch) as error:
            return _refused(422, str(error).rstrip("."))
        return Reply(200, to_json(decided.answer))

    def _session(self, method: str, name: str) -> Reply:
        try:
            if not name:
                return Reply(201, to_json(SessionAnswer(self.sessions.open(), self.sessions.idle_s)))
            if method == "POST":
                self.sessions.restart(name.removesuffix(RESTART))
            else:
                self.sessions.close(name)
        except SessionError as error:
            return _refused(error.status, str(error))
        return Reply(200, b"{}")


def _methods_of(path: str) -> tuple[str, ...]:
    """The methods that a path takes; none where there is no such path. A session is begun, begun again, and closed."""
    if path in (HEALTH, POLICY, METRICS):
        return ("GET", "HEAD")
    if path in (ACT, SESSIONS) or (path.startswith(f"{SESSIONS}/") and path.endswith(RESTART)):
        return ("POST",)
    return ("DELETE",) if path.startswith(f"{SESSIONS}/") else ()


def _refused(status: int, reason: str, *, allow: str = "") -> Reply:
    return Reply(status, to_json(ServingRefusal(reason)), retry=status == 503, allow=allow)


def _facts_of(policy: ServedPolicy, config: ServingConfig) -> PolicyFacts:
    spec = policy.spec
    fields = {name: array for name, array in spec.observations.items() if name not in spec.value_fields}
    return PolicyFacts(
        name=policy.name,
        identity=policy.identity,
        game=spec.env_id,
        observations={name: [list(array.shape), array.dtype] for name, array in fields.items()},
        actions={"kind": spec.actions.kind, "num_actions": spec.actions.num_actions, "shape": list(spec.actions.shape)},
        has_mask=spec.has_mask,
        seats=list(spec.seat_names),
        core_size=policy.core_size,
        members=policy.num_members,
        greedy=policy.greedy,
        max_batch=config.max_batch,
        league_version=__version__,
    )
