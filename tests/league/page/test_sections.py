"""The sections of the page over a made run: what they say is what the journal says."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from league.page.sections.yardsticks import score_interval, yardsticks
from league.reports.status import open_state
from league.store.run_folder import RunFolder
from tests.league.page.page_runs import made_league
from tests.league.tiny_runs import events_of


def section(client: TestClient, name: str, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/runs/made/sections/{name}", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, dict)
    return found


def test_overview_has_the_totals_of_the_journal(client: TestClient, made_run: Path) -> None:
    state, found = open_state(RunFolder(made_run)), section(client, "overview")
    assert (found["games"], found["env_steps"]) == (state.totals.games, state.totals.env_steps)
    assert (found["players"], found["snapshots"]) == (len(state.players), len(state.snapshots))
    assert (found["game"], found["phase"], found["is_live"]) == ("tic_tac_toe", "stopped", False)
    assert found["best_rating"]["values"][-1] == 20.0 * 29


def test_yardsticks_are_the_scores_against_fixed_opponents() -> None:
    """Against a slow count over the events."""
    league, _ = made_league(leases=60)
    wins = games = 0.0
    for event in league.journal:
        for outcome in getattr(event, "outcomes", ()):
            pair = outcome.policies
            if "bot:random" in pair and any(name.startswith("main-0-s") for name in pair):
                home = next(i for i, name in enumerate(pair) if name.startswith("main-0-s"))
                wins += outcome.wins[home][1 - home] + 0.5 * outcome.draws[home][1 - home]
                games += outcome.games
    (found,) = yardsticks(league.state)
    assert found.opponent == "bot:random"
    assert games > 0 and sum(point.games for point in found.points) == games
    assert sum(point.score * point.games for point in found.points) == pytest.approx(wins)
    assert [point.steps for point in found.points] == sorted(point.steps for point in found.points)


@pytest.mark.parametrize(("wins", "games"), [(0, 1), (3, 10), (70, 100), (10, 10)])
def test_the_interval_of_a_score_solves_its_equation(wins: int, games: int) -> None:
    """Its ends are the p with |score - p| = z sqrt(p (1 - p) / n): Wilson's own definition."""
    score = wins / games
    for end in score_interval(score, games):
        if 0.0 < end < 1.0:
            assert abs(score - end) == pytest.approx(1.96 * math.sqrt(end * (1.0 - end) / games), rel=1e-6)


def test_events_come_newest_first_and_page_back_to_the_first(client: TestClient, made_run: Path) -> None:
    everything = events_of(made_run)
    seen: list[int] = []
    before = 0
    while True:
        found = section(client, "events", kind="all", before=before, limit=37)
        seen += [row["seq"] for row in found["rows"]]
        before = found["next"]
        if not before:
            break
    assert seen == list(range(len(everything), 0, -1))
    assert found["rows"][-1]["kind"] == "LeagueCreated"


def test_events_are_found_by_text_in_either_case(client: TestClient, made_run: Path) -> None:
    found = section(client, "events", text="MAIN-0-S1", limit=200)
    assert found["rows"] and all("main-0-s1" in row["body"] for row in found["rows"])
    assert not any(row["kind"] in found["routine"] for row in found["rows"])
    assert section(client, "events", kind="PlayerAdded")["rows"][0]["kind"] == "PlayerAdded"
    assert json.loads(found["rows"][0]["body"])


def test_a_wrong_run_or_section_is_one_sentence(client: TestClient) -> None:
    answer = client.get("/api/v1/runs/mad/sections/overview")
    assert answer.status_code == 404 and "made" in answer.json()["error"]
