"""The guard of the page: its keys and sessions, and the checks and headers of every request.

The address that is printed holds a token behind `#`, which a browser sends to nobody. The page's script gives it to
`POST /api/v1/session` once and gets a cookie that no script can read. It also gets a second word, which every change
must bring in a header. A site of somebody else has neither. One token is an operator's, the other may only read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from league.http.token_file import Tokens

API = "/api/v1"
SESSION = f"{API}/session"
CSRF_HEADER = "x-league-csrf"
MAX_BODY_BYTES = 64 << 10

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
        "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


READERS_POST = re.compile(rf"{API}/runs/[^/]+/play(?:/[^/]+)?")
"""Paths to which a reader may send requests: games against a policy change nothing of the run."""


@dataclass(frozen=True)
class Entrance:
    """The way in by one token, from which all its secrets are made. may_change: whether operations are allowed."""

    token: str
    may_change: bool

    @property
    def session(self) -> str:
        """The value of the session's cookie."""
        return self._word("session")

    @property
    def csrf(self) -> str:
        """The word that a change brings in its header."""
        return self._word("csrf")

    def _word(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), purpose.encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True)
class Keys:
    """The secrets of one page.

    Fields:
      tokens: behind `#` in its addresses. port: in the name of the cookie, as browsers share cookies between ports.
      is_secure: whether browsers may send the cookie over TLS alone.
    """

    tokens: Tokens
    port: int
    is_secure: bool = False

    @property
    def cookie_name(self) -> str:
        """The name of the session's cookie."""
        return f"league-page-{self.port}"

    @property
    def entrances(self) -> tuple[Entrance, Entrance]:
        """An operator's and a reader's."""
        return Entrance(self.tokens.operator, may_change=True), Entrance(self.tokens.reader, may_change=False)

    def by_token(self, token: str) -> Entrance | None:
        """The way in by a token; None for any other word."""
        return next((way for way in self.entrances if _equal(token, way.token)), None)

    def by_session(self, session: str) -> Entrance | None:
        """The way in by the value of a cookie; None for any other word."""
        return next((way for way in self.entrances if _equal(session, way.session)), None)


def _equal(given: str, secret: str) -> bool:
    """Compare words in a time that tells nothing of the secret."""
    return hmac.compare_digest(given.encode(), secret.encode())


class Guard:
    """Lets requests of the page's own sessions through, and sets the headers of every response."""

    def __init__(self, app: App, *, keys: Keys) -> None:
        self._app, self._keys = app, keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # neither websockets nor the server's own events are served
        is_api = str(scope["path"]).startswith("/api")

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers["cache-control"] = "no-store" if is_api else "no-cache"
            await send(message)

        refusal = self._refusal(scope, Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _refusal(self, scope: Scope, headers: Headers) -> JSONResponse | None:
        """The refusal of a request; a request that is let in has its `Entrance` in its state.

        Only the way in itself, POST of the session, has none.
        """
        method, path, scheme = str(scope["method"]), str(scope["path"]), str(scope["scheme"])
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, f"the page knows no {method} requests", {"allow": "GET, POST"})
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin is not None and origin != f"{scheme}://{headers.get('host')}":
            return _refused(403, "requests from other sites are refused")
        if not path.startswith("/api"):
            return None
        if site not in ("same-origin", "none"):
            return _refused(403, "requests from other sites are refused")
        if method == "POST":
            length = headers.get("content-length", "")
            if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
                return _refused(413, f"a request takes at most {MAX_BODY_BYTES} bytes and states its length")
            if headers.get("content-type", "").partition(";")[0].strip() != "application/json":
                return _refused(415, "a request is JSON")
        if path == SESSION and method == "POST":
            return None
        entrance = self._keys.by_session(self._cookie(headers))
        if entrance is None:
            return _refused(401, "open the page by the address that `league serve` prints")
        if method == "POST" and not _equal(headers.get(CSRF_HEADER, ""), entrance.csrf):
            return _refused(403, f"a change needs the header {CSRF_HEADER}")
        if method == "POST" and not entrance.may_change and not READERS_POST.fullmatch(path):
            return _refused(403, "this address of the page is read-only: operations need the operator's")
        scope.setdefault("state", {})["entrance"] = entrance
        return None

    def _cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._keys.cookie_name)
        except CookieError:
            return ""
        return "" if found is None else found.value


def _refused(status: int, error: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error}, status, headers)
