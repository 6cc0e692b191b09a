"""`league diff` of small runs: what differs, who is stronger on one scale, and what is honestly said of seeds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from league.core.metagame.ratings import ELO_PER_LOGIT
from league.errors import LeagueError
from league.judge.matches.match_result import Interval
from league.lab.diff.diff_report import Quantity, _verdict, compare_runs
from league.lab.diff.seeds import difference
from league.lab.diff.strengths import MatchRow, Strengths, _elos
from tests.league.commands import league
from tests.league.tiny_runs import ONE_PLAYER, start, tiny


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Three runs of Kuhn poker, the third with another step size."""
    folder, paths = tmp_path_factory.mktemp("diff"), {}
    for name, seed, rate in (("a1", 1, 1e-3), ("a2", 2, 1e-3), ("b1", 1, 3e-3)):
        plain = tiny(env={"id": "kuhn_poker"}, league=ONE_PLAYER, seed=seed, learner={"learning_rate": rate})
        plain["evaluation"] = {"bots": ["random", "tactical"]}
        start(folder, plain, env_steps=200, run=name)
        paths[name] = str(folder / name)
    return paths


def test_one_run_each_shows_every_difference_and_says_that_seeds_may_explain_it(runs: dict[str, str]) -> None:
    report = compare_runs(runs["a1"], runs["b1"], games=20)
    assert [(one.key, one.left, one.right) for one in report.settings] == [("learner.learning_rate", "0.001", "0.003")]
    assert {(row.home, row.away) for row in report.strengths.matches} == {
        (runs["a1"], runs["b1"]),
        (runs["a1"], "bot:random"),
        (runs["b1"], "bot:random"),
    }
    by_name = {quantity.name: quantity for quantity in report.quantities}
    assert by_name["strength"].left == (0.0,) and by_name["strength"].unit == "Elo"
    assert by_name["nash_conv"].left[0] > 0.0 and by_name["env steps"].left[0] >= 200.0
    assert by_name["strength"].difference.low is None and "seeds alone may explain" in report.verdict
    assert json.loads(report.to_json())["verdict"] == report.verdict and report.verdict in report.text()


def test_several_runs_give_an_interval_over_their_seeds(runs: dict[str, str]) -> None:
    report = compare_runs(f"{runs['a1']},{runs['a2']}", runs["b1"], games=20)
    strength = report.quantities[0]
    assert len(strength.left) == 2 and strength.difference.low is not None and not report.mixed
    assert "over seeds" in report.verdict and "so few can give no less than 0.333" in report.verdict
    mixed = compare_runs(f"{runs['a1']},{runs['b1']}", runs["a2"], games=2)
    assert mixed.mixed == (
        "The runs of the left side differ in learner.learning_rate: their spread is not of seeds alone.",
    )


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [("{a1}", "{a1}", "is on both sides"), ("{a1},{a1}", "{b1}", "or one twice"), ("{a1}", "{a1}x", "x")],
)
def test_mistakes_are_one_sentence(runs: dict[str, str], left: str, right: str, words: str) -> None:
    with pytest.raises(LeagueError, match=words):
        compare_runs(left.format(**runs), right.format(**runs), games=2)


def test_the_command_prints_the_comparison(runs: dict[str, str]) -> None:
    result = league("diff", runs["a1"], runs["b1"], "--games", "4", "--seed-spread", "50", "--json")
    assert result.code == 0, result.err
    assert result.json["quantities"][0]["difference"]["method"] == "given spread"


def test_elo_of_two_is_that_of_their_score() -> None:
    """One match of 1,000 games at 0.75, with a virtual draw or so beside it."""
    rows = [MatchRow("a", "b", 1_000, Interval(0.75, 0.7, 0.8))]
    elos, errors = _elos(["a", "b"], rows)
    assert elos[0] == errors[0] == 0.0
    assert elos[1] == pytest.approx(ELO_PER_LOGIT * np.log(0.25 / 0.75), rel=0.01)
    assert errors[1] == pytest.approx(1.96 * ELO_PER_LOGIT / np.sqrt(1_000 * 0.75 * 0.25), rel=0.02)


def test_sides_that_are_even_are_not_called_stronger() -> None:
    strength = Quantity("strength", "Elo", (3.0, 5.0), (5.0, 3.0), difference((3.0, 5.0), (5.0, 3.0)))
    said = _verdict(strength, Strengths("Elo", {}, {}, (), ()), (("a", "b"), ("c", "d")))
    assert said.startswith("Both are as strong, with a 95 % interval of")
