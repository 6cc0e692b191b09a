"""PUCT over all trees at once against a literal search of one tree, and what waves may not change."""

from __future__ import annotations

import numpy as np
import pytest

from league.agents.acting.search import puct
from league.agents.acting.search.positions import Roots
from league.agents.acting.search.puct import Puct, add_noise, visit_policy
from league.agents.acting.search.search import Search
from league.agents.acting.search.trees import PRIOR, TOTAL, VISITS, Trees
from league.envs.games.connect_four import ConnectFour
from league.envs.games.othello import Othello
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import BatchedEnv, ForkableEnv, Turn
from tests.agents.acting.search.judges import DrawnJudge, played
from tests.oracles import single_tree


def searched(
    env: BatchedEnv, turn: Turn, judge: DrawnJudge, *, num_simulations: int, leaves: int = 1, trees: Trees | None = None
) -> Search:
    count = len(turn.env_index)
    trees = trees or Trees(
        count,
        num_simulations + leaves + 1,
        num_actions=env.spec.actions.num_actions,
        num_seats=env.spec.num_seats,
        win=1.0,
    )
    search = Search(Roots(env, turn, np.arange(count)), judge, trees, leaves=leaves)
    search.open_roots()
    search.run(Puct(), num_simulations=num_simulations)
    return search


@pytest.mark.parametrize(
    ("env", "plies"),
    [
        (ConnectFour(num_envs=6), 0),
        (ConnectFour(num_envs=6), 14),
        (TicTacToe(num_envs=6), 3),
        (Othello(num_envs=4), 9),  # seats pass, so that one moves twice in a row
    ],
)
@pytest.mark.parametrize("num_simulations", [1, 40, 130])
def test_visit_counts_are_those_of_a_literal_search_of_each_tree(env, plies, num_simulations):
    turn = played(env, plies=plies, seed=plies)
    judge = DrawnJudge(env.spec.actions.num_actions)
    trees = searched(env, turn, judge, num_simulations=num_simulations).trees

    def judged(one: Turn) -> tuple[np.ndarray, float]:
        logits, values = judge.judge(one.obs, one.action_mask, one.seat)
        return logits[0], float(values[0])

    for game in range(env.num_envs):
        assert isinstance(env, ForkableEnv)
        alone, now = env.fork(np.array([game]))
        root = single_tree.search(alone, now, judged, num_simulations)
        moves = trees.moves[trees.roots[game]]
        for action in range(env.spec.actions.num_actions):
            assert moves[VISITS, action] == root.visits.get(action, 0)
            assert moves[TOTAL, action] == pytest.approx(root.total.get(action, 0.0), abs=1e-4)
        assert trees.proven[trees.roots[game]] == (root.result is not None)
        if root.result is not None:
            assert trees.result[trees.roots[game], 0] == root.result


def test_a_wave_asks_the_judge_once_for_all_trees():
    env = ConnectFour(num_envs=32)
    judge = DrawnJudge(7)
    searched(env, played(env, plies=2), judge, num_simulations=20)
    assert judge.num_calls == 1 + 20  # the roots, and one leaf of every tree in each of 20 waves


def test_walks_of_one_wave_keep_out_of_one_anothers_way():
    env = ConnectFour(num_envs=1)
    judge = DrawnJudge(7)
    search = searched(env, played(env, plies=2), judge, num_simulations=96, leaves=8)
    assert judge.num_calls <= 1 + 96 // 8
    assert search.trees.visits()[0] == 96
    assert search.trees.num_used[0] > 80  # nearly every walk found a position of its own


def test_walks_of_one_wave_choose_alike_one_by_one_and_in_arrays(monkeypatch):
    env = ConnectFour(num_envs=2)
    visits = {}
    for name, most in (("plain numbers", 1 << 20), ("arrays", 0)):
        monkeypatch.setattr(puct, "MAX_SCALARS", most)
        search = searched(env, played(env, plies=4), DrawnJudge(7), num_simulations=240, leaves=8)
        visits[name] = search.trees.moves[search.trees.roots, VISITS].tolist()
    assert visits["plain numbers"] == visits["arrays"]


def test_noise_is_a_distribution_over_legal_moves():
    env = ConnectFour(num_envs=400)
    search = searched(env, played(env, plies=20, seed=1), DrawnJudge(7), num_simulations=1)
    before = search.trees.moves[search.trees.roots, PRIOR].copy()
    add_noise(search.trees, np.arange(400), 0.25, np.random.default_rng(0))
    noise = (search.trees.moves[search.trees.roots, PRIOR] - 0.75 * before) / 0.25
    np.testing.assert_allclose(noise.sum(axis=1), 1.0, rtol=1e-4)
    legal = before > 0
    assert (noise[~legal] == 0).all() and (noise > -1e-5).all()
    # the variance of Dirichlet(alpha) over 7 moves, alpha = 10 / 7: (1/7)(6/7) / (10 + 1)
    open_ = legal.all(axis=1)
    assert noise[open_].var(axis=0).mean() == pytest.approx(6 / 49 / 11, rel=0.2)


def test_a_proven_root_is_played_by_its_result_whatever_was_visited():
    env = TicTacToe(num_envs=1)
    turn = env.reset(0)
    for cell in (0, 3, 1, 4):  # two in a row each: the seat to move wins with 2
        turn = env.step(np.array([cell]))
    search = searched(env, turn, DrawnJudge(9), num_simulations=200)
    assert search.trees.proven[0] and search.trees.result[0].tolist() == [1.0, -1.0]
    assert visit_policy(search.trees)[0].tolist() == [0, 0, 1, 0, 0, 0, 0, 0, 0]
    assert search.root_values()[0] == 1.0
    assert search.trees.visits()[0] < 200  # and nothing is searched once it is known
