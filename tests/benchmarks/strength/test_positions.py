"""Critical positions: what the stored file holds, that policies see the right board, what counts as kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.strength.positions import (
    NUM_POSITIONS,
    Position,
    answers,
    chance,
    make_positions,
    moves_keep,
    stored_positions,
)
from league.agents.acting.policy import ActInputs, ActOutputs
from league.envs.games.connect_four import COLS, ROWS, ConnectFour


def board_after(moves: Sequence[int]) -> NDArray[np.bool_]:
    """[2, 6, 7] as the seat to move sees it, by hand."""
    planes, heights = np.zeros((2, ROWS, COLS), np.bool_), [0] * COLS
    for ply, column in enumerate(moves):
        planes[(ply + len(moves)) % 2, ROWS - 1 - heights[column], column] = True
        heights[column] += 1
    return planes


def after(moves: Sequence[int]) -> ConnectFour:
    """One game after these moves, none of which ends it."""
    game = ConnectFour(num_envs=1)
    game.reset(0)
    for move in moves:
        assert not game.step(np.array([move])).ended.any()
    return game


class Known:
    """A seat policy that looks the board up and plays what is written there."""

    version = 0

    def __init__(self, positions: Sequence[Position], columns: Sequence[int]) -> None:
        self._columns = {
            board_after(position.moves).tobytes(): column for position, column in zip(positions, columns, strict=True)
        }

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        boards = inputs.turn.obs["board"][inputs.slots]
        actions = np.array([self._columns[board.tobytes()] for board in boards])
        return ActOutputs(actions=actions, log_probs=np.zeros(len(actions), np.float32), core=inputs.core)


def test_results_are_kept_whatever_the_distance_to_them():
    assert Position((), (3, 1, None, 0, -2, 9, -1)).keeping().tolist() == [True, True, False, False, False, True, False]
    assert Position((), (0, -1, None, 0, -2, -9, -1)).keeping().tolist() == [True, *[False] * 2, True, *[False] * 3]
    assert not Position((), (-1, -5, None, -9, -2, -3, -1)).critical
    assert not Position((), (1, 5, None, 9, 2, 3, 1)).critical


def test_stored_positions_are_critical_and_no_two_are_the_same():
    positions = stored_positions()
    assert len(positions) == NUM_POSITIONS
    assert all(position.critical for position in positions)
    assert (
        len({board_after(position.moves).tobytes() + bytes([len(position.moves) % 2]) for position in positions}) == 500
    )


def test_stored_positions_are_open_games_whose_legal_columns_are_scored():
    for position in stored_positions():
        turn = after(position.moves).fork(np.zeros(1, np.int64))[1]
        assert turn.action_mask is not None
        assert turn.action_mask[0].tolist() == position.legal.tolist()


def test_wins_in_one_score_highest_and_moves_that_allow_one_are_lost():
    """The convention of the stored scores, by moves whose truth is seen on the board."""
    wins = gifts = 0
    for position in stored_positions():
        columns = np.flatnonzero(position.legal)
        game = after(position.moves)
        tried = game.fork(np.zeros(len(columns), np.int64))[0]
        turn = tried.step(columns)
        assert turn.action_mask is not None
        place, reply = np.nonzero(turn.action_mask & ~turn.ended[:, None])
        lost = tried.fork(place)[0].step(reply).ended
        scores = [position.scores[column] or 0 for column in columns.tolist()]
        for number, won in enumerate(turn.ended.tolist()):
            if won:
                wins += 1
                assert scores[number] == max(scores) > 0
            elif lost[place == number].any():
                gifts += 1
                assert scores[number] < 0
    assert wins > 20
    assert gifts > 100


def test_every_policy_is_asked_about_the_board_as_its_seat_sees_it():
    positions = stored_positions()
    columns = [position.moves[0] for position in positions]  # any column known beforehand
    found = answers(Known(positions, columns), positions, rng=np.random.default_rng(0))
    assert found.tolist() == columns


def test_share_kept_is_one_for_the_solver_and_nothing_for_its_opposite():
    positions = stored_positions()
    keeping = [int(np.flatnonzero(position.keeping())[0]) for position in positions]
    losing = [int(np.flatnonzero(position.legal & ~position.keeping())[0]) for position in positions]
    assert moves_keep(Known(positions, keeping), positions) == 1.0
    assert moves_keep(Known(positions, losing), positions) == 0.0
    assert moves_keep(Known(positions, [*keeping[:250], *losing[250:]]), positions) == 0.5


def test_chance_is_what_uniform_play_keeps():
    two = [Position((), (1, 1, -1, -1, None, None, None)), Position((0,), (0, -1, -1, -1, -1, None, None))]
    assert chance(two) == pytest.approx((0.5 + 0.2) / 2)
    assert chance(stored_positions()) == pytest.approx(0.363, abs=0.001)


def test_positions_are_made_alike_from_the_same_seed_and_only_critical_ones_are_kept():
    asked: list[tuple[int, ...]] = []

    def first_column_wins(moves: Sequence[int]) -> list[int | None]:
        asked.append(tuple(moves))
        worth = 1 if len(moves) % 2 else 0  # after an even number of moves all columns are alike
        return [worth, *[0] * (COLS - 1)]

    made = make_positions(first_column_wins, count=60, seed=4)
    assert made == make_positions(first_column_wins, count=60, seed=4)
    assert made != make_positions(first_column_wins, count=60, seed=5)
    lengths = [len(position.moves) for position in made]
    assert set(lengths) == {9, 11, 13, 15}
    assert {len(moves) for moves in asked} == set(range(8, 17))
