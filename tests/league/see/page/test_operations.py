"""Operations from the page: what they would do is said first, and what is done stands in the journal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from league.core.state.events import SettingsChanged
from league.run.operations.catalogue import OPERATIONS
from league.see.page.guard import CSRF_HEADER
from league.store.known_runs import this_user
from league.store.run_folder import RunFolder
from tests.league.see.page.conftest import BASE
from tests.league.see.page.live_page import live_run
from tests.league.see.page.page_runs import OPERATOR, page_of
from tests.league.tiny_runs import events_of, state_of

HEADERS = {CSRF_HEADER: OPERATOR.csrf}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RunFolder, TestClient]]:
    """A live run, and a client that has entered its page."""
    with live_run(tmp_path_factory.mktemp("live") / "made", leases=20) as folder:
        library, page = page_of(folder.path)
        client = TestClient(page, base_url=BASE)  # type: ignore[arg-type]
        client.post("/api/v1/session", json={"token": OPERATOR.token})
        yield folder, client
        library.close()


def ask(client: TestClient, operation: str, /, **arguments: Any) -> tuple[int, dict[str, Any]]:
    body = {"arguments": arguments, "reason": "a test"}
    answer = client.post(f"/api/v1/runs/made/operations/{operation}", json=body, headers=HEADERS)
    return answer.status_code, answer.json()


def section(client: TestClient, name: str) -> dict[str, Any]:
    found = client.get(f"/api/v1/runs/made/sections/{name}").json()
    assert isinstance(found, dict)
    return found


def test_the_plan_says_what_is_then_done_and_can_be_taken_back(live: tuple[RunFolder, TestClient]) -> None:
    folder, client = live
    before = len(events_of(folder.path))
    status, plan = ask(client, "pause/plan", what="main-0")
    assert (status, plan["words"], plan["is_undoable"]) == (200, "pauses main-0", True)
    assert len(events_of(folder.path)) == before

    status, done = ask(client, "pause", what="main-0")
    assert (status, done["words"], done["first_event"]) == (200, "pauses main-0", before + 1)
    event = events_of(folder.path)[-1]
    assert isinstance(event, SettingsChanged)
    assert (event.by, event.reason) == (this_user(), "a test")
    change = section(client, "operations")["changes"][0]
    assert (change["seq"], change["is_undone"]) == (before + 1, False)

    assert ask(client, "undo", event=before + 1)[0] == 200
    assert not state_of(folder.path).players["main-0"].paused
    assert section(client, "operations")["changes"][1]["is_undone"]


def test_what_was_changed_again_is_not_offered_to_be_taken_back(live: tuple[RunFolder, TestClient]) -> None:
    _, client = live
    for value in (0.0002, 0.0003):
        assert ask(client, "set", key="learner.learning_rate", value=value)[0] == 200
    newest, before = section(client, "operations")["changes"][:2]
    assert (newest["is_undoable"], before["is_undoable"]) == (True, False)


@pytest.mark.parametrize(
    ("status", "what", "arguments", "words"),
    [
        (409, "pause", {"what": "nobody"}, "no player or role"),
        (409, "pause/plan", {"what": "nobody"}, "no player or role"),
        (409, "set/plan", {"key": "learner.batch_rows", "value": 32}, "hosts are built with it"),
        (409, "pause/plan", {}, "needs what"),
        (404, "explode", {}, "no operation"),
        (404, "explode/plan", {}, "no operation"),
    ],
)
def test_a_refusal_is_a_sentence(
    live: tuple[RunFolder, TestClient], status: int, what: str, arguments: dict[str, Any], words: str
) -> None:
    folder, client = live
    before = len(events_of(folder.path))
    found = ask(client, what, **arguments)
    assert (found[0], words in found[1]["error"]) == (status, True), found
    assert len(events_of(folder.path)) == before


def test_every_operation_has_a_form(live: tuple[RunFolder, TestClient]) -> None:
    forms = {form["name"]: form for form in section(live[1], "operations")["forms"]}
    assert {name for name, form in forms.items() if not form["is_deed"]} == set(OPERATIONS)
    for name, operation in OPERATIONS.items():
        assert [argument["name"] for argument in forms[name]["arguments"]] == [
            each.name for each in operation.arguments
        ]


def test_a_run_that_is_not_live_is_refused(client: TestClient) -> None:
    found = section(client, "operations")
    assert "is not running" in found["refusal"]
    for path in ("pause", "pause/plan"):
        status, answer = ask(client, path, what="main-0")
        assert status == 409 and "is not running" in answer["error"]


def test_what_is_no_request_is_refused(client: TestClient) -> None:
    for body in (b"", b"[]", b'{"arguments": 1}', b'{"more": 1}', b'{"reason": "' + b"x" * 501 + b'"}'):
        headers = {**HEADERS, "content-type": "application/json"}
        answer = client.post("/api/v1/runs/made/operations/pause", content=body, headers=headers)
        assert answer.status_code == 422, body


def test_the_hosts_are_those_of_the_heartbeat(live: tuple[RunFolder, TestClient]) -> None:
    hosts = {row["name"]: row["state"] for row in section(live[1], "fleet")["hosts"]}
    assert hosts == {"actor-0": "working", "actor-1": "working", "learner-0": "working"}
    assert ask(live[1], "park", host="actor-0")[0] == 200
    assert section(live[1], "fleet")["hosts"][0]["state"] == "parked"
