"""The table of an evaluation fits the terminal, is plain text in a file, and can be had as comma-separated values."""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
from pathlib import Path

import numpy as np
import pytest

from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec
from league.judge.matches.evaluation import Conditions, EvalReport, PlayerRow, ReturnRow, team_names
from league.judge.matches.match_result import Interval, score_games
from league.judge.matches.pairs import PairRow, pair_row
from league.judge.matches.report_table import report_csv, report_lines
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import FOUR, MadeRun, constant_network

EIGHT = [f"main-exploiter-0-s{number}" for number in range(8)]


def score_of(home: str, away: str) -> Interval:
    value = 0.5 + 0.05 * ((len(home + away) + ord(home[-1]) - ord(away[-1])) % 7 - 3)
    return Interval(value, value - 0.1, value + 0.08)


def round_robin(names: list[str], bots: list[str], *, sides: int = 2) -> EvalReport:
    meetings = [*itertools.product(names, bots), *itertools.combinations(names, 2)]
    pairs = tuple(
        PairRow(home, away, 100, 50, 10, 40, score_of(home, away), (0.5,) * sides, 9.0) for home, away in meetings
    )
    players = tuple(PlayerRow(name, ((1.0, name),), "the snapshot of that name") for name in names)
    return EvalReport("run", "connect_four", Conditions(100, 0, 2, True), players, pairs, (), ())


@pytest.mark.parametrize("width", [100, 80])
def test_eight_snapshots_fit_a_terminal_and_keep_their_names(width: int) -> None:
    lines = report_lines(round_robin(EIGHT, ["random", "tactical"]), width=width)
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert all(f"{number} {name}" in text for number, name in enumerate(EIGHT, start=1))
    assert ("±" in text) == (width == 100)


def test_a_file_gets_every_name_and_interval_unwrapped() -> None:
    report = round_robin(EIGHT, ["random"])
    title, head, *rows = report_lines(report, width=None)
    assert title == "connect_four: likeliest action, no search, 100 games a cell"
    assert head.split() == ["score", "against", *EIGHT]
    assert [row.split()[0] for row in rows] == [*EIGHT, "random", "mean"]
    assert not set("│┃━─") & set("".join(rows))
    assert rows[1].count("[") == 7, "nobody plays itself"


def test_a_match_is_shown_from_either_side_and_columns_have_a_mean() -> None:
    report = round_robin(["one", "two"], ["random"])
    lines = {line.split()[0]: line for line in report_lines(report, width=None)[2:]}
    ahead = score_of("one", "two")
    assert f"{ahead.value:.2f} [{ahead.low:.2f}, {ahead.high:.2f}]" in lines["two"]
    assert f"{1 - ahead.value:.2f} [{1 - ahead.high:.2f}, {1 - ahead.low:.2f}]" in lines["one"]
    mean = (ahead.value + score_of("one", "random").value) / 2
    assert lines["mean"].split()[1] == f"{mean:.2f}"


def test_with_more_than_two_sides_a_match_says_nothing_of_the_other() -> None:
    lines = report_lines(round_robin(["one", "two"], [], sides=3), width=None)
    assert [line.split()[0] for line in lines[2:]] == ["two"]


def test_a_name_that_stands_for_another_is_shown_with_it() -> None:
    report = round_robin(["best"], ["random"])
    played = PlayerRow("best", ((0.75, "main-0-s7"), (0.25, "main-0-s6")), "")
    report = EvalReport("run", "connect_four", report.conditions, (played,), report.pairs, (), ())
    assert report_lines(report, width=None)[1].endswith("best = 75% main-0-s7, 1 more")


def test_matches_and_returns_are_comma_separated() -> None:
    report = round_robin(["one", "two"], ["random"])
    rows = list(csv.DictReader(io.StringIO(report_csv(report))))
    assert [(row["home"], row["away"]) for row in rows] == [("one", "random"), ("two", "random"), ("one", "two")]
    assert float(rows[2]["score"]) == score_of("one", "two").value
    alone = EvalReport("run", "x", report.conditions, (), (), (ReturnRow("one", 5, Interval(2.0, 1.0, 3.0)),), ())
    assert report_csv(alone) == "player,games,mean_return,low,high\none,5,2.0,1.0,3.0\n"


@pytest.mark.parametrize(
    ("mean_return", "text"),
    [
        (Interval(1.234e-5, 1.2e-5, 1.3e-5), "0.00001234 [0.000012, 0.000013]"),
        (Interval(0.42, 0.26, 0.58), "0.42 [0.26, 0.58]"),
        (Interval(-1246.74, -1252.8, -1240.7), "-1,247 [-1,253, -1,241]"),
        (Interval(-2e8, -2e8, -2e8), "-200,000,000 [-200,000,000, -200,000,000]"),
    ],
)
def test_mean_returns_of_any_size_keep_four_digits(mean_return: Interval, text: str) -> None:
    report = EvalReport("run", "x", Conditions(5, 0, 0, True), (), (), (ReturnRow("one", 5, mean_return),), ())
    assert report_lines(report, width=None)[-1].split(maxsplit=1) == ["one", text]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeRun:
    run = MadeRun(tmp_path_factory.mktemp("eval") / "run", env=FOUR)
    for action in (1, 3):
        run.snapshot("main-0", constant_network(run.config, action=action))
    run.close()
    return run


def test_the_folder_of_a_snapshot_is_evaluated_as_a_run_is(made: MadeRun, tmp_path: Path) -> None:
    folder = made.snapshot_folder("main-0-s1")
    ran = league("eval", folder, "--bots", "random", "--games", 4, "--csv", tmp_path / "matches.csv")
    assert (ran.code, ran.err) == (0, "")
    assert "all that its folder holds" in ran.out
    assert [row["away"] for row in csv.DictReader((tmp_path / "matches.csv").open())] == ["random"]


def test_a_policy_of_another_run_or_snapshot_takes_part(made: MadeRun) -> None:
    folder = made.snapshot_folder("main-0-s0")
    players = f"best,{made.path}:main-0-s0,{folder}:best"
    ran = league("eval", made.path, "--bots", "", "--games", 4, "--players", players)
    assert (ran.code, ran.err) == (0, "")
    assert f"main-0-s0 of {made.path}" in ran.out
    alone = league("eval", folder, "--bots", "", "--games", 4, "--players", f"best,{made.path}:main-0-s1")
    assert (alone.code, alone.err) == (0, "")


def test_a_policy_that_is_not_there_or_of_another_game_is_a_sentence(made: MadeRun, tmp_path: Path) -> None:
    other = MadeRun(tmp_path / "other", env=type(FOUR)("tic_tac_toe"))
    other.snapshot("main-0", constant_network(other.config, action=1))
    other.close()
    for players, words in (
        (f"{other.path}:best", "was trained on tic_tac_toe and does not fit connect_four"),
        (f"{tmp_path}/nowhere:best", f"{tmp_path}/nowhere does not exist"),
        (f"{made.path}:main-7", "the run has no player or snapshot 'main-7'"),
    ):
        ran = league("eval", made.path, "--bots", "", "--players", players)
        assert ran.code == 2
        assert ran.err.startswith("league: ")
        assert words in ran.err
        assert ran.err.count("\n") == 1
    ran = league("eval", made.snapshot_folder("main-0-s1"), "--players", "main-9")
    assert (ran.code, "is one snapshot, of the player main-0, not 'main-9'" in ran.err) == (2, True)


def test_games_of_teams_show_returns_as_each_team() -> None:
    match = score_games(np.array([[[3.0, 1.0], [5.0, 1.0]], [[-2.0, 10.0], [0.0, 6.0]]]), steps=40)
    row = pair_row("one", "two", match, sizes=(2, 1))
    assert row.returns_by_team == (4.0, -1.0)
    assert row.away_returns_by_team == (8.0, 1.0)
    spec = EnvSpec(
        "tag", 3, {"x": ArraySpec((1,), "float32")}, ActionSpec("categorical", 2), (0, 0, 1), False,
        seat_names=("red_0", "red_1", "blue_0"),
    )  # fmt: skip
    report = EvalReport("run", "tag", Conditions(4, 0, 2, True), (), (row,), (), (), team_names(spec))
    lines = report_lines(report, width=None)
    assert lines[-2].split() == ["mean", "return", "as", "red_0+red_1", "blue_0"]
    assert lines[-1].split() == ["one", "v", "two", "4", "v", "8", "-1", "v", "1"]
    head, line = csv.reader(io.StringIO(report_csv(report)))
    assert dict(zip(head, line, strict=True))["return_as_team_1"] == "-1.0"


def test_margins_are_shown_where_the_run_counts_returns() -> None:
    match = score_games(np.array([[[3.0, 1.0], [5.0, 1.0]], [[-2.0, 10.0], [0.0, 6.0]]]), steps=40)
    row = pair_row("one", "two", match, sizes=(2, 1))  # "one" is the team of two in the first rotation
    assert row.margin is not None
    groups = ((3.0 / 2 - 1.0) + (-2.0 - 10.0 / 2)) / 2, ((5.0 / 2 - 1.0) + (0.0 - 6.0 / 2)) / 2
    assert row.margin.value == np.mean(groups)
    players = (PlayerRow("one", (), ""), PlayerRow("two", (), ""))
    report = EvalReport("run", "x", Conditions(4, 0, 2, True), players, (row,), (), ())
    assert not any("margin" in line for line in report_lines(report, width=None))
    lines = report_lines(dataclasses.replace(report, score="returns"), width=None)[-4:]
    assert lines[0].split() == ["margin", "against", "one", "two"]
    assert [line.split()[:2] for line in lines[1:]] == [["one", "2"], ["two", "-2"], ["mean", "-2"]]


def test_seats_of_a_large_team_are_counted() -> None:
    def of(teams: tuple[int, ...]) -> tuple[str, ...]:
        spec = EnvSpec("x", len(teams), {"x": ArraySpec((1,), "float32")}, ActionSpec("categorical", 2), teams, False)
        return team_names(spec)

    assert of((0, 1, 2)) == ()
    assert of((5, 5, 5, 5, 2)) == ("seat 4", "seat 0 and 3 more")
