"""Gumbel search against mctx, on a game without an end; the golden file's maker is `tests/oracles/mctx_golden.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from league.agents.acting.search.gumbel import Gumbel, considered_visits, improved_policy
from league.agents.acting.search.positions import Positions
from league.agents.acting.search.search import Search
from league.agents.acting.search.trees import KNOWN, VISITS, Trees
from league.envs.games.connect_four import ConnectFour
from tests.oracles.mctx_golden import ACTIONS, FILE, FORBIDDEN, ROOTS, after, logit, value

CASES = json.loads(FILE.read_text())["cases"]


class NumberedPositions:
    """The positions of the golden file's game in the place of copies; an observation is the number of the position."""

    def __init__(self) -> None:
        self.spec = ConnectFour(num_envs=1).spec
        self._states = np.array(ROOTS)
        legal = np.array([[action not in moves for action in range(ACTIONS)] for moves in FORBIDDEN])
        self.now = self._positions(self._states, legal, np.zeros(len(ROOTS), np.int64))

    def reach(self, tree: NDArray[np.int64], moves: NDArray[np.int64], length: NDArray[np.int64]) -> Positions:
        states = self._states[tree]
        for depth in range(moves.shape[1]):
            states = np.where(depth < length, after(states, moves[:, depth]), states)
        return self._positions(states, np.ones((len(tree), ACTIONS), np.bool_), length % 2)

    def _positions(self, states: NDArray[np.int64], legal: NDArray[np.bool_], seat: NDArray[np.int64]) -> Positions:
        none = np.zeros((len(states), 2), np.float32)
        return Positions({"state": states}, legal, seat, none, np.zeros(len(states), np.bool_))


class FormulaJudge:
    def judge(self, obs: Mapping[str, NDArray[Any]], legal: NDArray[np.bool_], seat: NDArray[np.int64]) -> Any:
        state = obs["state"]
        return logit(state[:, None], np.arange(ACTIONS)).astype(np.float32), value(state).astype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['num_simulations']} simulations")
def test_visits_targets_and_moves_are_those_of_mctx(case):
    count, num_simulations = len(ROOTS), case["num_simulations"]
    trees = Trees(count, num_simulations + 2, num_actions=ACTIONS, num_seats=2, win=1.0)
    search = Search(NumberedPositions(), FormulaJudge(), trees)  # type: ignore[arg-type]
    chooser = Gumbel(np.array(case["noise"], np.float32), num_simulations=num_simulations)
    search.open_roots()
    search.run(chooser, num_simulations=num_simulations)
    assert trees.moves[trees.roots, VISITS].astype(int).tolist() == case["visits"]
    np.testing.assert_allclose(improved_policy(trees), case["policy"], rtol=1e-4, atol=1e-6)
    assert chooser.best(trees).tolist() == case["action"]


def test_halving_spends_its_simulations_on_ever_fewer_moves():
    # 4 moves, 16 simulations: two visits of each of 4, then four more of each of the best 2 (appendix of the paper)
    assert considered_visits(4, 16)[4].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    assert considered_visits(4, 5)[1].tolist() == [0, 1, 2, 3, 4]


def test_no_move_is_illegal_where_every_considered_one_is_lost() -> None:
    trees = Trees(1, 4, num_actions=3, num_seats=2, win=1.0)
    trees.moves[trees.roots, KNOWN] = np.array([-np.inf, -1.0, np.nan], np.float32)
    trees.moves[trees.roots, VISITS] = np.array([0.0, 2.0, 0.0], np.float32)
    chooser = Gumbel(np.zeros((1, 3), np.float32), num_simulations=2)
    assert chooser.best(trees)[0] != 0
    assert (chooser.choose(trees, trees.roots, 2, depth=0) != 0).all()
