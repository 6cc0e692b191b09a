"""The acting policy: perfect knowledge loses nothing, small games are not lost, and trees go on between moves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs
from league.agents.acting.search.config import SearchConfig, game_problems
from league.agents.acting.search.gumbel import Gumbel
from league.agents.acting.search.positions import Roots
from league.agents.acting.search.puct import Puct, visit_policy
from league.agents.acting.search.search import Search
from league.agents.acting.search.search_policy import NetworkJudge, PlainNetwork, SearchPolicy, _nodes_of
from league.agents.acting.search.trees import Trees
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import Weights, layout_of
from league.envs.bots import Bot, make_bot
from league.envs.games.connect_four import ConnectFour
from league.envs.games.kuhn import KuhnPoker
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import BatchedEnv, EnvError
from tests.agents.acting.search.judges import played
from tests.oracles.connect_four_solver import Solver, bits_of


def network_policy(env: BatchedEnv, **settings: Any) -> NetworkPolicy:
    return NetworkPolicy(build_network(env.spec, NetworkConfig(hidden=(16,), **settings), seed=0))


def inputs_of(env: BatchedEnv, turn: Any, slots: NDArray[np.int64] | None = None) -> ActInputs:
    slots = np.arange(len(turn.env_index)) if slots is None else slots
    return ActInputs(env, turn, slots, np.zeros((len(slots), 0), np.float32))


def games_lost(policy: SearchPolicy, opponent: Bot, *, games: int) -> int:
    """Of tic-tac-toe against a bot, with each seat half of the time."""
    env = TicTacToe(num_envs=games)
    turn, rng, lost, over = env.reset(0), np.random.default_rng(0), 0, np.zeros(games, np.bool_)
    own_seat = np.arange(games) % 2
    while not over.all():
        mine = turn.seat == own_seat
        actions = np.zeros(games, np.int64)
        own, others = np.flatnonzero(mine), np.flatnonzero(~mine)
        if own.size:
            actions[own] = policy.act(inputs_of(env, turn, own), rng).actions
        if others.size:
            actions[others] = opponent.act(env, turn, others)
        turn = env.step(actions)
        ended = turn.ended & ~over
        lost += int((turn.returns[np.arange(games), own_seat][ended] < 0).sum())
        over |= ended
    return lost


def test_tic_tac_toe_is_never_lost_to_minimax_with_an_untrained_network():
    policy = SearchPolicy(network_policy(TicTacToe(num_envs=1)), SearchConfig(simulations=5_000), explores=False)
    assert games_lost(policy, make_bot("minimax", seed=0), games=8) == 0


class PerfectJudge:
    """Knows the result of every late position of Connect Four, and nothing of moves."""

    def __init__(self) -> None:
        self.solver = Solver()

    def judge(
        self, obs: Mapping[str, NDArray[Any]], legal: NDArray[np.bool_], seat: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        values = [self.solver.value(*bits_of(board)) for board in obs["board"]]
        return np.zeros(legal.shape, np.float32), np.array(values, np.float32)


SIMULATIONS = 100
"""With fewer, what a lost move's mean holds is mostly replies that no perfect opponent would give."""


@pytest.mark.parametrize("method", ["puct", "gumbel"])
def test_with_a_perfect_judge_no_critical_position_is_lost(method):
    env, judge = ConnectFour(num_envs=400), PerfectJudge()
    turn = played(env, plies=24, seed=5)
    late = np.flatnonzero(turn.obs["board"].sum(axis=(1, 2, 3)) >= 24)  # the others have begun again
    worth = {game: judge.solver.moves(*bits_of(turn.obs["board"][game])) for game in late[:25].tolist()}
    critical = np.array([game for game, values in worth.items() if len({*values} - {None}) > 1])
    roots = Roots(env, turn, critical)
    trees = Trees(len(critical), SIMULATIONS + 2, num_actions=7, num_seats=2, win=1.0)
    search = Search(roots, judge, trees)
    search.open_roots()
    chooser = (
        Puct() if method == "puct" else Gumbel(np.zeros((len(critical), 7), np.float32), num_simulations=SIMULATIONS)
    )
    search.run(chooser, num_simulations=SIMULATIONS)
    chosen = chooser.best(trees) if isinstance(chooser, Gumbel) else visit_policy(trees).argmax(axis=1)
    lost = [
        game
        for game, move in zip(critical.tolist(), chosen.tolist(), strict=True)
        if worth[game][move] != max(value for value in worth[game] if value is not None)
    ]
    assert len(critical) >= 12 and not lost


def test_a_tree_is_kept_below_the_moves_that_were_made():
    env = ConnectFour(num_envs=8)
    policy = SearchPolicy(network_policy(env), SearchConfig(simulations=64), explores=False)
    fresh = SearchPolicy(network_policy(env), SearchConfig(simulations=64, reuse=False), explores=False)
    turn, rng = played(env, plies=1), np.random.default_rng(0)
    calls = {"kept": 0, "fresh": 0}
    for name, one in (("kept", policy), ("fresh", fresh)):
        judge = one._judge.judge

        def counted(obs: Any, legal: Any, seat: Any, *, judge: Any = judge, name: str = name) -> Any:
            calls[name] += len(seat)
            return judge(obs, legal, seat)

        one._judge.judge = counted  # type: ignore[method-assign]
    for _ in range(4):
        actions = policy.act(inputs_of(env, turn), rng).actions
        fresh.act(inputs_of(env, turn), rng)
        turn = env.step(actions)
    assert calls["kept"] < 0.9 * calls["fresh"]


def test_what_is_kept_of_a_tree_is_that_part_of_it_and_nothing_of_another_game():
    env = ConnectFour(num_envs=3)
    policy = SearchPolicy(network_policy(env), SearchConfig(simulations=64), explores=False)
    turn, rng = played(env, plies=1), np.random.default_rng(0)
    actions = policy.act(inputs_of(env, turn), rng).actions
    memory = policy._memories[id(env)]._kept[0]
    before, after = memory.trees, memory.after
    turn = env.step(np.array([actions[0], actions[1], (actions[2] + 1) % 7]))  # the third game takes another move
    nodes = _nodes_of(memory, np.arange(3), Roots(env, turn, np.arange(3)).now.keys())
    assert nodes[:2].tolist() == after[:2].tolist() and nodes[2] == -1
    moved = before.moved_to(nodes, num_nodes=65)
    np.testing.assert_array_equal(moved.moves[moved.roots[:2]], before.moves[nodes[:2]])
    grandchild = before.child[nodes[0]].max()
    where = int(before.child[nodes[0]].argmax())
    np.testing.assert_array_equal(moved.moves[moved.child[0, where]], before.moves[grandchild])
    assert moved.visits()[2] == 0 and not moved.is_open[moved.roots[2]]


def test_a_search_out_of_time_answers_with_what_it_has():
    env = ConnectFour(num_envs=4)
    now = iter(range(1000))
    config = SearchConfig(simulations=500, time_limit_s=6.5, leaves=1)
    policy = SearchPolicy(network_policy(env), config, explores=True, clock=lambda: float(next(now)))
    outputs = policy.act(inputs_of(env, env.reset(0)), np.random.default_rng(0))
    assert policy._memories[id(env)]._kept[0].trees.visits().tolist() == [6.0] * 4
    np.testing.assert_allclose(outputs.recorded["search_policy"].sum(axis=1), 1.0, rtol=1e-5)


def test_no_time_at_all_leaves_the_policy_of_the_network():
    env = ConnectFour(num_envs=2)
    now = iter(range(0, 1000, 10))
    base = network_policy(env)
    policy = SearchPolicy(
        base, SearchConfig(time_limit_s=1.0, noise=0.0), explores=True, clock=lambda: float(next(now))
    )
    turn = env.reset(0)
    outputs = policy.act(inputs_of(env, turn), np.random.default_rng(0))
    np.testing.assert_allclose(outputs.recorded["search_policy"], base.evaluate(inputs_of(env, turn)).probs, rtol=1e-4)


def test_resigned_games_are_played_without_search_and_a_tenth_tells_how_often_that_was_wrong():
    env = ConnectFour(num_envs=64)
    config = SearchConfig(simulations=4, resign_below=0.99, played_on=0.5)
    policy = SearchPolicy(network_policy(env), config, explores=True)
    turn, rng = env.reset(0), np.random.default_rng(0)
    unsearched = 0
    for _ in range(120):
        outputs = policy.act(inputs_of(env, turn), rng)
        unsearched += int((outputs.recorded["search_policy"].sum(axis=1) == 0).sum())
        turn = env.step(outputs.actions)
    counts = policy.resignations
    assert unsearched > 1000  # every game is given up at its first move, and half of them are played on
    assert counts.games == counts.resigned + counts.played_on
    assert 0.3 < counts.played_on / counts.games < 0.7
    assert 0.3 < counts.mistaken / counts.played_on < 0.9  # the first seat wins about as often as not


@pytest.mark.parametrize(
    ("env", "words"),
    [
        (KuhnPoker(num_envs=1), "which would show a seat what kuhn_poker hides"),
        (TicTacToe(num_envs=1), "cannot be copied; give the env the methods of league.envs.protocol.ForkableEnv"),
    ],
)
def test_games_that_cannot_be_searched_are_refused_with_what_to_do(env, words):
    problems = game_problems(env.spec, can_copy=not isinstance(env, TicTacToe))
    assert len(problems) == 1 and words in problems[0]


def test_a_network_with_a_memory_is_refused():
    with pytest.raises(EnvError, match=r"network\.core: none"):
        SearchPolicy(network_policy(ConnectFour(num_envs=1), core="lstm"), SearchConfig(), explores=False)


@pytest.mark.parametrize("value_output", ["tanh", "linear"])
def test_a_few_rows_are_judged_in_numpy_as_by_the_network_with_its_newest_weights(value_output):
    env = ConnectFour(num_envs=5)
    policy = network_policy(env, value_output=value_output)
    judge, turn = NetworkJudge(policy.network), played(env, plies=6)
    other = build_network(env.spec, policy.network.config, seed=9)
    vector = torch.cat([parameter.detach().reshape(-1) for parameter in other.parameters()]).numpy()
    policy.adopt(Weights(vector, layout_of(other), 1))
    asked = (turn.obs, turn.action_mask, turn.seat)
    (logits, values), (known, expected) = judge.judge(*asked), judge._forward(*asked[:2], 5)
    np.testing.assert_allclose(logits[turn.action_mask], known[turn.action_mask], atol=1e-5)
    np.testing.assert_allclose(values, expected, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [
        {"activation": "tanh"},
        {"uniform_mix": 0.1},
        {"head": "q_values"},
        {"value": "separate"},
        {"value_output": "popart"},
    ],
    ids=str,
)
def test_a_network_that_is_not_plain_is_left_to_torch(settings):
    assert PlainNetwork.of(network_policy(ConnectFour(num_envs=1), **settings).network) is None
