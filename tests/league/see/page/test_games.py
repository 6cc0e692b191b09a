"""Recorded games and games against policies, over the routes of the page."""

from __future__ import annotations

import contextlib
import functools
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from fastapi.testclient import TestClient

from league.envs.protocol import EnvConfig
from league.errors import LeagueError
from league.judge.contenders.bots import bot_policy
from league.judge.recording.recorder import record_game
from league.judge.recording.replay import RecordedEnv, SeatHolder
from league.judge.recording.replay_file import read_replay, write_replay
from league.see.games.opponents import open_session
from league.see.games.session_store import IDLE_S, MAX_SESSIONS, SessionStore, UnknownGame
from league.see.page.guard import CSRF_HEADER
from league.see.page.routes.games import DRAWN_WITHIN_S, _Store
from league.store.run_folder import RunFolder
from tests.league.see.page.page_runs import OPERATOR

RUN = "/api/v1/runs/made"


@pytest.fixture
def player(client: TestClient) -> TestClient:
    """A client whose requests carry the word of the page."""
    client.headers[CSRF_HEADER] = OPERATOR.csrf
    return client


@pytest.fixture
def recorded(made_run: Path) -> Path:
    folder = RunFolder(made_run).replays_path
    bots = [bot_policy("random", seed=0)] * 2
    for number, names in enumerate((("main-0", "bot:random"), ("main-0", "exploiter"))):
        replay = record_game(EnvConfig("tic_tac_toe"), bots, number, seats=[SeatHolder(name) for name in names])
        write_replay(folder / f"game-{number}.replay", replay)
    (folder / "broken.replay").write_bytes(b"nothing")
    return folder


def test_recorded_games_are_listed_and_shown(client: TestClient, recorded: Path) -> None:
    found = client.get(f"{RUN}/sections/replays").json()
    assert {row["file"] for row in found["rows"]} == {"game-0.replay", "game-1.replay"}
    assert len(found["damaged"]) == 1 and "broken.replay" in found["damaged"][0]
    (row,) = client.get(f"{RUN}/sections/replays", params={"home": "exploiter", "away": "main-0"}).json()["rows"]
    game = client.get(f"{RUN}/replays/{row['file']}", params={"game": row["game"]}).json()
    assert len(game["frames"]) == row["steps"] + 1 and game["frames"][-1]["svg"].startswith("<svg")
    for bad in ("nothing.replay", "..%2f..%2fconfig.yaml", "broken.replay"):
        assert client.get(f"{RUN}/replays/{bad}").status_code in (404, 422)
    assert client.get(f"{RUN}/replays/{row['file']}", params={"game": 7}).status_code == 422


def test_a_recorded_game_is_shown_beside_what_another_policy_would_do(client: TestClient, recorded: Path) -> None:
    path = f"{RUN}/replays/game-0.replay"
    found = client.get(f"{path}/opinion", params={"policy": "bot:tactical"}).json()
    assert found["name"] == "bot:tactical" and len(found["answers"]) == len(client.get(path).json()["frames"]) - 1
    for bad in ({"policy": "bot:path/file.py:make"}, {"policy": "nobody"}, {"policy": "bot:random", "game": 7}):
        assert client.get(f"{path}/opinion", params=bad).status_code == 422


def test_a_game_of_foreign_code_is_drawn_by_another_process_and_only_where_it_is_trusted(
    client: TestClient, recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    game = "tests.league.bad_envs:make"
    replay = msgspec.structs.replace(
        read_replay(recorded / "game-0.replay"), env=RecordedEnv(game, "", {}, teams=(), policies={})
    )
    write_replay(recorded / "foreign.replay", replay)
    commands = []

    def drawn(command: list[str], *, longest_s: float) -> bytes:
        commands.append((command[:2], longest_s))
        return b'{"frames": []}'

    monkeypatch.setattr("league.see.page.routes.games.written_by", drawn)
    path = f"{RUN}/replays/foreign.replay"
    refused = client.get(path)
    assert refused.status_code == 422 and game in refused.json()["error"] and commands == []
    monkeypatch.setattr("league.policies.trust.require_trusted", lambda names, *, what: None)
    assert client.get(path).json() == {"frames": []}
    assert commands == [(["replay", str(recorded / "foreign.replay")], DRAWN_WITHIN_S)]


def test_a_game_is_played_to_its_end_with_take_back(player: TestClient) -> None:
    client = player
    started = client.post(f"{RUN}/play", json={"policy": "bot:random", "seat": 1, "seed": 3})
    assert started.status_code == 200, started.text
    game: dict[str, Any] = started.json()
    path = f"{RUN}/play/{game['id']}"
    assert game["seat"] == 1 and len(game["moves"]) == 1 and len(game["targets"]) == len(game["options"]) == 8
    taken = game["moves"][0][0]["action"]
    illegal = next(a for a in range(9) if a not in {option["action"] for option in game["options"]})
    refused = client.post(path, json={"action": illegal})
    assert refused.status_code == 422 and "allowed are" in refused.json()["error"] and taken
    client.post(path, json={"action": game["options"][0]["action"]})
    back = client.post(path, json={"action": None}).json()
    assert (back["step"], back["svg"]) == (game["step"], game["svg"])
    assert client.get(f"{path}/replay").status_code == 422
    while game["options"]:
        game = client.post(path, json={"action": game["options"][0]["action"]}).json()
    assert "your return is" in game["outcome"]
    assert len(client.get(f"{path}/replay").json()["frames"]) == game["step"] + 1


@pytest.mark.parametrize(
    "body",
    [
        {"policy": "nobody"},
        {"policy": "bot:path/file.py:make"},
        {"policy": "bot:mcts:99999999"},
        {"policy": "bot:random", "seat": 7},
        {"policy": "x" * 999},
        {"policy": "bot:random", "more": 1},
        {},
    ],
)
def test_a_game_that_cannot_begin_is_one_sentence(player: TestClient, body: dict[str, Any]) -> None:
    answer = player.post(f"{RUN}/play", json=body)
    assert answer.status_code == 422 and answer.json()["error"]


def test_no_more_games_are_kept_than_allowed() -> None:
    now = [0.0]
    store = SessionStore(clock=lambda: now[0])
    opened = [lambda: open_session("bot:random", env=EnvConfig("tic_tac_toe"), seed=0)] * (MAX_SESSIONS + 1)
    names = []
    for start in opened:
        now[0] += 1.0
        names.append(store.add(start()))
    with pytest.raises(UnknownGame), store.use(names[0]):
        pass
    with store.use(names[1]) as session:
        session.choose(session.view().options[0].action)
    now[0] += IDLE_S + 1.0
    last = store.add(opened[0]())
    for name in names:
        with pytest.raises(LeagueError), store.use(name):
            pass
    with store.use(last) as session:
        assert session.num_steps == 0


def test_a_move_that_waits_while_its_game_makes_room_for_another_is_refused() -> None:
    """The game goes between the moment a move finds it and the moment the move has it for itself."""
    now = [0.0]
    store = SessionStore(clock=lambda: now[0])
    opened = functools.partial(open_session, "bot:random", env=EnvConfig("tic_tac_toe"), seed=0)
    name = store.add(opened())

    class LateLock:
        """Lets another game come first, once."""

        is_first = True

        def __enter__(self) -> None:
            if self.is_first:
                self.is_first = False
                now[0] += IDLE_S + 1.0
                store.add(opened())

        def __exit__(self, *error: object) -> None:
            pass

    store._games[name].lock = cast(threading.Lock, LateLock())
    with pytest.raises(UnknownGame, match="no longer kept"), store.use(name):
        pass


def test_the_first_games_of_two_people_at_once_are_kept_in_one_store(monkeypatch: pytest.MonkeyPatch) -> None:
    both = threading.Barrier(2)

    class SlowStore:
        def __init__(self) -> None:
            with contextlib.suppress(threading.BrokenBarrierError):
                both.wait(timeout=0.2)

    monkeypatch.setattr("league.see.games.session_store.SessionStore", SlowStore)
    store = _Store()
    with ThreadPoolExecutor(2) as threads:
        one, two = threads.map(lambda _: store.get(), range(2))
    assert one is two
