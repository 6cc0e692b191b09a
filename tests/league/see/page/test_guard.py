"""The guard of the page: every way in without the right words is refused, and every answer has its headers."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from league.see.page.guard import CSRF_HEADER, HEADERS, MAX_BODY_BYTES
from tests.league.see.page.page_runs import KEYS, OPERATOR, READER

RUN = "/api/v1/runs/made"
PAUSE = f"{RUN}/operations/pause"
JSON = {"content-type": "application/json"}
CSRF = {CSRF_HEADER: OPERATOR.csrf}


def test_the_token_opens_a_session_that_scripts_cannot_read(stranger: TestClient) -> None:
    assert stranger.get("/api/v1/runs").status_code == 401
    answer = stranger.post("/api/v1/session", json={"token": OPERATOR.token})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie and OPERATOR.token not in cookie
    assert stranger.get("/api/v1/runs").status_code == 200


@pytest.mark.parametrize(
    ("status", "method", "path", "headers", "body"),
    [
        (401, "GET", "/api/v1/runs", {}, None),
        (401, "GET", f"{RUN}/sections/overview", {"cookie": f"{KEYS.cookie_name}={OPERATOR.token}"}, None),
        (401, "GET", f"{RUN}/news", {"cookie": f"{KEYS.cookie_name}=x"}, None),
        (401, "GET", "/api/v1/session", {}, None),
        (401, "GET", "/api/v1/no/such/thing", {}, None),
        (401, "POST", "/api/v1/session", {}, {"token": "wrong"}),
        (401, "POST", "/api/v1/session", {}, {"token": ""}),
        (401, "POST", PAUSE, CSRF, {}),
        (422, "POST", "/api/v1/session", {}, {"token": 1}),
        (422, "POST", "/api/v1/session", {}, {"token": "x", "more": 1}),
        (403, "POST", "/api/v1/session", {"origin": "http://evil.example"}, {"token": OPERATOR.token}),
        (403, "POST", "/api/v1/session", {"origin": "http://127.0.0.1:9999"}, {"token": OPERATOR.token}),
        (403, "POST", "/api/v1/session", {"sec-fetch-site": "cross-site"}, {"token": OPERATOR.token}),
        (400, "GET", "/", {"host": "evil.example"}, None),
        (400, "POST", "/api/v1/session", {"host": "evil.example:8420"}, {"token": OPERATOR.token}),
    ],
)
def test_a_stranger_is_refused(
    stranger: TestClient, status: int, method: str, path: str, headers: dict[str, str], body: Any
) -> None:
    assert stranger.request(method, path, headers=headers, json=body).status_code == status


@pytest.mark.parametrize(
    ("status", "method", "path", "headers", "content"),
    [
        (403, "POST", PAUSE, JSON, b"{}"),
        (403, "POST", PAUSE, {**JSON, CSRF_HEADER: "wrong"}, b"{}"),
        (403, "POST", PAUSE, {**JSON, CSRF_HEADER: OPERATOR.session}, b"{}"),
        (403, "POST", PAUSE, {**JSON, **CSRF, "origin": "http://evil.example"}, b"{}"),
        (403, "POST", PAUSE, {**JSON, **CSRF, "origin": "null"}, b"{}"),
        (403, "POST", PAUSE, {**JSON, **CSRF, "sec-fetch-site": "same-site"}, b"{}"),
        (403, "GET", f"{RUN}/sections/overview", {"sec-fetch-site": "cross-site"}, b""),
        (403, "GET", f"{RUN}/sections/overview", {"origin": "https://127.0.0.1:8420"}, b""),
        (400, "GET", f"{RUN}/sections/overview", {"host": "rebound.example"}, b""),
        (415, "POST", PAUSE, {**CSRF, "content-type": "text/plain"}, b"{}"),
        (413, "POST", PAUSE, {**JSON, **CSRF}, b" " * (MAX_BODY_BYTES + 1)),
        (405, "PUT", PAUSE, {**JSON, **CSRF}, b"{}"),
        (405, "DELETE", "/", {}, b""),
        (405, "PATCH", "/api/v1/runs", {}, b""),
        (405, "OPTIONS", "/api/v1/runs", {"origin": "http://127.0.0.1:8420"}, b""),
        (405, "TRACE", "/", {}, b""),
        (405, "POST", "/api/v1/runs", {**JSON, **CSRF}, b"{}"),
        (404, "GET", "/assets/../app.py", {}, b""),
        (404, "GET", "/assets/%2e%2e/app.py", {}, b""),
        (404, "GET", "/assets/..%2f..%2f..%2f..%2fetc%2fpasswd", {}, b""),
        (404, "GET", "/assets//etc/passwd", {}, b""),
        (404, "GET", "/assets/vendor/uplot/LICENSE", {}, b""),
        (404, "GET", "/api/v1/runs/..%2fmade/sections/overview", {}, b""),
        (404, "GET", "/api/v1/runs/%2e%2e/sections/overview", {}, b""),
        (404, "GET", f"{RUN}/sections/..%2fregistry", {}, b""),
        (404, "GET", f"{RUN}/sections/__init__", {}, b""),
        (404, "GET", "/openapi.json", {}, b""),
        (404, "GET", "/docs", {}, b""),
        (422, "GET", f"{RUN}/sections/overview?unknown=1", {}, b""),
        (422, "GET", f"{RUN}/sections/events?before=x", {}, b""),
    ],
)
def test_a_session_alone_is_not_enough(
    client: TestClient, status: int, method: str, path: str, headers: dict[str, str], content: bytes
) -> None:
    answer = client.request(method, path, headers=headers, content=content)
    assert answer.status_code == status, answer.text
    assert (status == 405) == ("allow" in answer.headers)
    assert all(answer.headers.get(name) == value for name, value in HEADERS.items()) or status == 400


@pytest.mark.parametrize(
    ("status", "method", "path", "headers", "body"),
    [
        (200, "GET", "/api/v1/runs", {}, None),
        (200, "GET", f"{RUN}/sections/overview", {}, None),
        (200, "GET", f"{RUN}/sections/operations", {}, None),
        (422, "POST", f"{RUN}/play", {CSRF_HEADER: READER.csrf}, {"policy": 3}),
        (403, "POST", f"{RUN}/play", CSRF, {"policy": "best"}),
        (403, "POST", PAUSE, {CSRF_HEADER: READER.csrf}, {}),
        (403, "POST", f"{PAUSE}/plan", {CSRF_HEADER: READER.csrf}, {}),
        (403, "POST", PAUSE, CSRF, {}),
        (403, "POST", f"{RUN}/play/../operations/pause", {CSRF_HEADER: READER.csrf}, {}),
        (403, "POST", f"{RUN}/play/%2e%2e/operations/pause", {CSRF_HEADER: READER.csrf}, {}),
        (403, "POST", f"{RUN}/play%0a/operations/pause", {CSRF_HEADER: READER.csrf}, {}),
        (403, "POST", f"{RUN}/nothing", {CSRF_HEADER: READER.csrf}, {}),
    ],
)
def test_a_reader_sees_everything_and_changes_nothing(
    stranger: TestClient, status: int, method: str, path: str, headers: dict[str, str], body: Any
) -> None:
    entered = stranger.post("/api/v1/session", json={"token": READER.token})
    assert entered.json()["may_change"] is False and entered.json()["csrf"] == READER.csrf != OPERATOR.csrf
    answer = stranger.request(method, path, headers=headers, json=body)
    assert answer.status_code == status, answer.text
    if status == 403 and headers[CSRF_HEADER] == READER.csrf:
        assert "read-only" in answer.json()["error"]


def test_a_readers_cookie_with_an_operators_word_is_no_operator(stranger: TestClient) -> None:
    """Neither secret of one way in tells anything of the other's."""
    stranger.cookies.set(KEYS.cookie_name, READER.session)
    assert stranger.post(PAUSE, headers=CSRF, json={}).status_code == 403
    stranger.cookies.clear()
    stranger.cookies.set(KEYS.cookie_name, READER.token)
    assert stranger.get("/api/v1/runs").status_code == 401


def test_answers_carry_the_policy_and_are_not_kept(client: TestClient) -> None:
    page, run = client.get("/"), client.get(f"{RUN}/sections/overview")
    for answer in (page, run):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert run.headers["cache-control"] == "no-store"
    again = client.get("/", headers={"if-none-match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_page_has_no_script_or_style_of_its_own_in_its_markup(client: TestClient) -> None:
    markup = client.get("/").text
    assert "style=" not in markup and " onclick" not in markup
    assert all(part.startswith(' type="module" src="/assets/') for part in markup.split("<script")[1:])
    assert "://" not in markup.replace("http://www.w3.org/2000/svg", "")
