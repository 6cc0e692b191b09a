"""Names of moves: every legal action has one name, which stands for it alone, to the end of random games."""

from __future__ import annotations

import io

import chess
import chess.pgn
import numpy as np
import pytest
from pettingzoo.classic.chess import chess_utils

from league.envs.notation.chess_moves import PettingZooChess
from league.envs.notation.game_record import game_record
from league.envs.notation.go_moves import GoPosition
from league.envs.notation.notation import CHESS, GO, NOTATIONS, notation_of
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make, spec_of

GAMES = (
    EnvConfig("openspiel:chess"),
    EnvConfig("pettingzoo:classic/chess_v6"),
    EnvConfig("openspiel:go(board_size=5)"),
    EnvConfig("pettingzoo:classic/go_v5", {"board_size": 5}),
    EnvConfig("connect_four"),
    EnvConfig("tic_tac_toe"),
    EnvConfig("othello"),
)
MOVES = 60
"""Most moves of a random game."""


def random_game(env_config: EnvConfig, *, seed: int, moves: int = MOVES):  # type: ignore[no-untyped-def]
    """Yields (legal actions, the one taken) of one random game."""
    env, rng = make(env_config, num_envs=1), np.random.default_rng(seed)
    turn = env.reset(seed)
    for _ in range(moves):
        assert turn.action_mask is not None
        legal = np.flatnonzero(turn.action_mask[0]).tolist()
        action = int(rng.choice(legal))
        yield legal, action
        turn = env.step(np.array([action]))
        if turn.ended[0]:
            break
    env.close()


@pytest.mark.parametrize("env", GAMES, ids=lambda env: env.id)
def test_each_legal_action_has_one_name_and_comes_back_from_it(env: EnvConfig) -> None:
    notation = notation_of(env, spec_of(env))
    assert notation is not None
    position = notation.start()
    for legal, action in random_game(env, seed=3):
        names = [position.name(one) for one in legal]
        assert len(set(names)) == len(names)
        assert [position.action(name) for name in names] == legal
        if notation.game == CHESS:
            assert set(names) == {move.uci() for move in position.board.legal_moves}  # type: ignore[attr-defined]
        position.push(action)
    with pytest.raises(ValueError, match="z9"):
        position.action("z9")


@pytest.mark.parametrize("fen", ["1n2k3/P7/8/8/8/8/7p/4K1N1 w - - 0 1", "1n2k3/P7/8/8/8/8/7p/4K1N1 b - - 0 1"])
def test_promotions_of_either_side_have_an_action_each(fen: str) -> None:
    position = PettingZooChess()
    position.board = chess.Board(fen)
    moves = position.moves()
    assert (
        len(moves) == position.board.legal_moves.count() and sum(bool(move.promotion) for move in moves.values()) == 8
    )
    assert all(position.action(position.name(action)) == action for action in moves)
    assert sorted(chess_utils.legal_moves(position.board)) == sorted(moves)
    made = {action: chess_utils.action_to_move(position.board, action, int("b -" in fen)) for action in moves}
    assert made == moves, "the env takes the action for the very move"


def test_every_registered_pattern_is_tested() -> None:
    assert {notation_of(env, spec_of(env)) is None for env in GAMES} == {False} and len(GAMES) == len(NOTATIONS)
    assert notation_of(EnvConfig("rock_paper_scissors"), spec_of(EnvConfig("rock_paper_scissors"))) is None


def test_a_game_of_chess_reads_back_as_pgn_move_for_move() -> None:
    env = EnvConfig("openspiel:chess")
    notation = notation_of(env, spec_of(env))
    assert notation is not None
    moves = [action for _, action in random_game(env, seed=5, moves=60)]
    tags = {"Event": 'a "cup"'}
    text = game_record(notation, moves, names=["A", "B"], returns=[-1.0, 1.0], tags=tags)
    read = chess.pgn.read_game(io.StringIO(text))
    assert read is not None and not read.errors
    assert (read.headers["White"], read.headers["Black"], read.headers["Result"]) == ("A", "B", "0-1")
    position = notation.start()
    for action, move in zip(moves, read.mainline_moves(), strict=True):
        assert position.name(action) == move.uci()
        position.push(action)


def test_go_is_numbered_from_the_bottom_or_the_top_and_leaves_the_letter_i_out() -> None:
    below, above = (GoPosition(size=19, from_top=from_top) for from_top in (False, True))
    assert (below.name(0), above.name(0), below.name(8), below.name(361)) == ("A1", "A19", "J1", "PASS")
    env = EnvConfig("openspiel:go(board_size=9,komi=5.5)")
    notation = notation_of(env, spec_of(env))
    assert notation is not None and (notation.game, notation.board_size, notation.komi) == (GO, 9, 5.5)
    with pytest.raises(EnvError, match="handicap"):
        notation_of(EnvConfig("openspiel:go(handicap=2)"), spec_of(env))


def test_a_record_of_go_gives_the_first_seat_to_black() -> None:
    env = EnvConfig("openspiel:go(board_size=5)")
    notation = notation_of(env, spec_of(env))
    assert notation is not None
    text = game_record(notation, [0, 25], names=["A", "B"], returns=[1.0, -1.0], tags={})
    assert '[Black "A"]' in text and '[Result "0-1"]' in text and text.rstrip().endswith("1. A1 PASS 0-1")
