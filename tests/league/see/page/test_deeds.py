"""Deeds on whole runs from the page: each is the command of the terminal, with its checks and its sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from league.errors import LeagueError
from league.http.token_file import Tokens
from league.run.operations.catalogue import OPERATIONS
from league.see.page.app import make_page
from league.see.page.guard import CSRF_HEADER, Keys
from league.see.page.runs import deeds
from league.see.page.runs.deeds import DEEDS
from league.see.page.runs.library import Library
from league.see.page.sections.operations import GROUPS
from league.store.run_folder import RunFolder
from tests.league.commands import league, wait_until
from tests.league.see.page.conftest import BASE
from tests.league.see.page.page_runs import KEYS, OPERATOR, page_of, write_run

HEADERS = {CSRF_HEADER: OPERATOR.csrf}


def command_here(arguments: Sequence[str]) -> bytes:
    """The command in this process: what a child would print, without the seconds of its imports."""
    ran = league(*arguments)
    if ran.code:
        raise LeagueError(ran.err.strip().removeprefix("league: "))
    return ran.out.encode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for runs, still empty, with a home of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(deeds, "command_output", command_here)
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


@pytest.fixture
def client(home: Path) -> Iterator[TestClient]:
    """An operator's client of the page of that folder."""
    library, page = page_of(home)
    client = TestClient(page, base_url=BASE)  # type: ignore[arg-type]
    client.post("/api/v1/session", json={"token": OPERATOR.token})
    yield client
    library.close()


def post(client: TestClient, path: str, **body: Any) -> tuple[int, Any]:
    answer = client.post(f"/api/v1/{path}", json=body, headers=HEADERS)
    return answer.status_code, answer.json()


def ended(client: TestClient, number: int) -> dict[str, Any]:
    """The deed of that number, once it has ended."""

    def listed() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = client.get("/api/v1/deeds").json()["deeds"]
        return [deed for deed in found if deed["number"] == number and deed["state"] != "working"]

    wait_until(lambda: bool(listed()), "the end of a deed")
    return listed()[0]


def test_an_empty_folder_is_a_page_without_runs(client: TestClient, home: Path, tmp_path: Path) -> None:
    table = client.get("/api/v1/run-table").json()
    assert table["rows"] == [] and "connect_four" in table["games"]
    with pytest.raises(LeagueError):
        Library(tmp_path / "nowhere")


def test_a_game_is_fitted_with_a_reason_for_each_choice(client: TestClient) -> None:
    status, found = post(
        client, "start/fit", source="tic_tac_toe", seconds=90, settings="budget.env_steps=3000\nseed=4\n"
    )
    assert status == 200 and "env_steps: 3000" in found["text"] and "seconds: 90" in found["text"]
    assert len(found["choices"]) > 15 and all(choice["reason"] for choice in found["choices"])
    assert post(client, "start/fit", source="tic_tac_too", seconds=90)[1]["error"].startswith(
        "unknown env 'tic_tac_too'; did you mean"
    )
    assert post(client, "start/fit", source="--help")[0] == 422


def test_a_run_is_begun_by_the_text_that_was_shown(
    client: TestClient, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Any] = []

    def up(arguments: list[str]) -> bytes:
        seen.append((arguments, Path(arguments[1]).read_text()))
        return b"it trains"

    monkeypatch.setattr(deeds, "command_output", up)
    status, begun = post(client, "start", name="first", text="env: tic_tac_toe\n")
    done = ended(client, begun["number"])
    assert (status, done["state"], done["said"], done["began"]) == (200, "done", "it trains", "first")
    [(arguments, text)] = seen
    assert arguments[0] == "up" and arguments[2:] == ["--run-dir", str(home / "first")] and text == "env: tic_tac_toe\n"
    assert not Path(arguments[1]).exists()


@pytest.mark.parametrize("name", ["", "../else", "a/b", ".hidden", "-x", "made"])
def test_the_name_of_a_new_run_stays_in_the_folder(client: TestClient, home: Path, name: str) -> None:
    write_run(home / "made", leases=2)
    assert post(client, "start", name=name, text="env: tic_tac_toe\n")[0] == 422
    assert post(client, "folders/made/deeds/fork", arguments={"new": name})[0] == 422
    assert sorted(path.name for path in home.iterdir()) == ["made"]


def test_a_run_is_forked_and_deleted_as_the_terminal_does(client: TestClient, home: Path) -> None:
    folder = write_run(home / "made", leases=10)
    status, plan = post(client, "folders/made/deeds/fork/plan", arguments={"new": "other"})
    assert status == 200 and "other begins as its past up to latest" in plan["words"]
    assert not (home / "other").exists()
    assert post(client, "folders/made/deeds/delete/plan")[1]["words"].startswith(f"{folder.path} for good: ")
    assert folder.path.is_dir()
    assert client.get("/api/v1/runs/made/sections/overview").status_code == 200
    begun = post(client, "folders/made/deeds/delete")[1]
    assert ended(client, begun["number"])["state"] == "done"
    assert not folder.path.exists() and client.get("/api/v1/runs/made/sections/overview").status_code == 404


def test_what_the_command_refuses_is_said(client: TestClient, home: Path) -> None:
    folder = write_run(home / "made", leases=2)
    with RunFolder(folder.path).lock:
        assert "is in use" in post(client, "folders/made/deeds/delete/plan")[1]["error"]
        begun = post(client, "folders/made/deeds/delete")[1]
        assert ended(client, begun["number"])["state"] == "refused"
    assert folder.path.is_dir()
    assert post(client, "folders/made/deeds/explode")[0] == 422
    assert post(client, "folders/other/deeds/stop")[0] == 404
    assert post(client, "folders/made/deeds/record", arguments={"games": "--trust"})[0] == 422


def test_beyond_this_machine_no_deed_names_code(home: Path) -> None:
    write_run(home / "made", leases=2)
    keys = Keys(Tokens("the-token", "the-reader"), 8420, is_secure=True)
    library = Library(home)
    client = TestClient(make_page(library, keys, hosts=("127.0.0.1",)), base_url=BASE.replace("http:", "https:"))  # type: ignore[arg-type]
    client.post("/api/v1/session", json={"token": OPERATOR.token})
    pool = "folders/made/deeds/test"
    for path, body in (
        *((pool, {"arguments": {"first": one, "second": "bot:random"}}) for one in ("uci:/bin/true", "bot:os:system")),
        ("start/fit", {"source": "subprocess:run"}),
        ("start/fit", {"source": "/etc/own.yaml"}),
        ("start/fit", {"source": "tic_tac_toe", "settings": "league.preset=os:system"}),
        ("start", {"name": "new", "text": "env: {id: 'subprocess:run'}\n"}),
        ("folders/made/deeds/continue/plan", {"arguments": {"settings": "learner.algorithm=os:system"}}),
    ):
        assert post(client, path, **body)[0] == 422, (path, body)
    assert client.get("/api/v1/deeds").json() == {"deeds": []}
    library.close()


def test_a_reader_does_nothing_to_a_run(client: TestClient, home: Path) -> None:
    write_run(home / "made", leases=2)
    client.cookies.clear()
    session = client.post("/api/v1/session", json={"token": KEYS.entrances[1].token}).json()
    for path in ("folders/made/deeds/stop", "folders/made/deeds/stop/plan", "start", "start/fit"):
        answer = client.post(f"/api/v1/{path}", json={}, headers={CSRF_HEADER: session["csrf"]})
        assert answer.status_code == 403, path


def test_every_operation_stands_in_one_group_and_no_deed_is_called_like_one() -> None:
    listed = [name for names in GROUPS.values() for name in names]
    assert sorted(listed) == sorted(OPERATIONS) and not set(DEEDS) & set(OPERATIONS)
