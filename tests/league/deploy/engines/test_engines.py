"""Policies behind GTP and UCI: transcripts, memory, moves taken back, and a game against a client of others."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
import pytest

from league.agents.acting.network_policy import NetworkPolicy, Sampling
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.deploy.engines.engine_game import EngineGame
from league.deploy.engines.gtp import GtpEngine
from league.deploy.engines.uci import UciEngine
from league.envs.notation.notation import notation_of
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.errors import LeagueError
from league.judge.contenders.contender import Game, OpenConditions
from league.judge.contenders.engine import EngineCommand
from league.judge.contenders.finding import find_contenders
from league.judge.contenders.uci import UciProgram
from league.judge.recording.recorder import record_game
from tests.league.commands import league

ROOT = Path(__file__).parents[4]
CHESS, GO = EnvConfig("pettingzoo:classic/chess_v6"), EnvConfig("openspiel:go(board_size=5)")


def game_of_env(env: EnvConfig) -> Game:
    return Game(env, spec_of(env))


@contextmanager
def played(env_id: str, written: str = "bot:tactical") -> Iterator[EngineGame]:
    game = game_of_env(EnvConfig(env_id))
    with ExitStack() as stack:
        policy = stack.enter_context(find_contenders([written])[0].open(game, OpenConditions(seed=0, greedy=True)))
        opened = EngineGame(game, policy)
        stack.callback(opened.close)
        yield opened


def gtp(game: EngineGame, *lines: str) -> list[str]:
    out = io.StringIO()
    GtpEngine(game, name="Mine").run(lines, out)
    return out.getvalue().split("\n\n")[:-1]


def uci(game: EngineGame, *lines: str) -> list[str]:
    out = io.StringIO()
    UciEngine(game, name="Mine").run(lines, out)
    return out.getvalue().splitlines()


def test_a_transcript_of_gtp_is_as_its_specification_says() -> None:
    with played("connect_four") as game:
        answers = gtp(
            game,
            "# a remark alone, and an empty line",
            "",
            "1 protocol_version",
            "name",
            "7 known_command genmove",
            "known_command fly",
            "play b 4",
            "play w 1",
            "play black 4",
            "play w 1",
            "play b 4",
            "9 genmove w  # three in a column must be stopped",
            "genmove w",
            "play b 9",
            "play green 1",
            "genmove",
            "fly",
            "undo",
            "genmove w",
            "clear_board",
            "undo",
            "3 quit",
            "name",
        )
    assert answers == [
        "=1 2",
        "= Mine",
        "=7 true",
        "= false",
        *["="] * 5,
        "=9 4",
        "? it is the turn of black",
        "? illegal move: 9 is none of the moves 1 2 3 4 5 6 7",
        "? invalid color",
        "? syntax error",
        "? unknown command",
        "=",
        "= 4",
        "=",
        "? cannot undo",
        "=3",
    ]


def test_a_game_that_is_over_and_a_column_that_is_full_are_refused() -> None:
    with played("connect_four") as game:
        answers = gtp(game, *["play b 1", "play w 1"] * 3, "play b 1", "play b 2", "play w 2")
        assert answers[6:] == ["? illegal move: 1 is not allowed now", "=", "="]
        answers = gtp(game, "clear_board", *["play b 1", "play w 2"] * 3, "play b 1", "genmove w", "undo", "genmove b")
    assert answers[8:] == ["? the game is over", "=", "= 1"]


def test_go_takes_the_size_and_the_komi_that_it_learnt() -> None:
    with played(GO.id, "bot:random") as game:
        answers = gtp(
            game, "boardsize 5", "boardsize 9", "komi 7.5", "komi 6.5", "komi much", "play b pass", "play w c3"
        )
    refused = "? this policy was trained with a komi of 7.5"
    assert answers == ["=", "? unacceptable size", "=", refused, "? komi not a float", "=", "="]


def test_a_transcript_of_uci_is_as_its_description_says() -> None:
    with played(CHESS.id, "bot:random") as game:
        answers = uci(
            game,
            "uci",
            "isready",
            "a word that nobody knows",
            "ucinewgame",
            "position startpos moves e2e4",
            "position startpos moves e2e4 e7e5",
            "position startpos moves e2e5",
            "go nodes 5",
            "position fen 8/8/8/8/8/8/8/K1k5 w - - 0 1",
            "position startpos moves f2f3 e7e5 g2g4 d8h4",
            "go infinite",
            "quit",
            "uci",
        )
        assert answers[:4] == [answers[0], "id author a self-play league", "uciok", "readyok"]
        assert answers[0].startswith("id name Mine (League ")
        assert answers[4].startswith("info string e2e5 is no legal move")
        assert answers[5] == "bestmove 0000"
        assert answers[6].startswith("info string a game begins with the standard position")
        assert answers[7:] == ["bestmove 0000"], "it is mate"
        assert uci(game, "position startpos moves f2f3 e7e5 g2g4", "go")[-1].startswith("bestmove ")
    with played("connect_four") as game, pytest.raises(LeagueError, match="UCI is the protocol of chess"):
        uci(game)


def test_a_policy_with_memory_plays_as_in_a_match_whoever_makes_its_moves() -> None:
    env = EnvConfig("connect_four")
    network = build_network(spec_of(env), NetworkConfig(hidden=(8,), core="lstm", core_size=4), seed=3)
    policy = NetworkPolicy(network, choice=Sampling(greedy=True))
    game = EngineGame(game_of_env(env), policy)
    recorded = record_game(env, [policy, policy], 0)
    wanted = [str(int(action) + 1) for action in np.frombuffer(recorded.actions, recorded.action_dtype)]
    value = game.value()
    assert value is not None and -1 <= value <= 1
    while not game.over:
        game.choose()
    assert game.names == wanted
    game.follow([])
    for number, name in enumerate(wanted):  # told of every move but some of its own
        if number % 3 == 0:
            assert game.choose() == name
        else:
            game.play(name)
    game.follow(wanted[:5])
    assert game.choose() == wanted[5]
    game.close()


ENGINE = """#!{python}
import sys
sys.path.insert(0, {root!r})
from league.deploy.engines.run_engine import run_engine
run_engine("bot:random", protocol="", env={env!r}, greedy=True, search=0, seed=0)
"""


def test_the_package_chess_plays_a_game_with_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.judge.contenders.uci.START_S", 150.0)  # it imports first
    program = tmp_path / "program"
    program.write_text(ENGINE.format(python=sys.executable, root=str(ROOT), env=CHESS.id))
    program.chmod(0o755)
    notation = notation_of(CHESS, spec_of(CHESS))
    assert notation is not None
    engine = UciProgram(EngineCommand("uci", str(program), 60.0, {}), notation)
    position = notation.start()
    names: list[str] = []
    try:
        for _ in range(12):  # both sides
            names.append(engine.move(position, names, game=0))
            position.push(position.action(names[-1]))
    finally:
        engine.close()
    assert engine.title.startswith("bot:random (League ")


def test_what_cannot_be_played_is_refused_in_one_sentence() -> None:
    assert "have no names that an engine could say" in league("engine", "bot:random", "--env", "kuhn_poker").err
    assert "--protocol xboard: there are gtp and uci." in league("engine", "bot:random", "--protocol", "xboard").err
