"""Engines: they follow every game, a failure costs its game alone, the third ends their part, and none is left."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.contenders.contender import Game, UnknownContender
from league.judge.contenders.finding import find_contenders, require_playable
from league.judge.matches.contest import ContestConditions
from league.judge.matches.match_result import MatchResult
from tests.league.judge.contenders.fake_engines import GTP, UCI, made
from tests.league.judge.played_batch import play_batch

GO = EnvConfig("openspiel:go(board_size=5)")
CHESS = EnvConfig("pettingzoo:classic/chess_v6")
CONDITIONS = ContestConditions(seed=1)


def game_of_env(env: EnvConfig) -> Game:
    return Game(env, spec_of(env))


def all_ended(log: Path) -> bool:
    """True once none of the processes that wrote their pids runs."""
    deadline = time.monotonic() + 5.0
    for pid in map(int, log.read_text().split()):
        while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
            os.sched_yield()
        if Path(f"/proc/{pid}").exists():
            return False
    return True


def played(written: str, env: EnvConfig, *, games: int) -> MatchResult:
    lineup = find_contenders([written, "bot:random"])
    return play_batch(game_of_env(env), lineup, CONDITIONS, number=0, games=games)


def test_a_program_of_go_plays_whole_games_from_either_side_and_is_gone_afterwards(tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    for options in ("", "?fail=resign"):  # a program that gives up passes
        result = played(f"gtp:{program}{options}", GO, games=6)
        assert result.aborted == (0, 0) and result.games == 6
    assert all_ended(log) and len(log.read_text().split()) == 4, "one to find it and one to play, each time"


def test_the_identity_of_an_engine_is_its_title_and_its_options(tmp_path: Path) -> None:
    program, _ = made(tmp_path, GTP)
    first, same, other, newer = (
        find_contenders([f"gtp:{program}{options}"])[0] for options in ("", "?deadline=9", "?level=3", "?version=2")
    )
    assert first.reason == "the engine Fake Go 1"
    assert first.identity == same.identity and len({first.identity, other.identity, newer.identity}) == 3


@pytest.mark.parametrize("mode", ["crash", "hang", "illegal"])
def test_a_failure_costs_its_game_and_the_third_ends_the_part(mode: str, tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    deadline = "&deadline=0.3" if mode == "hang" else ""
    result = played(f"gtp:{program}?fail={mode}{deadline}", GO, games=8)
    assert result.aborted[1] == 0 and 3 <= result.aborted[0] <= 8
    assert result.games == 8 - 2 * len({*range(result.num_groups, 4)})
    assert all_ended(log)
    assert len(log.read_text().split()) <= 1 + 2 * 4, "after three failures it is not started again in a batch"


def test_a_program_of_chess_plays_and_its_crash_aborts_the_game(tmp_path: Path) -> None:
    program, log = made(tmp_path, UCI)
    (contender,) = find_contenders([f"uci:{program}?nodes=1"])
    require_playable([contender], game_of_env(CHESS))
    crashed = played(f"uci:{program}?Fail=true", CHESS, games=2)
    assert crashed.aborted[0] == 2 and crashed.games == 0
    assert all_ended(log)


def test_an_engine_that_cannot_take_part_is_named_in_one_sentence(tmp_path: Path) -> None:
    program, log = made(tmp_path, GTP)
    for written, sentence in (
        ("gtp:no-such-program", "there is no program 'no-such-program' here"),
        (f"gtp:{program}?fail=start", "the program has ended"),
        (f"gtp:{program}?level", "'level' is no option"),
        (f"gtp:{program}?deadline=soon", "is no number of seconds"),
    ):
        with pytest.raises(UnknownContender, match=sentence):
            find_contenders([written])
    (contender,) = find_contenders([f"gtp:{program}"])
    with pytest.raises(UnknownContender, match="plays go, and connect_four is no such game"):
        require_playable([contender], game_of_env(EnvConfig("connect_four")))
    assert all_ended(log)
