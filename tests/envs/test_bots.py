"""What bots answer: the tactical one against brute force, tree search on positions with a known answer."""

from __future__ import annotations

import numpy as np
import pytest
from gymnasium import spaces

from league.envs import bots
from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.bots import Bot, Copyable, TacticalBot, _tactics, make_bot
from league.envs.games.connect_four import ConnectFour
from league.envs.games.tic_tac_toe import TicTacToe
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, Turn
from league.envs.registry import make
from league.envs.sampling import uniform_legal
from tests.envs.oracles.raw_roles import RawRoles
from tests.envs.oracles.slow_boards import SlowBoard, slow_connect_four


def all_slots(turn: Turn) -> np.ndarray:
    return np.arange(turn.env_index.size)


def played(env: BatchedEnv, moves: list[int]) -> Turn:
    """One game after these moves."""
    turn = env.reset(0)
    for move in moves:
        turn = env.step(np.array([move]))
        assert not turn.ended.any()
    return turn


def score(home: Bot, away: Bot, *, games: int, seed: int = 0) -> float:
    """Mean score of `home`, half of the games from each seat, random openings of two plies."""
    env = ConnectFour(num_envs=games, opening_plies=2)
    turn, home_seat = env.reset(seed), np.arange(games) % 2
    over, scores = np.zeros(games, np.bool_), np.zeros(games)
    while not over.all():
        assert turn.action_mask is not None
        actions = turn.action_mask.argmax(axis=1)
        for bot, seat in ((home, home_seat), (away, 1 - home_seat)):
            slots = np.flatnonzero((turn.seat == seat) & ~over)
            actions[slots] = bot.act(env, turn, slots)
        turn = env.step(actions)
        new = turn.ended & ~over
        scores[new] = (turn.returns[new, home_seat[new]] + 1) / 2
        over |= new
    return float(scores.mean())


def test_random_is_uniform_over_legal_actions() -> None:
    env = TicTacToe(num_envs=6000)
    turn = env.reset(0)
    turn = env.step(np.full(6000, 4))
    actions = make_bot("random", seed=0).act(env, turn, all_slots(turn))
    counts = np.bincount(actions, minlength=9)
    assert counts[4] == 0
    assert counts[[0, 1, 2, 3, 5, 6, 7, 8]].min() > 650  # 750 expected, standard deviation 26


def test_random_answers_boxes_within_bounds() -> None:
    env = make(EnvConfig("gymnasium:Pendulum-v1"), num_envs=50)
    turn = env.reset(0)
    actions = make_bot("random", seed=0).act(env, turn, all_slots(turn))
    assert actions.shape == (50, 1)
    assert actions.dtype == np.float32
    assert -2 <= actions.min() < -1 < 1 < actions.max() <= 2
    env.step(actions)


def test_tactical_wins_in_one_else_blocks_in_one_like_brute_force() -> None:
    env, rng, bot = ConnectFour(num_envs=30), np.random.default_rng(3), TacticalBot(seed=0)
    boards, turn = [slow_connect_four() for _ in range(30)], env.reset(0)
    seen = {"win": 0, "block": 0, "free": set()}
    for _ in range(20):
        actions = np.asarray(bot.act(env, turn, all_slots(turn)))
        for game, board in enumerate(boards):
            wins, blocks = board.winning_moves(board.seat), board.winning_moves(1 - board.seat)
            wanted = wins or blocks or board.legal()
            assert actions[game] in wanted
            seen["win"] += bool(wins)
            seen["block"] += bool(blocks and not wins)
            if not wins and not blocks:
                seen["free"].add(int(actions[game]))
        assert turn.action_mask is not None
        moves = uniform_legal(turn.action_mask, rng)  # random play goes on, so that threats stay open
        turn = env.step(moves)
        for game, board in enumerate(boards):
            if board.place(int(moves[game])) != "on":
                boards[game] = slow_connect_four()
    assert seen["win"] > 20
    assert seen["block"] > 20
    assert seen["free"] == set(range(7))


@pytest.mark.parametrize("game", ["tic_tac_toe", "connect_four"])
def test_tactical_threats_are_replies_that_win_after_every_other_move(game: str) -> None:
    env, rng = make(EnvConfig(game), num_envs=12), np.random.default_rng(5)
    turn, threats = env.reset(0), 0
    for _ in range(25):
        slots = all_slots(turn)
        assert turn.action_mask is not None
        blocks, wins = _tactics(env, turn, slots, turn.action_mask)
        for slot in range(12):
            wanted = [] if wins[slot].any() else slow_threats(env, turn, slot)
            assert np.flatnonzero(blocks[slot]).tolist() == wanted
            threats += len(wanted)
        turn = env.step(uniform_legal(turn.action_mask, rng))
    assert threats > 10


def slow_threats(env: BatchedEnv, turn: Turn, slot: int) -> list[int]:
    """One game at a time, one move after the other."""
    assert isinstance(env, Copyable)
    assert turn.action_mask is not None
    moves, lost_to = np.flatnonzero(turn.action_mask[slot]), {}
    for move in moves:
        game, _ = env.fork(np.array([turn.env_index[slot]]))
        after = game.step(np.array([move]))
        if not after.ended[0]:
            assert isinstance(game, Copyable)
            assert after.action_mask is not None
            lost_to[move] = []
            for reply in np.flatnonzero(after.action_mask[0]):
                last = game.fork(np.array([0]))[0].step(np.array([reply]))
                if last.ended[0] and last.returns[0, 1 - turn.seat[slot]] > last.returns[0, turn.seat[slot]]:
                    lost_to[move].append(reply)
    others = {reply: [move for move in lost_to if move != reply] for reply in moves}
    return [reply for reply in moves if others[reply] and all(reply in lost_to[move] for move in others[reply])]


def test_tactical_copies_a_few_games_for_each_move_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    env, sizes, fork = ConnectFour(num_envs=40), [], ConnectFour.fork
    turn = env.reset(0)
    monkeypatch.setattr(ConnectFour, "fork", lambda self, games: sizes.append(len(games)) or fork(self, games))
    whole = np.asarray(TacticalBot(seed=2).act(env, turn, all_slots(turn)))
    assert sum(sizes) <= 40 * (1 + 7 + 2 * 7)  # 7 x 7 for all pairs of a move and a reply
    monkeypatch.setattr(bots, "COPIES", 21)
    sizes.clear()
    assert np.array_equal(TacticalBot(seed=2).act(env, turn, all_slots(turn)), whole)
    assert max(sizes) <= 2 * 21


def test_tactical_blocks_although_the_other_seat_then_wins_above() -> None:
    # Second holds columns 1 to 3 of the two bottom rows: column 0 is lost either way, and still the block.
    env = ConnectFour(num_envs=1)
    turn = played(env, [4, 1, 5, 1, 6, 2, 4, 2, 5, 3, 6, 3])
    assert {int(TacticalBot(seed=seed).act(env, turn, np.array([0]))[0]) for seed in range(8)} == {0}


def test_tactical_may_walk_into_a_win_above_its_own_stone() -> None:
    """It looks at the threats that stand, and does not search: a stronger one would be another rung of the ladder."""
    assert 0.9 < score(make_bot("tactical", seed=1), make_bot("random", seed=2), games=200) < 1


@pytest.mark.parametrize("name", ["tactical", "mcts:60"])
def test_games_are_left_as_they_are_and_slots_can_be_a_part(name: str) -> None:
    env = ConnectFour(num_envs=6)
    turn = env.reset(0)
    turn = env.step(np.arange(6))
    saved = env.save()
    actions = make_bot(name, seed=0).act(env, turn, np.array([4, 1]))
    assert actions.shape == (2,)
    assert all(np.array_equal(array, env.save()[key]) for key, array in saved.items())
    assert make_bot(name, seed=0).act(env, turn, np.zeros(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("name", ["random", "tactical", "mcts:30"])
def test_the_same_seed_gives_the_same_answers(name: str) -> None:
    def answers() -> list[list[int]]:
        env, bot = ConnectFour(num_envs=5), make_bot(name, seed=4)
        turn, given = env.reset(0), []
        for _ in range(6):
            actions = bot.act(env, turn, all_slots(turn))
            given.append(actions.tolist())
            turn = env.step(actions)
        return given

    assert answers() == answers()


def test_search_takes_a_win_and_stops_a_loss() -> None:
    env = ConnectFour(num_envs=1)
    assert make_bot("mcts:60", seed=0).act(env, played(env, [3, 0, 3, 0, 3, 1]), np.array([0])).tolist() == [3]
    assert make_bot("mcts:200", seed=0).act(env, played(env, [3, 0, 3, 0, 3]), np.array([0])).tolist() == [3]


def test_search_sees_the_double_threat() -> None:
    # First has the bottom of columns 2 and 3 with both sides open: 1 or 4 next makes three in a row, open twice.
    env = ConnectFour(num_envs=1)
    turn = played(env, [3, 3, 2, 2])
    assert make_bot("mcts:400", seed=0).act(env, turn, np.array([0]))[0] in (1, 4)


def test_search_never_loses_tic_tac_toe() -> None:
    env, turn = TicTacToe(num_envs=30), None
    turn = env.reset(0)
    searcher, other = make_bot("mcts:300", seed=0), make_bot("random", seed=1)
    results: list[float] = []
    for _ in range(9):
        mine = turn.seat == 1
        actions = np.zeros(30, np.int64)
        for bot, slots in ((searcher, np.flatnonzero(mine)), (other, np.flatnonzero(~mine))):
            actions[slots] = bot.act(env, turn, slots)
        turn = env.step(actions)
        results.extend(turn.returns[turn.ended, 1].tolist())
    assert len(results) >= 30
    assert min(results) >= 0


def test_proven_values_equal_exhaustive_search() -> None:
    """With enough simulations every root near the end is proven, and the move has the true value."""
    env = TicTacToe(num_envs=200, opening_plies=4)
    turn = env.reset(1)
    actions = make_bot("mcts:600", seed=0).act(env, turn, all_slots(turn))
    for game in range(0, 200, 4):
        own, other = turn.obs["board"][game]
        board = SlowBoard(3, 3, 3, drops=False)
        board.cells = [[0 if own[r, c] else 1 if other[r, c] else None for c in range(3)] for r in range(3)]
        values = {move: value_of(board, move) for move in board.legal()}
        assert values[int(actions[game])] == max(values.values())


def value_of(board: SlowBoard, move: int) -> int:
    """The game-theoretic value of a move for the seat to move."""
    after = SlowBoard(board.rows, board.cols, board.in_row, board.drops)
    after.cells, after.seat = [list(row) for row in board.cells], board.seat
    outcome = after.place(move)
    if outcome != "on":
        return 1 if outcome == "win" else 0
    return -max(value_of(after, reply) for reply in after.legal())


def test_search_beats_tactics() -> None:
    # Measured over 200 games and more: mcts:100 v tactical 0.90; fewer here, wide bounds.
    assert score(make_bot("mcts:50", seed=1), make_bot("tactical", seed=2), games=40) > 0.6


def test_search_also_plays_outside_games() -> None:
    env = make(EnvConfig("pettingzoo:classic/tictactoe_v3"), num_envs=1)
    turn = played(env, [0, 8, 1, 5])
    assert make_bot("tactical", seed=0).act(env, turn, np.array([0])).tolist() == [2]
    assert make_bot("mcts:30", seed=0).act(env, turn, np.array([0])).tolist() == [2]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tacticle", "unknown bot 'tacticle'; did you mean tactical"),
        ("mcts", "write mcts:100"),
        ("mcts:0", "1 or more"),
        ("mcts:-5", "1 or more"),
        ("random:3", "takes no number"),
    ],
)
def test_a_wrong_name_is_one_sentence(name: str, words: str) -> None:
    with pytest.raises(EnvError, match=words):
        make_bot(name, seed=0)


@pytest.mark.parametrize(
    ("name", "env_id", "words"),
    [
        ("mcts:5", "rock_paper_scissors", "needs one seat to act at a time"),
        ("tactical", "gymnasium:CartPole-v1", "plays games of two seats"),
        ("mcts:5", "gymnasium:Pendulum-v1", "needs numbered actions"),
    ],
)
def test_a_bot_says_which_games_it_cannot_play(name: str, env_id: str, words: str) -> None:
    env = make(EnvConfig(env_id), num_envs=2)
    turn = env.reset(0)
    with pytest.raises(EnvError, match=words):
        make_bot(name, seed=0).act(env, turn, all_slots(turn))


@pytest.mark.parametrize("name", ["tactical", "mcts:5"])
def test_bots_that_search_say_that_they_cannot_play_a_duel_of_boxes(name: str) -> None:
    force = spaces.Box(-1.0, 1.0, (2,), np.float32)
    duel = ParallelEnv.of(
        lambda: RawRoles({"one": 1, "two": 1}, {"one": force, "two": force}), env_id="duel", num_envs=2
    )
    turn = duel.reset(0)
    with pytest.raises(EnvError, match=f"the bot {name.partition(':')[0]} needs numbered actions, duel takes another"):
        make_bot(name, seed=0).act(duel, turn, np.arange(turn.env_index.size))
