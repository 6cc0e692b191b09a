"""The payoff, lineage, meta-game and comparison of the page: the figures of the run, read and extended."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from fastapi.testclient import TestClient

from league.core.metagame.lineage import lineage_of
from league.core.metagame.ratings import league_ratings
from league.core.state.events import EVENTS
from league.see.page.runs.lineage_follower import LineageFollower
from league.see.reports.figures.lineage_graph import lineage_graph
from league.see.reports.figures.meta_game import meta_game
from league.see.reports.figures.opponent_mix import opponent_mix
from league.see.reports.figures.payoff_matrix import payoff_matrix
from league.see.reports.figures.ratings_over_time import ratings_over_time
from league.see.reports.figures.yardsticks import yardsticks
from league.store.journal import Journal
from league.store.run_folder import RunFolder
from tests.league.see.page.conftest import BASE
from tests.league.see.page.page_runs import OPERATOR, made_league, page_of, write_run
from tests.league.tiny_runs import events_of, state_of

DEADLINE_S = 20.0


def plain(figure: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(figure))


def answer(client: TestClient, name: str, run: str = "made", **query: Any) -> dict[str, Any]:
    found = client.get(f"/api/v1/runs/{run}/sections/{name}", params=query)
    assert found.status_code == 200, found.text
    view = found.json()
    assert isinstance(view, dict)
    return view


def computed(client: TestClient, name: str, key: str, **query: Any) -> dict[str, Any]:
    """The answer once what is computed in the background is there."""
    end = time.monotonic() + DEADLINE_S
    while not (view := answer(client, name, **query))[key]:
        assert time.monotonic() < end, view
        time.sleep(0.02)
    return view


def test_the_payoff_is_the_matrix_of_the_state(client: TestClient, made_run: Path) -> None:
    view, state = computed(client, "payoff", "rated"), state_of(made_run)
    assert view["matrix"] == plain(payoff_matrix(state, league_ratings(state)))
    seat = computed(client, "payoff", "rated", seat=1, who="all", limit=3)
    assert seat["matrix"] == plain(payoff_matrix(state, league_ratings(state), who="all", seat=1, limit=3))


def test_a_pair_shows_its_games_from_both_sides(client: TestClient, made_run: Path) -> None:
    matrix = computed(client, "payoff", "rated")["matrix"]
    cell = matrix["cells"][0]
    home, away = (matrix["policies"][place]["policy"] for place in cell[:2])
    one, other = answer(client, "payoff", home=home, away=away)["pair"]
    assert (one["home"], one["away"], one["games"]) == (home, away, cell[5])
    assert (other["home"], other["away"], other["games"]) == (away, home, cell[5])
    unmet = client.get("/api/v1/runs/made/sections/payoff", params={"home": home, "away": "main-9"})
    assert unmet.status_code == 422 and "no policy 'main-9'" in unmet.json()["error"]


def test_the_lineage_and_the_mix_are_those_of_the_journal(client: TestClient, made_run: Path) -> None:
    computed(client, "payoff", "rated")
    view = computed(client, "lineage", "graph", player="main-exploiter-0")
    lineage = lineage_of(events_of(made_run))
    assert view["graph"] == plain(lineage_graph(lineage, league_ratings(state_of(made_run))))
    assert view["mix"] == plain(opponent_mix(lineage, "main-exploiter-0"))


def test_strength_is_the_ratings_and_the_yardsticks(client: TestClient, made_run: Path) -> None:
    view, state = computed(client, "strength", "ratings", limit=1), state_of(made_run)
    assert view["ratings"] == plain(ratings_over_time(state, league_ratings(state), limit=1))
    assert view["yardsticks"] == plain(yardsticks(state)) and view["yardsticks"]["curves"]


def test_the_meta_game_is_that_of_the_state(client: TestClient, made_run: Path) -> None:
    view, state = computed(client, "meta_game", "game"), state_of(made_run)
    assert view["game"] == plain(meta_game(state, league_ratings(state)))
    assert view["seq"] == len(events_of(made_run))


def test_a_lineage_grows_with_its_journal_and_starts_again_with_another(tmp_path: Path) -> None:
    league, text = made_league(leases=60)
    folder = RunFolder.create(tmp_path / "run", config_yaml=text)
    journal = Journal.create(folder.journal_path, events=EVENTS)
    follower = LineageFollower(folder)
    for events in (league.journal[:200], league.journal[200:]):
        for event in events:
            journal.append([event], wall_time=0.0)
        journal.commit()
        grown = follower.extend()
    assert grown == lineage_of(league.journal)
    journal.close()
    for path in folder.path.glob("journal.*"):
        path.unlink()
    other, _ = made_league(leases=20, seed=4)
    journal = Journal.create(folder.journal_path, events=EVENTS)
    journal.append(other.journal, wall_time=0.0)
    journal.commit()
    journal.close()
    assert follower.extend() == lineage_of(other.journal)


@pytest.fixture
def two_runs(tmp_path: Path) -> Path:
    for name, leases in (("one", 20), ("two", 30)):
        write_run(tmp_path / name, leases=leases)
    return tmp_path


def test_runs_of_one_folder_are_compared(two_runs: Path) -> None:
    library, page = page_of(two_runs)
    try:
        client = TestClient(page, base_url=BASE)  # type: ignore[arg-type]
        client.post("/api/v1/session", json={"token": OPERATOR.token})
        found = client.get("/api/v1/compare", params={"run": ["one", "two"]}).json()
        assert found["runs"] == ["one", "two"] and found["settings"] == []
        best = next(curve for curve in found["curves"] if curve["metric"] == "league/best_rating_elo")
        assert [curve["run"] for curve in best["runs"]] == ["one", "two"]
        assert best["runs"][0]["values"][-1] == 20.0 * 29
        assert client.get("/api/v1/compare").status_code == 422
        assert client.get("/api/v1/compare", params={"run": "three"}).status_code == 404
        assert answer(client, "compare", run="two") == {"run": "two"}
    finally:
        library.close()
