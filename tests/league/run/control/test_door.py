"""The control door over a queue that a test answers: who may do what, and what is refused before the league sees it."""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from league.config.run_config import ControlConfig
from league.http.address import AddressError
from league.http.token_file import remove_tokens, tokens_in
from league.http.trust import trust_of
from league.run.control import api, client
from league.run.control.door import open_door
from league.run.control.door_file import DoorFile, NoDoor, read_door_file, socket_path, write_door_file
from league.run.control.exposition import exposition
from league.run.operations.catalogue import OPERATIONS
from league.run.operations.operator import Done
from league.run.operations.plans import OperationRefused
from league.store.lock import Holder, this_process
from league.store.run_folder import RunFolder, RunStatus
from tests.league.http.certificates import make_certificates

OPERATION = "/api/v1/operations"


class Desk:
    """Answers every operation at once; refuses the player "nobody" and the key `refused`, never answers for "slow"."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, object], str, str]] = []
        self.refused = ""

    def submit(self, name: str, arguments: Mapping[str, object], *, by: str, reason: str = "") -> Future[Done]:
        self.asked.append((name, dict(arguments), by, reason))
        answer: Future[Done] = Future()
        if arguments.get("player") == "nobody":
            answer.set_exception(OperationRefused("there is no player nobody"))
        elif self.refused and arguments.get("key") == self.refused:
            answer.set_exception(OperationRefused(f"there is no {self.refused}"))
        elif arguments.get("player") != "slow":
            answer.set_result(Done(f"did {name}", 7, 8, True))
        return answer


class Door:
    """A door that is open, and its two ways in."""

    def __init__(self, folder: RunFolder, desk: Desk) -> None:
        self.folder, self.desk, self.file = folder, desk, read_door_file(folder)
        self.tokens = tokens_in(folder.tokens_path)

    def unix(self, method: str, path: str, **options: Any) -> httpx.Response:
        with httpx.Client(transport=httpx.HTTPTransport(uds=self.file.socket), timeout=60.0) as way:
            return way.request(method, f"http://localhost{path}", **options)

    def tcp(self, method: str, path: str, token: str = "", **options: Any) -> httpx.Response:
        headers = {**({"authorization": f"Bearer {token}"} if token else {}), **options.pop("headers", {})}
        return httpx.request(method, f"{self.file.url}{path}", headers=headers, timeout=60.0, **options)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def run_folder(path: Path) -> RunFolder:
    folder = RunFolder.create(path, config_yaml="env: {id: tic_tac_toe}")
    folder.write_status(RunStatus(this_process(), "running", 0.0, 4e9, 1, games=5))
    row = {"step": 9, "time": 1.0, "values": {"league/games": 5.0, "player/main-0/seat_1/return_mean": 0.25}}
    folder.metrics_path.write_text(json.dumps(row) + '\n{"step": 10, "va')
    return folder


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    folder, desk = run_folder(tmp_path_factory.mktemp("door") / "run"), Desk()
    with open_door(folder, desk, ControlConfig(listen=f"127.0.0.1:{free_port()}"), say=pytest.fail):
        yield Door(folder, desk)


def test_the_socket_and_its_file_are_of_the_user_alone(door: Door) -> None:
    for path in (Path(door.file.socket), door.folder.door_path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_operation_over_the_socket_is_handed_on_with_who_and_why(door: Door) -> None:
    found = client.operate(door.folder.path, "set", {"key": "a.b", "value": [1, {"c": None}]}, reason="because")
    assert found == {"words": "did set", "first_event": 7, "last_event": 8, "undoable": True}
    name, arguments, by, reason = door.desk.asked[-1]
    assert (name, arguments, reason) == ("set", {"key": "a.b", "value": [1, {"c": None}]}, "because")
    assert by.endswith(f"@{socket.gethostname()}")


def test_a_refusal_is_its_sentence(door: Door) -> None:
    with pytest.raises(client.ControlRefused, match=r"^there is no player nobody$"):
        client.operate(door.folder.path, "reset", {"player": "nobody"})


def test_arguments_are_checked_before_the_league_sees_them(door: Door) -> None:
    asked = len(door.desk.asked)
    for name, arguments in (("reset", {}), ("reset", {"player": 3}), ("undo", {"event": "x"}), ("add", {"rol": "m"})):
        with pytest.raises(client.ControlRefused):
            client.operate(door.folder.path, name, arguments)
    assert len(door.desk.asked) == asked


@pytest.mark.parametrize(
    ("token", "read", "change"), [("", 401, 401), ("wrong", 401, 401), ("reader", 200, 403), ("operator", 200, 200)]
)
def test_over_tcp_each_token_allows_its_own_requests(door: Door, token: str, read: int, change: int) -> None:
    given_token = {"reader": door.tokens.reader, "operator": door.tokens.operator}.get(token, token)
    asked = len(door.desk.asked)
    for path in ("/api/v1/run", "/metrics"):
        assert door.tcp("GET", path, given_token).status_code == read
    assert door.tcp("POST", f"{OPERATION}/pause", given_token, json={"what": "training"}).status_code == change
    assert len(door.desk.asked) == asked + (change == 200)


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": ""},
        {"x-forwarded-for": "unix:"},
        {"x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "unix"},
        {"forwarded": 'for="_socket"'},
    ],
)
def test_what_a_request_says_of_its_origin_opens_nothing(door: Door, headers: dict[str, str]) -> None:
    assert door.tcp("GET", "/api/v1/run", headers=headers).status_code == 401
    assert door.tcp("POST", f"{OPERATION}/pause", headers=headers, json={"what": "training"}).status_code == 401
    found = door.tcp("POST", f"{OPERATION}/pause", door.tokens.operator, headers=headers, json={"what": "rating"})
    assert found.status_code == 200
    assert door.desk.asked[-1][2].endswith("token@127.0.0.1")


@pytest.mark.parametrize(("needs_token", "status"), [(True, 401), (False, 200)])
def test_the_listener_decides_whether_a_token_is_wanted(door: Door, needs_token: bool, status: int) -> None:
    app = api.make_api(door.folder, door.desk, tokens=door.tokens if needs_token else None)
    without_address = httpx.ASGITransport(app, client=None)  # type: ignore[arg-type]

    async def call() -> tuple[int, int]:
        async with httpx.AsyncClient(transport=without_address, base_url="http://localhost") as caller:
            read = await caller.get("/api/v1/run")
            change = await caller.post(f"{OPERATION}/pause", json={"what": "training"})
            return read.status_code, change.status_code

    assert asyncio.run(call()) == (status, status)


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b'{"what": "training"}', "application/x-www-form-urlencoded"),
        (b"[1]", "application/json"),
        (b"{bad", "application/json"),
    ],
)
def test_what_is_no_json_object_is_refused_by_that_word(content: bytes, kind: str, door: Door) -> None:
    said = door.unix("POST", f"{OPERATION}/pause", content=content, headers={"content-type": kind})
    assert said.status_code == 422
    assert said.json()["error"] == "the request must be a JSON object, sent as application/json"


def test_a_page_of_another_site_reaches_nothing(door: Door) -> None:
    token = door.tokens.operator
    assert door.tcp("GET", "/api/v1/run", token, headers={"host": "evil.example"}).status_code == 400
    plain = door.tcp(
        "POST", f"{OPERATION}/pause", content=b'{"what": "training"}', headers={"content-type": "text/plain"}
    )
    assert plain.status_code == 401


def test_long_bodies_and_unknown_paths(door: Door) -> None:
    assert door.unix("POST", f"{OPERATION}/set", content=b"x" * (api.MAX_BODY_BYTES + 1)).status_code == 413
    chunked = door.unix("POST", f"{OPERATION}/set", content=iter([b"{}"]))
    assert chunked.status_code == 413
    missing, wrong = door.unix("GET", "/docs"), door.unix("GET", f"{OPERATION}/pause")
    assert (missing.status_code, list(missing.json())) == (404, ["error"])
    assert (wrong.status_code, list(wrong.json()), wrong.headers["allow"]) == (405, ["error"], "POST")


def test_a_daemon_that_does_not_answer_is_reported(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "ANSWER_S", 0.1)
    answer = door.unix("POST", f"{OPERATION}/reset", json={"player": "slow"})
    assert answer.status_code == 504
    assert "may still do so" in answer.json()["error"]


def test_health_follows_the_heartbeat(door: Door) -> None:
    beat = RunStatus(this_process(), "running", 0.0, 4e9, 1)
    assert door.unix("GET", "/healthz").status_code == 200
    assert door.unix("GET", "/readyz").status_code == 200
    door.folder.write_status(RunStatus(this_process(), "draining", 0.0, 1.0, 1))
    assert door.unix("GET", "/healthz").status_code == 503
    assert door.unix("GET", "/readyz").status_code == 503
    door.folder.write_status(beat)


def test_the_description_is_typed_and_whole(door: Door) -> None:
    described = door.unix("GET", "/openapi.json").json()
    for operation in OPERATIONS.values():
        post = described["paths"][f"{OPERATION}/{operation.name}"]["post"]
        assert post["summary"] == operation.what
        name = post["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        schema = described["components"]["schemas"][name]
        assert set(schema["properties"]) == {argument.name for argument in operation.arguments} | {"by", "reason"}
        assert set(schema.get("required", [])) == {item.name for item in operation.arguments if item.is_required}


def test_metrics_have_names_and_labels_of_prometheus(door: Door) -> None:
    lines = exposition(door.folder).decode().splitlines()
    assert "league_games_total 5.0" in lines
    assert 'league_player_seat_return_mean{player="main-0",seat="1"} 0.25' in lines
    assert 'league_phase{phase="running"} 1.0' in lines


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=st.text(max_size=40), body=st.binary(max_size=300), method=st.sampled_from(["GET", "POST", "PUT"]))
def test_hostile_requests_are_answered_and_change_nothing(door: Door, path: str, body: bytes, method: str) -> None:
    asked = len(door.desk.asked)
    url = httpx.URL("http://localhost").copy_with(raw_path=b"/api/v1/operations/" + path.encode().hex().encode())
    with httpx.Client(transport=httpx.HTTPTransport(uds=door.file.socket), timeout=60.0) as way:
        assert 400 <= way.request(method, url, content=body).status_code < 500
        assert 400 <= way.request("POST", f"http://localhost{OPERATION}/set", content=body).status_code < 500
    assert len(door.desk.asked) == asked


def test_nothing_is_left_when_the_door_closes(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    before = threading.active_count()
    with open_door(folder, Desk(), ControlConfig(), say=pytest.fail):
        assert read_door_file(folder).url == ""
        assert Path(read_door_file(folder).socket).exists()
    assert not folder.door_path.exists()
    assert not (folder.path / "control.sock").exists()
    assert threading.active_count() == before
    with pytest.raises(NoDoor, match="league up"):
        read_door_file(folder)


def test_the_door_of_a_live_run_is_not_reached_by_a_copy_of_its_folder(tmp_path: Path) -> None:
    folder, desk = run_folder(tmp_path / "run"), Desk()
    with open_door(folder, desk, ControlConfig(), say=pytest.fail):
        (tmp_path / "copy").mkdir()
        for path in (folder.config_path, folder.door_path):
            shutil.copy(path, tmp_path / "copy")
        with pytest.raises(NoDoor, match="copy is not running"):
            client.operate(tmp_path / "copy", "pause", {"what": "training"})
    assert desk.asked == []


def test_the_door_of_a_dead_daemon_is_reported_and_replaced(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    dead = Holder(pid=2**22 + 1, host=socket.gethostname(), started=1)
    write_door_file(folder, DoorFile(dead, str(folder.path / "control.sock")))
    (folder.path / "control.sock").touch()
    with pytest.raises(NoDoor, match="not running"):
        client.operate(folder.path, "pause", {"what": "training"})
    with open_door(folder, Desk(), ControlConfig(), say=pytest.fail):
        assert client.operate(folder.path, "pause", {"what": "training"})["words"] == "did pause"


def test_a_long_path_has_its_socket_elsewhere(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / ("x" * 120))
    assert len(str(socket_path(folder))) < 100
    with open_door(folder, Desk(), ControlConfig(), say=pytest.fail):
        assert client.operate(folder.path, "pause", {"what": "training"})["words"] == "did pause"


def test_an_address_in_use_is_reported(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        config = ControlConfig(listen=f"127.0.0.1:{taken.getsockname()[1]}")
        with pytest.raises(AddressError, match=r"control\.listen"), open_door(folder, Desk(), config, say=pytest.fail):
            pytest.fail("it opened")


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (ControlConfig(listen="0.0.0.0:80"), "other machines"),
        (ControlConfig(listen="[::]:80"), "other machines"),
        (ControlConfig(listen="example.org:80"), "other machines"),
        (ControlConfig(listen="127.0.0.1"), "HOST:PORT"),
        (ControlConfig(listen="127.0.0.1:99999"), "HOST:PORT"),
        (ControlConfig(tls_cert="a.pem"), "needs its key"),
    ],
)
def test_addresses_that_are_refused(config: ControlConfig, problem: str) -> None:
    assert problem in config.problems()[0]


@pytest.mark.parametrize("listen", ["127.0.0.1:80", "[::1]:80", "localhost:80", ""])
def test_addresses_of_loopback_are_accepted(listen: str) -> None:
    assert ControlConfig(listen=listen).problems() == []


def test_the_tokens_stay_over_restarts_in_files_of_their_own(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    config, seen = ControlConfig(listen=f"127.0.0.1:{free_port()}"), []
    for _ in range(2):
        with open_door(folder, Desk(), config, say=pytest.fail):
            seen.append((folder.tokens_path / "reader").read_text().strip())
            found = httpx.get(
                f"{read_door_file(folder).url}/api/v1/run", headers={"authorization": f"Bearer {seen[0]}"}
            )
            assert found.status_code == 200
            holders = [
                path for path in folder.path.rglob("*") if path.is_file() and seen[0] in path.read_text("latin1")
            ]
            assert holders == [folder.tokens_path / "reader"]
            assert stat.S_IMODE(holders[0].stat().st_mode) == 0o600
    remove_tokens(folder.tokens_path, storage=folder.storage)
    with open_door(folder, Desk(), config, say=pytest.fail):
        old = {"authorization": f"Bearer {seen[0]}"}
        assert httpx.get(f"{read_door_file(folder).url}/api/v1/run", headers=old).status_code == 401


def test_a_door_on_its_socket_alone_has_no_tokens(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run")
    with open_door(folder, Desk(), ControlConfig(), say=pytest.fail):
        assert not folder.tokens_path.exists()


def test_a_door_with_a_certificate_is_reached_by_tls_alone(tmp_path: Path) -> None:
    made = make_certificates(tmp_path)
    folder = run_folder(tmp_path / "run")
    config = ControlConfig(listen=f"localhost:{free_port()}", tls_cert=made.cert, tls_key=made.key)
    with open_door(folder, Desk(), config, say=pytest.fail):
        url = f"{read_door_file(folder).url}/api/v1/run"
        bearer = {"authorization": f"Bearer {tokens_in(folder.tokens_path).operator}"}
        trusted = trust_of(url, ca_file=made.ca)
        assert httpx.get(url, headers=bearer, verify=trusted, timeout=60.0).status_code == 200
        assert httpx.get(url, verify=trusted, timeout=60.0).status_code == 401
        for address, trust in ((url, True), (url.replace("https", "http"), True)):
            with pytest.raises(httpx.TransportError):
                httpx.get(address, headers=bearer, verify=trust, timeout=60.0)
