"""The end-of-run report names who played, how, and what was left out; a tournament adds its matches up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from league.config.run_config import EvaluationConfig
from league.envs.protocol import EnvConfig, EnvError
from league.judge.contenders.bots import bot_policy
from league.judge.matches.evaluation import EvalReport, _stronger_than_auto, evaluate_run
from league.judge.matches.match import Match
from league.judge.matches.match_result import Interval
from league.judge.matches.pairs import PairRow, pair_row
from league.judge.matches.report_table import report_lines
from league.policies.select import UnknownPolicy
from tests.league.judge.matches.eval_runs import MadeRun, RulePolicy, always, constant_network, first_legal

FOUR = EnvConfig("connect_four")
ROSHAMBO = EnvConfig("rock_paper_scissors")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    made = MadeRun(tmp_path / "run", env=FOUR)
    made.snapshot("main-0", constant_network(made.config, action=1))
    made.snapshot("main-0", constant_network(made.config, action=3))
    return made.close()


def shown(report: EvalReport) -> str:
    return "\n".join(report_lines(report, width=160))


def test_every_player_meets_every_bot_and_every_other_player(run: Path) -> None:
    seen: list[tuple[int, int]] = []
    report = evaluate_run(
        run,
        players=["best", "main-0-s0"],
        bots=["random", "tactical"],
        games=21,
        progress=lambda done, total: seen.append((done, total)),
    )
    assert [(row.home, row.away) for row in report.pairs] == [
        ("best", "random"),
        ("best", "tactical"),
        ("main-0-s0", "random"),
        ("main-0-s0", "tactical"),
        ("best", "main-0-s0"),
    ]
    assert {row.games for row in report.pairs} == {22}, "rounded up to whole pairs"
    assert all(row.wins + row.draws + row.losses == row.games for row in report.pairs)
    assert seen[-1] == (110, 110)
    assert report.players[0].members == ((1.0, "main-0-s1"),)
    assert "no snapshot has a rated game" in report.players[0].reason


def test_the_report_is_a_table_and_a_record(run: Path) -> None:
    report = evaluate_run(run, players=["best"], bots=["random"], games=20)
    plain = json.loads(report.to_json())
    assert plain["conditions"] == {"games": 20, "seed": 0, "opening_plies": 2, "greedy": True, "search": 0}
    assert plain["pairs"][0]["score"]["value"] == report.row("best", "random").score.value
    text = " ".join(shown(report).split())
    assert "connect_four: likeliest action, no search, 20 games a cell" in text
    assert "main-0-s1" in text
    assert f"{report.row('best', 'random').score.value:.2f} [" in text


def test_the_same_seed_gives_the_same_report(run: Path) -> None:
    first, second = (evaluate_run(run, bots=["random", "mcts:4"], games=10, seed=3).to_json() for _ in range(2))
    assert first == second


def test_a_match_is_the_same_whichever_others_are_played(run: Path) -> None:
    alone = evaluate_run(run, players=["main-0"], bots=["tactical"], games=20)
    among = evaluate_run(run, players=["main-0-s0", "main-0"], bots=["random", "tactical"], games=20)
    assert alone.row("main-0", "tactical") == among.row("main-0", "tactical")


def test_with_more_than_two_sides_each_player_sits_among_the_others_in_turn(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=EnvConfig("probe_turns", kwargs={"num_seats": 3}))
    for action in (0, 1):
        made.snapshot("main-0", constant_network(made.config, action=action))
    report = evaluate_run(made.close(), players=["main-0-s0", "main-0-s1"], bots=["random"], games=6)
    met = {(row.home, row.away) for row in report.pairs}
    assert {("main-0-s0", "main-0-s1"), ("main-0-s1", "main-0-s0")} < met
    rows = {line.split()[0]: line for line in report_lines(report, width=None)[2:5]}
    assert [rows[name].count("[") for name in ("main-0-s0", "main-0-s1", "random")] == [1, 1, 2]


def test_bots_that_cannot_play_are_left_out_with_a_note(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=ROSHAMBO)
    made.snapshot("main-0", constant_network(made.config, action=2))
    report = evaluate_run(made.close(), games=10)
    assert {row.away for row in report.pairs} == {"random"}
    assert len(report.notes) == 4
    assert "tactical does not play rock_paper_scissors" in report.notes[0]
    assert not report.conditions.greedy, "where seats act at once a fixed choice can be exploited"


def test_equal_weights_are_one_player_and_have_no_score_against_themselves(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=ROSHAMBO)
    made.snapshot("main-0", constant_network(made.config, action=2))
    made.snapshot("main-0", constant_network(made.config, action=1))
    players = ["main-0-s0", "main-0-s1", "main-0", "main-0-s0*2+main-0-s1", "main-0-s1+main-0-s0*2"]
    report = evaluate_run(made.close(), players=players, bots=["random"], games=4)
    assert [player.player for player in report.players] == ["main-0-s0", "main-0-s1", "main-0-s0*2+main-0-s1"]
    assert "main-0 is main-0-s1: the same weights" in report.notes
    assert len(report.pairs) == 6 and all(row.home != row.away for row in report.pairs)


def row(home: str, away: str, low: float, high: float, *, margin: float = 0.0) -> PairRow:
    score, own = Interval((low + high) / 2, low, high), Interval(margin, margin - 0.1, margin + 0.1)
    return PairRow(home, away, 100, 0, 0, 0, score, (), 5.0, margin=own)


@pytest.mark.parametrize(
    ("found", "teams", "counts", "stronger"),
    [
        (row("auto", "last", 0.2, 0.4), 2, "wins", True),
        (row("auto", "last", 0.2, 0.5), 2, "wins", False),
        (row("last", "auto", 0.51, 0.6), 2, "wins", True),
        (row("auto", "last", 0.2, 0.4), 3, "wins", False),
        (row("last", "auto", 0.51, 0.6), 3, "wins", True),
        (row("auto", "last", 0.2, 0.4, margin=0.3), 2, "returns", False),
        (row("auto", "last", 0.6, 0.7, margin=-0.3), 2, "returns", True),
        (row("auto", "random", 0.2, 0.4), 2, "wins", False),
    ],
)
def test_a_player_that_beats_auto_beyond_chance_is_named(
    found: PairRow, teams: int, counts: str, stronger: bool
) -> None:
    said = list(_stronger_than_auto([found], ["auto", "last"], teams=teams, counts=counts))
    assert said == (["last has beaten auto beyond chance: play it by that name"] if stronger else [])


def test_a_game_of_one_seat_is_reported_by_returns(tmp_path: Path) -> None:
    game = EnvConfig("probe_turns", kwargs={"num_seats": 1})
    made = MadeRun(tmp_path / "run", env=game)
    made.snapshot("main-0", constant_network(made.config, action=0))
    report = evaluate_run(made.close(), players=["best"], games=4)
    assert report.pairs == ()
    assert [row.name for row in report.returns] == ["best", "random"]
    assert "mean return" in shown(report)
    json.loads(report.to_json())


def test_bots_and_games_that_are_not_named_are_those_of_the_run(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR, evaluation=EvaluationConfig(bots=("tactical",), games=6))
    made.snapshot("main-0", constant_network(made.config, action=1))
    report = evaluate_run(made.close(), players=["best"])
    assert [(row.away, row.games) for row in report.pairs] == [("tactical", 6)]


def test_a_game_of_one_team_is_not_searched_unless_that_is_asked_for(tmp_path: Path) -> None:
    made = MadeRun(tmp_path / "run", env=EnvConfig("probe_turns", kwargs={"num_seats": 1}))
    made.snapshot("main-0", constant_network(made.config, action=0))
    report = evaluate_run(made.close(), players=["best"], games=4)
    assert [row.name for row in report.returns] == ["best", "random"]


def test_the_time_of_dear_bots_is_said_before_their_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = MadeRun(tmp_path / "run", env=FOUR)
    for action in (1, 3):
        made.snapshot("main-0", constant_network(made.config, action=action))
    made.snapshot("main-exploiter-0", constant_network(made.config, action=2))
    made.rate({"main-0-s0": 0, "main-0-s1": 1, "main-exploiter-0-s0": 2}.__getitem__)  # 10 decisions a game
    monkeypatch.setattr(
        "league.judge.matches.timed.seconds_a_move", lambda env, bot, **_: 0.5 if bot == "tactical" else 1e-5
    )
    said: list[str] = []
    evaluate_run(made.close(), players=["best", "main-0-s0"], bots=["random", "tactical"], games=20, say=said.append)
    assert said == [
        "For 20 games a match the bots need time: tactical about 1.7 min. --bots and --games choose others."
    ]


def test_an_unknown_bot_or_player_is_an_error_before_any_game(run: Path) -> None:
    with pytest.raises(EnvError, match="unknown bot 'mtcs:100'; did you mean mcts"):
        evaluate_run(run, bots=["mtcs:100"], games=10)
    with pytest.raises(UnknownPolicy, match="main-9"):
        evaluate_run(run, players=["main-9"], games=10)


def test_a_match_is_a_row_from_the_homes_side() -> None:
    policies = [RulePolicy(always(1)), RulePolicy(always(0))]
    row = pair_row("paper", "rock", Match(ROSHAMBO, policies, seed=0).play(4), sizes=(1, 1))
    assert (row.home, row.away, row.games, row.wins, row.draws, row.losses) == ("paper", "rock", 4, 4, 0, 0)
    assert (row.score.value, row.by_team) == (1.0, (1.0, 1.0))


def test_a_bot_has_the_name_that_the_league_gives_it() -> None:
    policies = [bot_policy("bot:tactical", seed=1), RulePolicy(first_legal)]
    assert Match(FOUR, policies, seed=0).play(20).score().value > 0.5
