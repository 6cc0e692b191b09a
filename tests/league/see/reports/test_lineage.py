"""The lineage of a run folder as text, JSON and DOT."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from league.core.metagame.lineage import Lineage, LineageNode
from league.core.state.commands import ConfirmSnapshot, CreateLeague, RequestSnapshot, StartRun
from league.core.state.events import Evidence
from league.core.state.league_config import LeagueConfig
from league.errors import LeagueError
from league.see.reports.lineage import LineageReport, read_lineage
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder
from tests.league.commands import league


def run_with_snapshots(path: Path) -> Path:
    """A run whose main agent has three snapshots."""
    folder = RunFolder.create(path, config_yaml="env: {id: connect_four}\n")
    league = JournaledLeague.create(folder.journal_path, wall_time=lambda: 0.0)
    league.execute(CreateLeague(0, 2, (0, 1), LeagueConfig()))
    league.execute(StartRun())
    for reason in ("first", "second"):
        league.execute(RequestSnapshot("main-0", reason))
    for order in list(league.state.directives.values()):
        league.execute(ConfirmSnapshot(order.directive_id, "3" * 64, 1, 100 * order.directive_id))
    league.commit()
    league.close()
    return path


def test_a_run_is_shown_as_a_tree_of_its_snapshots(tmp_path: Path) -> None:
    text = read_lineage(run_with_snapshots(tmp_path / "run")).text()
    lines = text.splitlines()
    assert "5 snapshots" in lines[0]
    assert lines[1].startswith("main-0-s0: 100 steps, initial; first weights")
    assert lines[2].startswith("  main-0-s1:")
    assert lines[3].startswith("  main-0-s2:")


def test_json_and_dot_hold_every_snapshot_and_every_descent(tmp_path: Path) -> None:
    report = read_lineage(run_with_snapshots(tmp_path / "run"))
    plain = json.loads(report.to_json())
    assert [descent["snapshot"] for descent in plain["descents"]][-1] == "main-0-s2"
    dot = report.to_dot()
    assert '"main-0-s0" -> "main-0-s1"' in dot
    assert dot.count("fillcolor") == 5
    assert dot.startswith("digraph") and dot.endswith("}")


def test_a_reason_of_a_gate_of_ones_own_breaks_no_graph() -> None:
    descent = LineageNode(
        "main-0-s1", "main-0", "main_agent", 'is "good" \\ better', parent=None, kind="trained", donor=None, version=7,
        trained_steps=900, hyperparameters=(), changes=(), opponent_mix=(),
    )  # fmt: skip
    dot = LineageReport("run", Lineage((descent,), (), ())).to_dot()
    assert 'label="main-0-s1\\n900 steps, is \\"good\\" \\\\ better"' in dot


def test_what_a_gate_rested_on_is_shown_beside_its_snapshot() -> None:
    descent = LineageNode(
        "main-0-s1", "main-0", "main_agent", "gate", parent=None, kind="trained", donor=None, version=7,
        trained_steps=900, hyperparameters=(), changes=(), opponent_mix=(),
    )  # fmt: skip
    by_posterior = dataclasses.replace(
        descent,
        evidence=(Evidence("main-0-s0", games=40.0, mean=0.8, lower=0.7, unbeaten=0.04),),
        gate_opponents=3,
    )
    shown = LineageReport("run", Lineage((by_posterior,), ())).text()
    assert (
        "900 steps, gate (3 opponents; hardest main-0-s0, beaten with 0.80, p-value of its being unbeaten 0.04)"
        in shown
    )
    by_threshold = dataclasses.replace(
        by_posterior, evidence=(dataclasses.replace(by_posterior.evidence[0], unbeaten=None),)
    )
    assert (
        "gate (3 opponents; hardest main-0-s0, beaten with 0.80)"
        in LineageReport("run", Lineage((by_threshold,), ())).text()
    )
    assert "(" not in LineageReport("run", Lineage((descent,), ())).text()


def test_of_one_snapshot_its_ancestors_alone_are_shown(tmp_path: Path) -> None:
    run = run_with_snapshots(tmp_path / "run")
    report = read_lineage(run, of="main-0-s1")
    assert [descent.snapshot for descent in report.lineage.descents] == ["main-0-s0", "main-0-s1"]
    assert "2 snapshots, main-0-s1 and its ancestors" in report.text().splitlines()[0]
    plain = json.loads(report.to_json())
    assert (plain["of"], plain["opponent_mix"]) == ("main-0-s1", [])
    with pytest.raises(LeagueError, match="no snapshot 'main-0-s7'; did you mean main-0-s"):
        read_lineage(run, of="main-0-s7")
    assert league("lineage", run, "--of", "main-0-s1").out == report.text() + "\n"
