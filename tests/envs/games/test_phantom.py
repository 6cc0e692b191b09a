"""Phantom tic-tac-toe and dark hex: the rules and information states of OpenSpiel, by random games."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from typing import Any

import numpy as np
import pyspiel
import pytest

from league.envs.games.phantom import FIELD, PhantomBoard
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make

SAME: Mapping[str, tuple[str, dict[str, Any]]] = {
    "phantom_ttt(obstype=reveal-nothing,gameversion=classical)": ("phantom_tic_tac_toe", {}),
    "phantom_ttt(obstype=reveal-nothing,gameversion=abrupt)": ("phantom_tic_tac_toe", {"abrupt": True}),
    "dark_hex(board_size=3,gameversion=cdh)": ("dark_hex", {}),
    "dark_hex(board_size=3,gameversion=adh)": ("dark_hex", {"abrupt": True}),
    "dark_hex(num_rows=2,num_cols=3,gameversion=cdh)": ("dark_hex", {"rows": 2}),
    "dark_hex(num_rows=3,num_cols=2,gameversion=adh)": ("dark_hex", {"cols": 2, "abrupt": True}),
}
GAMES = 40


@pytest.mark.parametrize("name", SAME)
def test_rules_and_information_states_are_those_of_openspiel(name: str) -> None:
    theirs, rng = pyspiel.load_game(name), np.random.default_rng(1)
    seen: set[tuple[tuple[int, bytes], tuple[int, bytes]]] = set()
    with closing(make(EnvConfig(*SAME[name]), num_envs=1)) as env:
        for _ in range(GAMES):
            turn, state = env.reset(0), theirs.new_initial_state()
            while not turn.ended[0]:
                assert turn.action_mask is not None
                seat, legal = int(turn.seat[0]), np.flatnonzero(turn.action_mask[0])
                assert state.current_player() == seat and state.legal_actions() == legal.tolist()
                tensor = np.array(state.information_state_tensor(seat), np.float32)
                seen.add(((seat, turn.obs[FIELD][0].tobytes()), (seat, tensor.tobytes())))
                action = int(rng.choice(legal))
                state.apply_action(action)
                turn = env.step(np.array([action]))
                assert state.is_terminal() == bool(turn.ended[0])
            assert state.returns() == turn.returns[0].tolist()
    assert len(seen) == len({ours for ours, _ in seen}) == len({other for _, other in seen})


@pytest.mark.parametrize("abrupt", [False, True])
def test_what_rules_show_is_what_a_game_shows(abrupt: bool) -> None:
    with closing(make(EnvConfig("phantom_tic_tac_toe", {"abrupt": abrupt}), num_envs=1)) as env:
        assert isinstance(env, PhantomBoard)
        turn, rng = env.reset(0), np.random.default_rng(2)
        tries: list[list[int]] = [[], []]
        placed: list[list[bool]] = [[], []]
        while not turn.ended[0]:
            seat = int(turn.seat[0])
            cells, flags = np.array(tries[seat], np.int64).reshape(1, -1), np.array(placed[seat], np.bool_)
            shown, legal = env.rules.shown(seat, cells, flags)
            assert (shown[FIELD] == turn.obs[FIELD]).all() and (legal == turn.action_mask).all()
            action = int(rng.choice(np.flatnonzero(legal[0])))
            placed[seat].append(
                action not in [cell for cell, own in zip(tries[1 - seat], placed[1 - seat], strict=True) if own]
            )
            tries[seat].append(action)
            turn = env.step(np.array([action]))
        assert not all(placed[0] + placed[1])  # something was found


@pytest.mark.parametrize(
    ("env_id", "kwargs", "words"),
    [
        ("dark_hex", {"rows": 0}, "rows is 0"),
        ("dark_hex", {"rows": 4, "cols": 4}, "at most 12 cells"),
        ("dark_hex", {"abrupt": 1}, "abrupt is 1"),
        ("phantom_tic_tac_toe", {"in_row": 4}, r"in_row is 4; it must be in \[1, 3\]"),
        ("phantom_tic_tac_toe", {"rows": "3"}, "rows is '3'"),
    ],
)
def test_boards_that_are_none_are_refused(env_id: str, kwargs: dict[str, Any], words: str) -> None:
    with pytest.raises(EnvError, match=words):
        make(EnvConfig(env_id, kwargs), num_envs=1)
