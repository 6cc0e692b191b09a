"""The guard of the page: its keys and sessions, and the checks and headers of every request.

The address that is printed holds a token behind `#`, which a browser sends to nobody. The page's script gives it to
`POST /api/v1/session` once and gets a cookie that no script can read. It also gets a second word, which every change
must bring in a header. A site of somebody else has neither.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

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


@dataclass(frozen=True)
class Keys:
    """The secrets of one page, all made from its token.

    Fields:
      token: behind `#` in the address. cookie_name: with the port, as browsers share cookies between ports.
    """

    token: str
    cookie_name: str

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


def new_token() -> str:
    """A token that nobody can guess."""
    return secrets.token_urlsafe(32)


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

        refusal = self._refusal(str(scope["method"]), str(scope["path"]), str(scope["scheme"]), Headers(scope=scope))
        if refusal is not None:
            await refusal(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _refusal(self, method: str, path: str, scheme: str, headers: Headers) -> JSONResponse | None:
        if method not in ("GET", "HEAD", "POST"):
            return _refused(405, f"the page knows no {method} requests")
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
        if not hmac.compare_digest(self._cookie(headers).encode(), self._keys.session.encode()):
            return _refused(401, "open the page by the address that `league serve` prints")
        if method == "POST" and not hmac.compare_digest(
            headers.get(CSRF_HEADER, "").encode(), self._keys.csrf.encode()
        ):
            return _refused(403, f"a change needs the header {CSRF_HEADER}")
        return None

    def _cookie(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self._keys.cookie_name)
        except CookieError:
            return ""
        return "" if found is None else found.value


def _refused(status: int, error: str) -> JSONResponse:
    return JSONResponse({"error": error}, status)
