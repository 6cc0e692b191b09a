"""The sections of the page over a made run: what they say is what the journal says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from league.core.metagame.ratings import league_ratings
from league.core.state.events import DirectiveIssued
from league.see.reports.doctor import examine_run
from league.see.reports.figures.yardsticks import yardsticks
from league.see.reports.payoff import payoff_rows
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from tests.league.commands import wait_until
from tests.league.see.page.page_runs import made_league
from tests.league.tiny_runs import events_of, state_of


def section(client: TestClient, name: str, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/runs/made/sections/{name}", params=query)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, dict)
    return found


def test_overview_has_the_totals_of_the_journal(client: TestClient, made_run: Path) -> None:
    wait_until(lambda: section(client, "overview")["speed"]["values"], "the metrics to be read")
    state, found = state_of_run(RunFolder(made_run)), section(client, "overview")
    assert (found["games"], found["env_steps"]) == (state.totals.games, state.totals.env_steps)
    assert (found["players"], found["snapshots"]) == (len(state.players), len(state.snapshots))
    assert (found["game"], found["phase"], found["is_live"]) == ("tic_tac_toe", "stopped", False)
    assert (found["speed"]["values"][-1], found["speed"]["times"][-1]) == (900.0 + 29, 1.7e9 + 29)
    assert found["doing"]["text"] == "Nothing: the run is stopped." and "25%" in found["doing"]["more"]
    assert found["health"]["kind"] == "good" and found["stronger"]["text"]


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
    found = yardsticks(league.state)
    points = [point for curve in found.curves if curve.player == "main-0" for point in curve.points]
    assert {curve.yardstick for curve in found.curves} == {"bot:random"}
    assert games > 0 and sum(point.games for point in points) == games
    assert sum(point.score * point.games for point in points) == pytest.approx(wins)


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
    assert found["rows"][-1]["text"] == "The league was made, for 2 seats."


def test_events_are_found_by_text_in_either_case(client: TestClient, made_run: Path) -> None:
    found = section(client, "events", text="MAIN-0-S1", limit=200)
    assert found["rows"] and all("main-0-s1" in row["body"] for row in found["rows"])
    assert not any(row["kind"] in found["routine"] for row in found["rows"])
    assert section(client, "events", kind="PlayerAdded")["rows"][0]["kind"] == "PlayerAdded"
    assert json.loads(found["rows"][0]["body"])


def test_a_wrong_run_or_section_is_one_sentence(client: TestClient) -> None:
    answer = client.get("/api/v1/runs/mad/sections/overview")
    assert answer.status_code == 404 and "made" in answer.json()["error"]


def test_the_table_has_the_ratings_and_their_trend(client: TestClient, made_run: Path) -> None:
    wait_until(lambda: section(client, "table")["as_of"] > 0, "the ratings")
    state = state_of(made_run)
    ratings = {row.policy: row for row in league_ratings(state)}
    rows = {row["name"]: row for row in section(client, "table")["rows"]}
    assert set(rows) == set(state.players)
    for name, row in rows.items():
        names = [f"{name}-s{number}" for number in range(state.players[name].num_snapshots)]
        rated = [ratings[each] for each in names if ratings[each].games]
        assert row["trend"] == pytest.approx([each.elo for each in rated][-12:])
        assert (row["elo"], row["low"]) == (pytest.approx(rated[-1].elo), pytest.approx(rated[-1].low))
    policies = section(client, "table", show="policies", text="bot:")["rows"]
    assert [(row["name"], row["role"]) for row in policies] == [("bot:random", "fixed")]


def test_a_player_shows_its_opponents_as_the_payoff_has_them(client: TestClient, made_run: Path) -> None:
    state = state_of(made_run)
    found = section(client, "player", player="main-0")
    expected = {row.away: row for row in payoff_rows(state, ("main-0",))}
    assert {each["name"] for each in found["opponents"]} == set(expected)
    for each in found["opponents"]:
        row = expected[each["name"]]
        assert each["games"] == row.games
        assert each["weight"] == pytest.approx(row.effective_games)
        assert (each["win_rate"], each["lower"]) == (pytest.approx(row.win_rate), pytest.approx(row.lower))
    assert sum(found["mix"].values()) == pytest.approx(1.0)
    assert {line["label"] for chart in found["charts"] for line in chart["lines"]} >= {"loss_policy", "entropy"}


def test_a_player_shows_the_evidence_of_its_gates(client: TestClient, made_run: Path) -> None:
    wait_until(lambda: section(client, "player", player="main-0")["is_whole"], "the history")
    found = section(client, "player", player="main-0")
    issued = [
        (seq, event)
        for seq, event in enumerate(events_of(made_run), start=1)
        if isinstance(event, DirectiveIssued) and event.directive.player == "main-0" and event.evidence
    ]
    assert [trial["seq"] for trial in found["trials"]] == [seq for seq, _ in reversed(issued)][:30]
    assert found["trials"][0]["evidence"][0]["opponent"] == issued[-1][1].evidence[0].opponent
    assert "was taken" in " ".join(change["text"] for change in found["changes"])


def test_the_doctor_says_what_the_command_says(client: TestClient, made_run: Path) -> None:
    wait_until(lambda: section(client, "doctor")["is_ready"], "the examination", deadline_s=60.0)
    report, found = examine_run(made_run), section(client, "doctor")
    assert [finding["what"] for finding in found["findings"]] == [finding.what for finding in report.findings]
    assert (found["checks"], found["games"], found["error"]) == (report.checks, report.games, "")


def test_the_fleet_shows_failures_and_the_end_of_a_log(client: TestClient, made_run: Path) -> None:
    (made_run / "logs").mkdir(exist_ok=True)
    (made_run / "logs" / "daemon.log").write_text("one\ntwo\n")
    assert section(client, "fleet", log="daemon")["lines"] == ["one", "two"]
    for name in ("../config", "/etc/passwd", "nobody"):
        assert client.get("/api/v1/runs/made/sections/fleet", params={"log": name}).status_code == 422
