"""A run that adapts: journaled changes with a reason and a line on the console, none where it may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.core.state.events import SettingsChanged
from league.run.budget import Limits
from league.run.operations.adapter import BY
from league.see.reports.verify import verify_run
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of, go_on, start, state_of, tiny

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


def test_a_run_that_repeats_exactly_adapts_the_same_with_and_without_a_stop(tmp_path: Path) -> None:
    plain = tiny(league=FAR, budget={"env_steps": 12_000})
    start(tmp_path / "once", plain, env_steps=6_000)
    start(tmp_path / "twice", plain, env_steps=2_500)
    go_on(tmp_path / "twice" / "run", env_steps=3_500)
    once, twice = (adapted(tmp_path / name / "run") for name in ("once", "twice"))
    assert once
    assert [(event.changes, event.reason) for event in once] == [(event.changes, event.reason) for event in twice]
    states = [state_of(tmp_path / name / "run") for name in ("once", "twice")]
    assert states[0].players["main-0"].trained_steps == states[1].players["main-0"].trained_steps
    assert verify_run(tmp_path / "twice" / "run").problems == ()
