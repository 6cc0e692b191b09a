"""The scale benchmark: its rows are there, its leagues are under way, and its restart is compared."""

from pathlib import Path

import numpy as np

from benchmarks.report import Report
from benchmarks.throughput import league_scale


def test_a_small_league_is_measured_in_every_respect(tmp_path: Path) -> None:
    report = Report()
    league_scale.measure(report, tmp_path / "league.db", 10)
    names = [row.name for row in report.rows]
    assert len(names) == len(set(names)) == 9
    assert [row.required for row in report.rows if row.required] == ["<= 2", ">= 5000"]
    assert all(row.value is not None for row in report.rows)


def test_a_restart_is_from_at_least_as_many_results_as_asked_for(tmp_path: Path) -> None:
    report = Report()
    league_scale.measure_restart(report, tmp_path / "restart.db", 500)
    names = [row.name for row in report.rows]
    assert [name.split(" over ")[0] for name in names[:3]] == ["mean rate", "file growth", "memory growth"]
    assert names[3].startswith("restart from")
    assert int(names[3].split()[2].replace(",", "")) >= 500


def test_every_assignment_of_a_lease_brings_one_result_whose_games_add_up(tmp_path: Path) -> None:
    league = league_scale.created(tmp_path / "league.db", 10)
    assert len(league.state.players) == len(league.state.snapshots) == 10
    before = league.state.totals.games
    results = league_scale.answer_leases(league, np.random.default_rng(0), 20)
    assert league.state.totals.games - before == league_scale.GAMES * results
    league.close()
