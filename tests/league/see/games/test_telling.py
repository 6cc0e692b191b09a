"""The games worth seeing: which results are upsets and first wins, how they are ranked, and that they are recorded."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from league.core.metagame.ratings import PairGames, RatingInputs, RatingRow
from league.judge.recording.replay import SeatHolder
from league.judge.recording.replay_file import read_replay
from league.see.games.playback import verify_replay
from league.see.games.replay_list import ReplayRow
from league.see.games.telling import FIRST_WIN, LONGEST, UPSET, choose, surprise, telling_results
from league.store.run_folder import RunFolder
from tests.league.commands import league
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

PLAYER_OF = {"a-s0": "a", "a-s1": "a", "a-s2": "a", "b-s0": "b"}
NAMES = ("a-s0", "a-s1", "a-s2", "b-s0")


def rated(**elo: float) -> list[RatingRow]:
    return [RatingRow(name.replace("_", "-"), value, value - 50, value + 50, 10) for name, value in elo.items()]


def results(*pairs: tuple[str, str, float, float]) -> RatingInputs:
    """(first, second, score of the first, games) of each pair."""
    first, second, score, games = zip(*pairs, strict=True)
    index = np.array([[NAMES.index(name) for name in names] for names in (first, second)])
    met = PairGames(index[0], index[1], np.array(score), np.array(games))
    return RatingInputs(NAMES, np.full(4, 10), met, np.full(4, -1), 0, 1.0)


def row(file: str, *names: str, returns: tuple[float, ...], steps: int = 5, **tags: str) -> ReplayRow:
    return ReplayRow(file, 0, 0.0, "x", tuple(map(SeatHolder, names)), returns, steps, False, tags)


def test_surprise_is_the_bits_of_the_chance_by_the_ratings() -> None:
    for gap in (-300.0, 0.0, 120.0, 800.0):
        chance = 1.0 / (1.0 + 10.0 ** (gap / 400.0))
        assert surprise(0.0, gap) == pytest.approx(-math.log2(chance))


def test_upsets_are_points_of_the_weaker_and_the_most_surprising_come_first() -> None:
    ratings = rated(a_s0=0, a_s1=200, b_s0=500)
    found = telling_results(
        results(("a-s0", "b-s0", 0.5, 9), ("a-s1", "b-s0", 2, 9), ("a-s0", "a-s1", 0, 9)), ratings, {}
    )
    assert [(result.winner, result.loser) for result in found] == [("a-s0", "b-s0"), ("a-s1", "b-s0")]
    assert all(result.why == UPSET for result in found)


def test_a_first_win_is_the_first_point_after_lost_games() -> None:
    played = results(("a-s0", "b-s0", 0, 4), ("a-s1", "b-s0", 0, 3), ("a-s2", "b-s0", 1, 6))
    (found,) = telling_results(played, [], PLAYER_OF)
    assert (found.why, found.winner, found.loser, found.score) == (FIRST_WIN, "a-s2", "b-s0", 7.0)
    at_once = results(("a-s0", "b-s0", 1, 4), ("a-s1", "b-s0", 0, 3))
    assert not telling_results(at_once, [], PLAYER_OF)


def test_kinds_take_turns_and_no_game_is_chosen_twice() -> None:
    rows = [
        row("long", "x", "y", returns=(1, -1), steps=99),
        row("upset", "a-s0", "b-s0", returns=(1, -1), steps=100),
        row("expected", "a-s0", "b-s0", returns=(-1, 1), steps=3),
        row("first", "a-s2", "b-s0", returns=(1, -1), why=FIRST_WIN, score="7", text="words"),
        row("bad", "a-s2", "b-s0", returns=(1, -1), why=FIRST_WIN, score="nan"),
    ]
    found = choose(rows, rated(a_s0=0, b_s0=400), count=3)
    assert [(each.why, each.file) for each in found] == [(UPSET, "upset"), (FIRST_WIN, "first"), (FIRST_WIN, "bad")]
    assert found[1].text == "words" and found[0].score == pytest.approx(math.log2(11))
    assert {each.file for each in choose(rows[:3], (), count=9)} == {"upset", "long", "expected"}
    assert all(each.why == LONGEST for each in choose(rows[:3], (), count=9))


def test_telling_games_of_a_run_are_recorded_once(tmp_path: Path) -> None:
    ratings = {"step_fraction": 0.5, "final_leases": 4}
    start(tmp_path, tiny(league={**ONE_PLAYER, "ratings": ratings}), env_steps=1500)
    run = tmp_path / "run"
    assert league("replays", run, "--no-play", "--json").json == {"games": []}
    first = league("replays", run, "--telling", "4", "--json")
    games = first.json["games"]
    assert first.code == 0 and games
    for game in games:
        verify_replay(read_replay(RunFolder(run).replays_path / game["file"]))
    files = sorted(path.name for path in RunFolder(run).replays_path.iterdir())
    assert league("replays", run, "--telling", "4", "--json").json == first.json
    assert sorted(path.name for path in RunFolder(run).replays_path.iterdir()) == files
    assert "league replay" in league("replays", run, "--telling", "1").out
    watched = league("watch", run, "--games", "1", "--delay", "0")
    assert watched.code == 0 and "Ended after" in watched.out
