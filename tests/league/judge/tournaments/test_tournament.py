"""A tournament ends with the same report however often it was killed and however many processes played it."""

from __future__ import annotations

import csv
import io
import json
import multiprocessing
import os
import re
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from league.envs.protocol import EnvConfig
from league.errors import LeagueError, RunInUse
from league.judge.contenders.finding import find_contenders
from league.judge.matches.sprt import SprtConfig
from league.judge.tournaments.batches import Where, player_of
from league.judge.tournaments.folder import OtherTournament, TournamentFolder
from league.judge.tournaments.records import BatchPlayed, TournamentConfig, TournamentCreated
from league.judge.tournaments.run_tournament import play_tournament
from league.judge.tournaments.tournament_report import TournamentReport, tournament_lines
from league.policies.trust import trust_places
from league.processes.task_processes import TaskProcesses
from league.processes.tasks import TasksFailed
from tests.league.commands import league
from tests.league.judge.matches.eval_runs import MadeRun, constant_network

HERE = Where(jobs=1)
BOTS = ("bot:random", "bot:tactical")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    for name, action in (("a", 4), ("b", 0)):
        made = MadeRun(folder / name, env=EnvConfig("tic_tac_toe"))
        made.snapshot("main-0", constant_network(made.config, action=action), trained_steps=1)
        made.close()
    return folder


@pytest.fixture(scope="module")
def config(runs: Path) -> TournamentConfig:
    written = (f"{runs / 'a'}:best", f"{runs / 'b'}:best", *BOTS)
    return TournamentConfig(written, games=8, batch_games=4, seed=5, anchor="bot:random", anchor_elo=100.0)


@pytest.fixture(scope="module")
def unbroken(config: TournamentConfig, tmp_path_factory: pytest.TempPathFactory) -> TournamentReport:
    return play_tournament(tmp_path_factory.mktemp("unbroken") / "t", config, where=HERE)


def killed_after(batches: int, path: Path, config: TournamentConfig) -> None:
    """Play in a process that kills itself once so many batches of this life have been recorded."""

    def play() -> None:
        seen: set[int] = set()

        def tick(report: Callable[[], TournamentReport], done: int, known: int) -> None:
            seen.add(done)
            if len(seen) == batches:
                os.kill(os.getpid(), signal.SIGKILL)

        play_tournament(path, config, where=HERE, progress=tick)

    process = multiprocessing.get_context("fork").Process(target=play)
    process.start()
    process.join(60.0)
    assert process.exitcode == -signal.SIGKILL


def whole_games_of_random(report: TournamentReport) -> int:
    """Games in which random play began: half of its own."""
    return next(row.games for row in report.standings if row.name == "bot:random") // 2


def recorded(path: Path) -> list[BatchPlayed]:
    with TournamentFolder(path) as folder:
        begun = folder.begun()
        assert begun is not None
        return list(begun.played)


@pytest.mark.parametrize(
    ("format", "sprt"), [("round-robin", None), ("swiss", None), ("round-robin", SprtConfig(0.0, 400.0))]
)
def test_killed_twice_it_ends_with_the_report_of_an_unbroken_one(
    format: str, sprt: SprtConfig | None, config: TournamentConfig, tmp_path: Path
) -> None:
    config = replace(config, format=format, record=True, sprt=sprt, games=8 if sprt is None else 12)
    whole = play_tournament(tmp_path / "whole", config, where=HERE)
    killed_after(3, tmp_path / "broken", config)
    assert len(recorded(tmp_path / "broken")) == 3
    killed_after(2, tmp_path / "broken", config)
    assert play_tournament(tmp_path / "broken", config, where=HERE) == whole
    assert bool(sprt) == any(row.test.decision for row in whole.tests)
    batches = recorded(tmp_path / "broken")
    assert len({batch.key for batch in batches}) == len(batches), "each batch once"
    assert sorted(batches, key=str) == sorted(recorded(tmp_path / "whole"), key=str)
    for name in ("report.json", "standings.csv", "report.html"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    kept = {path.name: path.read_bytes() for path in (tmp_path / "broken" / "replays").iterdir()}
    assert kept == {path.name: path.read_bytes() for path in (tmp_path / "whole" / "replays").iterdir()}
    assert len(kept) == 2 * len(batches), "a replay for either side of a pair"
    games = (tmp_path / "broken" / "games.pgn").read_text()
    assert games == (tmp_path / "whole" / "games.pgn").read_text()
    assert games.count("[Event ") == whole.games and games.count('[White "bot:random"]') == whole_games_of_random(whole)


def test_processes_play_the_same_games_and_one_that_dies_is_replaced(
    config: TournamentConfig, unbroken: TournamentReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    start = TaskProcesses._start

    def start_and_kill_the_first(self: TaskProcesses):  # type: ignore[no-untyped-def]
        worker = start(self)
        if not killed:
            killed.append(worker.process.pid or 0)
            os.kill(killed[0], signal.SIGKILL)
        return worker

    monkeypatch.setattr(TaskProcesses, "_start", start_and_kill_the_first)
    monkeypatch.setattr(
        "league.judge.tournaments.play_round.PlayHere",
        lambda field, game, **progress: TaskProcesses(player_of, field, jobs=1),
    )
    assert play_tournament(tmp_path / "t", config, where=HERE) == unbroken
    assert killed and not [child for child in multiprocessing.active_children() if child.pid in killed]


def test_a_batch_that_ends_process_after_process_stops_the_tournament(
    config: TournamentConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = TaskProcesses._start

    def start_and_kill(self: TaskProcesses):  # type: ignore[no-untyped-def]
        worker = start(self)
        worker.process.kill()
        return worker

    monkeypatch.setattr(TaskProcesses, "_start", start_and_kill)
    with pytest.raises(TasksFailed, match=r"3 processes that did games of .*best, .* without a result, .* SIGKILL"):
        play_tournament(tmp_path / "t", replace(config, games=4), where=Where(jobs=2))


def test_the_scale_is_anchored_and_the_table_adds_up(unbroken: TournamentReport) -> None:
    rows = {row.name: row for row in unbroken.standings}
    anchor = rows["bot:random"].rating
    assert anchor is not None and anchor.value == anchor.low == anchor.high == 100.0
    assert sum(row.games for row in unbroken.standings) == 2 * unbroken.games == 2 * 6 * 8
    ratings = [row.rating.value for row in unbroken.standings if row.rating is not None]
    assert ratings == sorted(ratings, reverse=True) and len(ratings) == 4
    for i, row in enumerate(unbroken.scores):
        for j, score in enumerate(row):
            other = unbroken.scores[j][i]
            assert (score is None and i == j) or (score is not None and other is not None and score + other == 1.0)
    mean = sum(score for score in unbroken.scores[0] if score is not None) / 3
    assert unbroken.standings[0].score == pytest.approx(mean)


def test_a_folder_keeps_its_contenders_and_refuses_another_tournament(
    config: TournamentConfig, runs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "t"
    first = play_tournament(path, config, where=HERE)
    (runs / "a").rename(runs / "gone")
    try:
        assert play_tournament(path, None, where=HERE) == first, "the weights are in the folder"
    finally:
        (runs / "gone").rename(runs / "a")
    with pytest.raises(OtherTournament, match="games, seed differ"):
        play_tournament(path, replace(config, games=10, seed=6), where=HERE)
    with TournamentFolder(path), pytest.raises(RunInUse):
        play_tournament(path, config, where=HERE)
    with pytest.raises(LeagueError, match="holds no tournament"):
        play_tournament(tmp_path / "nothing", None)


def test_three_seats_are_rated_by_placements_and_one_by_its_return(tmp_path: Path) -> None:
    (tmp_path / "random_bot.py").write_text("from league.envs.bots import RandomBot\n")
    names = ("bot:random", "bot:league.envs.bots:RandomBot", f"bot:{tmp_path / 'random_bot.py'}:RandomBot")
    three = TournamentConfig(names, env_id="openspiel:kuhn_poker(players=3)", games=30)
    report = play_tournament(tmp_path / "three", three, where=HERE)
    with pytest.raises(LeagueError, match=r"names the program bot:league.envs.bots:RandomBot: give --trust"):
        play_tournament(tmp_path / "three", None, where=HERE)
    trust_places([tmp_path / "three"])
    assert play_tournament(tmp_path / "three", None, where=HERE) == report
    assert report.scale == "skill" and [row.games for row in report.standings] == [30, 30, 30]
    (anchor,) = [row.rating for row in report.standings if row.name == "bot:random"]
    assert anchor is not None and anchor.value == pytest.approx(0.0) and anchor.low < 0 < anchor.high
    alone = TournamentConfig(names[:2], env_id="gymnasium:CartPole-v1", games=3)
    report = play_tournament(tmp_path / "one", alone, where=HERE)
    assert report.scale == "return" and all(row.rating and row.rating.value > 5 for row in report.standings)


def test_a_game_that_only_the_folder_names_is_not_loaded(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "own.py").write_text(
        f"open({str(ran)!r}, 'a').write('x')\nfrom pettingzoo.classic import rps_v2\nmake = rps_v2.parallel_env\n"
    )
    config = TournamentConfig(("bot:random", "bot:mcts:1"), env_id=f"{tmp_path / 'own.py'}:make", games=2)
    with TournamentFolder(tmp_path / "t") as folder:
        contenders = tuple(folder.enrol(one) for one in find_contenders(config.written))
        folder.record(TournamentCreated(config, contenders, config.env_id, {}, greedy=True))
    with pytest.raises(LeagueError, match=r"names the program .*own.py:make: give --trust"):
        play_tournament(tmp_path / "t", None, where=HERE)
    assert not ran.exists()


def test_a_game_in_a_file_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own.py").write_text("from pettingzoo.classic import rps_v2\nmake = rps_v2.parallel_env\n")
    (tmp_path / "own_bot.py").write_text("from league.envs.bots import RandomBot\n")
    monkeypatch.chdir(tmp_path)
    names = ("bot:random", f"bot:{tmp_path / 'own_bot.py'}:RandomBot")
    report = play_tournament(tmp_path / "t", TournamentConfig(names, env_id="own.py:make", games=2), where=HERE)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert report.env_id == f"{tmp_path / 'own.py'}:make"
    trust_places([tmp_path / "t"])
    assert play_tournament(tmp_path / "t", None, where=HERE) == report


def test_batches_of_a_pairing_differ_and_pairings_share_their_openings(
    config: TournamentConfig, tmp_path: Path
) -> None:
    play_tournament(tmp_path / "t", replace(config, record=True), where=HERE)
    openings: dict[str, set[str]] = {}
    for game in (tmp_path / "t" / "games.pgn").read_text().split("[Event ")[1:]:
        number = re.search(r'\[Round "1\.(.*)"\]', game)
        moves = re.search(r"^1\. (\S+ \S+)", game, re.MULTILINE)
        assert number is not None and moves is not None
        openings.setdefault(number[1], set()).add(moves[1])
    assert sorted(openings) == ["1.1", "1.2", "2.1", "2.2"]
    assert all(len(one) == 1 for one in openings.values()), "common to all pairings"
    assert len(set.union(*openings.values())) > 2


def test_the_command_prints_the_table_and_leaves_files_that_need_nothing_else(tmp_path: Path) -> None:
    out = tmp_path / "t"
    words = ["tournament", *BOTS, "--env", "tic_tac_toe", "--games", "6", "--out", out, "--jobs", "1"]
    done = league(*words, "--anchor", "bot:tactical=50")
    assert done.code == 0 and "bot:tactical at 50" in done.out and "bot:random" in done.out
    assert done.out.splitlines() == tournament_lines(play_tournament(out, None, where=HERE))
    page = (out / "report.html").read_text()
    assert not re.search(r"<script|https?://|@import|url\(", page) and page.count("<tr>") >= 4
    rows = list(csv.DictReader(io.StringIO((out / "standings.csv").read_text())))
    plain = json.loads(league("tournament", "--out", out, "--json").out)
    assert plain == json.loads((out / "report.json").read_text())
    assert [row["name"] for row in rows] == [row["name"] for row in plain["standings"]]
    for wrong, sentence in (
        (["--anchor", "bot:nobody=3"], "none of the contenders"),
        (["--anchor", "bot:tactical=x"], "write bot:random=0"),
        (["--format", "swis"], "did you mean 'swiss'"),
    ):
        refused = league(*words[:-3], tmp_path / sentence, "--jobs", "1", *wrong)
        assert refused.code == 2 and sentence in refused.err
