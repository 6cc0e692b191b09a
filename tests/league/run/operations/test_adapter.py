"""A run that adapts: journaled changes with a reason and a line on the console, none where it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.core import scouting
from league.core.state.events import SettingsChanged
from league.run.budget import Limits
from league.run.operations.adapter import BY
from league.see.page.sections.overview import population_signs
from league.see.reports.doctor import examine_run
from league.see.reports.explain import explain_setting
from league.see.reports.status.status_report import read_status
from league.see.reports.verify import verify_run
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of, go_on, start, state_of, tiny

LIFE = {"min_steps": 320, "timeout_steps": 320}
MEASURED: dict[str, Any] = {
    "population": {"choice": "measured"},
    "players": [
        {
            "role": "main_agent",
            "matchmaker": {"kind": "main_agent", "self_play": 1.0, "pfsp": 0.0, "verification": 0.0},
            "gate": {"min_steps": 10**8, "timeout_steps": 10**9},
        },
        {"role": "main_exploiter", "name": "scout", "step_weight": 0.25, "gate": {**LIFE, "reset_probability": 0.0}},
    ],
}
COUNTERS: dict[str, Any] = {
    **MEASURED,
    "players": [
        {**MEASURED["players"][0], "matchmaker": {"kind": "main_agent", "verification": 0.0, **scouting.COUNTER_GAMES}},
        {**MEASURED["players"][1], "step_weight": 1.0, "gate": {**LIFE, "reset_probability": 1.0}},
    ],
}
FAR = {"players": [{"role": "main_agent", "gate": {"min_steps": 10**8, "timeout_steps": 10**9}}]}


def adapted(path: Path) -> list[SettingsChanged]:
    return [event for event in events_of(path) if isinstance(event, SettingsChanged)]


def test_a_remedy_is_in_the_journal_with_its_reason_and_said_in_one_line(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=FAR, budget={"env_steps": 10_000})
    daemon = bench.daemon(Limits())
    daemon.run()
    event = adapted(bench.folder.path)[0]
    assert (event.by, event.remedy) == (BY, "gate of group 0 comes nearer")
    assert "as its gate waits for" in event.reason
    (line, *_) = bench.said
    assert "the league sets league.players.0.gate.min_steps 100000000 ->" in line and "\n" not in line
    assert bench.folder.read_config() == bench.league.state.config_text
    assert bench.league.state.players["main-0"].num_snapshots > 2


@pytest.mark.parametrize("changes", [{"adapt": False}, {"budget": {"env_steps": None}}])
def test_nothing_changes_where_it_may_not_or_where_there_is_no_budget_to_project(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    bench = Bench(tmp_path / "run", **{"league": FAR, "budget": {"env_steps": 10_000}, **changes})
    bench.run(env_steps=9_000)
    assert adapted(bench.folder.path) == []


@pytest.mark.parametrize("league", [FAR, COUNTERS], ids=["gates too far", "counters that go"])
def test_a_run_that_repeats_exactly_adapts_the_same_with_and_without_a_stop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, league: dict[str, Any]
) -> None:
    monkeypatch.setattr(scouting, "HOPELESS", 0.9)
    plain = tiny(league=league, budget={"env_steps": 24_000})
    start(tmp_path / "once", plain, env_steps=12_000)
    start(tmp_path / "twice", plain, env_steps=5_000)
    go_on(tmp_path / "twice" / "run", env_steps=7_000)
    once, twice = (adapted(tmp_path / name / "run") for name in ("once", "twice"))
    assert once and ("counters go" in [event.remedy for event in once]) == (league is COUNTERS)
    assert [(event.changes, event.reason) for event in once] == [(event.changes, event.reason) for event in twice]
    states = [state_of(tmp_path / name / "run") for name in ("once", "twice")]
    assert states[0].players["main-0"].trained_steps == states[1].players["main-0"].trained_steps
    assert verify_run(tmp_path / "twice" / "run").problems == ()
    population, reason = scouting.population_of(states[1])
    (row,) = explain_setting(tmp_path / "twice" / "run", "league.population.choice").settings
    assert row.origin.endswith(f"now {population}: {reason}") == (league is COUNTERS)


def test_a_scout_and_what_follows_from_it_are_journaled_and_shown_by_every_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scouting, "MIN_LIFE_UPDATES", 10)
    start(tmp_path, tiny(league=MEASURED, budget={"env_steps": 32_000}), env_steps=20_000)
    run = tmp_path / "run"
    steps = [event for event in adapted(run) if event.remedy.startswith("scout")]
    assert [event.remedy.partition(":")[0] for event in steps[:3]] == ["scout 1 begins", "scout 1", "scout 2 begins"]
    assert {event.by for event in steps} == {BY}
    assert state_of(run).players["scout-0"].generation >= 1  # the second starts from its first weights
    population, reason = scouting.population_of(state_of(run))
    assert (population, reason) in [(event.remedy.partition(": ")[2], event.reason) for event in steps]
    shown = f"{population}: {reason}"
    assert f"population: {shown}" in read_status(run).text()
    (row,) = explain_setting(run, "league.population.choice").settings
    assert row.origin.endswith(f"now {shown}")
    assert [sign.evidence for sign in population_signs(state_of(run))] == [reason]
    assert verify_run(run).problems == ()
    found = {finding.check for finding in examine_run(run).findings}
    assert "nobody has tried to exploit the main agent" not in found
