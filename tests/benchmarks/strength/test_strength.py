"""The one command for strength: its games and populations, its rows, and a whole run of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.report import Report
from benchmarks.strength import __main__ as strength
from benchmarks.strength import exploiters, robustness
from benchmarks.strength.games import connect_four, tic_tac_toe
from benchmarks.strength.runs import FOLDER_WORDS, HALF, LATEST, LEAGUE, Plan
from league.config.loading import load_config
from league.policies.loading import OpenRun, open_run
from league.run.budget import Limits
from league.run.launch import train

EXPLOITER_V_LAST, EXPLOITER_V_HALF = exploiters.EXPLOITER_SCORES.values()
PLAYED = ["repeated_rps", "--seeds", "0", "--populations", "league", "--core-seconds", "0.3", "--evaluation-seed", "1"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> OpenRun:
    """Tic-tac-toe for a moment: a main agent with a few snapshots."""
    folder = tmp_path_factory.mktemp("past")
    settings = (
        "network.hidden=[8]",
        "actors.num_envs=16",
        "learner.batch_rows=16",
        "league={preset: self_play, population: {save_steps: 500}, ratings: {final_leases: 2}, lease_steps: 16}",
    )
    train(tic_tac_toe.CONFIG, overrides=settings, run_dir=folder / "run", limits=Limits(env_steps=6000))
    return open_run(folder / "run")


def test_every_game_knows_populations_that_have_a_folder_word():
    for game in strength.GAMES.values():
        assert set(game.populations) <= set(FOLDER_WORDS)
        assert game.populations[0] == LEAGUE


@pytest.mark.parametrize("config", [connect_four.CONFIG, tic_tac_toe.CONFIG], ids=lambda path: path.stem)
def test_budgets_are_those_of_the_configurations(config: Path):
    budget = load_config(config).budget
    assert budget.core_seconds is not None
    assert (budget.seconds, budget.env_steps) == (None, None)
    if config == connect_four.CONFIG:
        assert budget.core_seconds == connect_four.CORE_SECONDS


def test_populations_are_chosen_by_name_or_folder_word():
    known = (LEAGUE, LATEST, HALF)
    assert strength.chosen_populations(None, known) == known
    assert strength.chosen_populations("half, league", known) == (HALF, LEAGUE)
    assert strength.chosen_populations("half past", known) == (HALF,)
    with pytest.raises(ValueError, match="unknown populations naive; this game has league, latest, half past"):
        strength.chosen_populations("latest,naive", known)


def test_a_whole_call_trains_reports_and_uses_the_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["--game", *PLAYED, "--runs", str(tmp_path), "--json"]
    codes = [strength.main(arguments)]
    first = capsys.readouterr().out.splitlines()
    codes.append(strength.main(arguments))
    again = capsys.readouterr().out.splitlines()
    assert "repeated_rps-league-0: trained" in first
    # a league that has adapted says so after it
    assert any(line.startswith("repeated_rps-league-0: finished before, used again") for line in again)
    rows = json.loads(first[-1])["rows"]
    assert rows == json.loads(again[-1])["rows"]
    (gated,) = [row for row in rows if row["required"] is not None]
    assert gated["name"] == "repeated_rps, league: mixture, own payoffs, median of 1 training seeds (target 0.03)"
    assert gated["required"] == "<= 0.1"
    assert codes == [0 if gated["met"] else 1] * 2


def test_the_past_is_the_first_three_quarters_of_training_and_the_last_policy_is_not_its_own_past(run: OpenRun):
    mains = robustness.main_snapshots(run)
    scores = robustness.against_past(run, games=20, seed=0)
    assert [score.snapshot for score in scores] == [snapshot.snapshot_id for snapshot in mains[:-1]]
    for score, snapshot in zip(scores, mains, strict=False):
        assert score.early == (snapshot.trained_steps <= 0.75 * mains[-1].trained_steps)
        assert 0.0 <= score.score <= 1.0
    assert any(score.early for score in scores)
    assert not all(score.early for score in scores)


def test_the_second_half_holds_the_newer_snapshots_alike(run: OpenRun):
    found = connect_four.exports(run, seed=0)
    mains = [snapshot.snapshot_id for snapshot in robustness.main_snapshots(run)]
    assert [member.name for _, member in found["second half"].members] == mains[len(mains) // 2 :]
    assert len({weight for weight, _ in found["second half"].members}) == 1
    assert [member.name for _, member in found["last"].members] == mains[-1:]


def figures(**changes: float) -> dict[str, float]:
    return {
        "best v tactical": 0.95,
        "best v mcts:100": 0.75,
        "last v mcts:100": 0.6,
        f"best {connect_four.KEEPS}": 0.79,
        connect_four.WORST_PAST: 0.61,
        EXPLOITER_V_LAST: 0.3,
        EXPLOITER_V_HALF: 0.2,
        **changes,
    }


def test_the_leagues_medians_are_held_against_the_gates_and_misses_show():
    report = Report()
    connect_four._add_summary(report, LEAGUE, [figures(), figures(), figures()], gated=True)
    verdicts = {row.name.partition(",")[0]: (row.required, row.met) for row in report.rows if row.required is not None}
    assert verdicts == {
        "league: best v tactical": (">= 0.92", True),
        "league: best v mcts:100": (">= 0.7", True),
        f"league: best {connect_four.KEEPS}": (">= 0.8", False),
        f"league: {connect_four.WORST_PAST}": (">= 0.6", True),
    }
    assert "league: best v tactical, median of 3 training seeds (target 0.97)" in {row.name for row in report.rows}


def test_controls_have_no_gates():
    report = Report()
    connect_four._add_summary(report, LATEST, [figures()], gated=False)
    assert all(row.required is None for row in report.rows)


@pytest.mark.parametrize("name", [EXPLOITER_V_LAST, EXPLOITER_V_HALF])
def test_the_worst_exploiter_is_the_one_that_wins_most(name: str):
    report = Report()
    runs = [figures(**{name: score}) for score in (0.2, 0.5, 0.3)]
    connect_four._add_summary(report, LATEST, runs, gated=False)
    values = {row.name: row.value for row in report.rows if name in row.name}
    assert sorted(values.values()) == [0.3, 0.5]
    assert values[f"latest: {name}, worst of 3 training seeds"] == 0.5


@pytest.mark.parametrize(("league", "met"), [(0.39, True), (0.41, False)])
def test_an_exploiter_may_win_four_fifths_as_much_from_the_league_as_from_the_newest_weights(league: float, met: bool):
    report = Report()
    exploiters.add_comparison(
        report,
        league=[{EXPLOITER_V_LAST: league, EXPLOITER_V_HALF: 0.3}],
        latest=[{EXPLOITER_V_LAST: 0.5, EXPLOITER_V_HALF: 0.3}],
    )
    last, half, across = report.rows
    assert (last.required, last.met) == ("<= 0.8", met)
    assert (half.value, half.met) == (1.0, False)
    assert (across.value, across.required) == (0.6, None)


def test_every_exploiter_has_a_folder_and_a_file_of_figures_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    trained: list[tuple[str, str]] = []

    def score(prey: exploiters.Prey, export: str, *, run_dir: Path, **_: object) -> float:
        trained.append((export, run_dir.name))
        return 0.1 * len(trained)

    monkeypatch.setattr(exploiters, "_score", score)
    plan = Plan((3,), (LEAGUE,), None, 0.0, 10, 7, folder=tmp_path, results=tmp_path / "results")
    prey = exploiters.Prey(
        pytest.fail, tmp_path / "c4-league-3", connect_four.CONFIG, ["seed=3"], seed=3, core_seconds=10.0
    )
    first = exploiters.exploiter_figures(plan, prey)
    assert trained == [("last", "c4-league-3-exploiter"), ("second half", "c4-league-3-exploiter-of-half")]
    assert first == {EXPLOITER_V_LAST: pytest.approx(0.1), EXPLOITER_V_HALF: pytest.approx(0.2)}
    assert exploiters.exploiter_figures(plan, prey) == first
    assert len(trained) == 2
