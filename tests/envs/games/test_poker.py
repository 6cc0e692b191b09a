"""Kuhn and Leduc: rules and observations against OpenSpiel's, dealing, and what bots may not see."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.envs.bots import make_bot
from league.envs.games.kuhn import BET, PASS, KuhnPoker, kuhn_tree
from league.envs.games.leduc import CALL, FOLD, RAISE, LeducBetting, LeducPoker, leduc_tree
from league.envs.games.poker import FIELD, BettingTree
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "poker.json").read_text())
TREES = {"kuhn_poker": kuhn_tree, "leduc_poker": leduc_tree}


def as_text(tree: BettingTree) -> set[str]:
    """Every information state as "tensor in hex:legal actions", as in the golden file."""
    seen, legal = tree.info_states()
    return {
        f"{int(''.join(map(str, row.astype(int))), 2):x}:{''.join(map(str, np.flatnonzero(actions)))}"
        for row, actions in zip(seen, legal, strict=True)
    }


@pytest.mark.parametrize("game", TREES)
def test_information_states_and_legal_actions_are_openspiels(game: str) -> None:
    tree, golden = TREES[game](), GOLDEN[game]
    assert tree.observed.shape[2] == golden["entries"]
    assert len(tree.info_states()[1]) == golden["num_info_states"]
    assert as_text(tree) == set(golden["info_states"].split())


@pytest.mark.parametrize("game", TREES)
def test_what_a_seat_sees_tells_situation_and_own_card_apart_and_nothing_else(game: str) -> None:
    tree = TREES[game]()
    for situation, numbers in enumerate(tree.info_state):
        for number in np.unique(numbers):
            seen = tree.observed[situation, numbers == number]
            assert (seen == seen[0]).all()
            assert not (np.delete(tree.info_state, situation, axis=0) == number).any()


def play(env: Any, *actions: int) -> Any:
    turn = None
    for action in actions:
        turn = env.step(np.array([action]))
    return turn


def with_cards(env: Any, cards: tuple[int, ...], deals: list[tuple[int, ...]]) -> Any:
    """One game of `env` with these cards."""
    env.reset(0)
    env.load({**env.save(), "deal": np.array([deals.index(cards)])})
    return env


def permutations(count: int, length: int) -> list[tuple[int, ...]]:
    return list(itertools.permutations(range(count), length))


@pytest.mark.parametrize(
    ("cards", "actions", "won"),
    [
        ((0, 1), (PASS, PASS), -1),
        ((2, 1), (PASS, PASS), 1),
        ((2, 1), (PASS, BET, PASS), -1),
        ((0, 2), (BET, PASS), 1),
        ((0, 2), (BET, BET), -2),
        ((2, 0), (PASS, BET, BET), 2),
    ],
)
def test_kuhn_pays_the_pot(cards: tuple[int, int], actions: tuple[int, ...], won: float) -> None:
    turn = play(with_cards(KuhnPoker(num_envs=1), cards, permutations(3, 2)), *actions)
    assert turn.terminated.all()
    assert turn.rewards.tolist() == turn.returns.tolist() == [[won, -won]]


@pytest.mark.parametrize(
    ("cards", "actions", "won"),
    [
        ((0, 2, 4), (RAISE, FOLD), 1),
        ((0, 2, 4), (CALL, RAISE, FOLD), -1),
        ((0, 2, 4), (RAISE, RAISE, FOLD), -3),
        ((0, 2, 4), (CALL, CALL, CALL, CALL), -1),
        ((0, 2, 1), (CALL, CALL, CALL, CALL), 1),  # a pair beats a higher rank
        ((4, 5, 0), (RAISE, CALL, RAISE, CALL), 0),  # equal ranks share
        ((4, 2, 0), (RAISE, RAISE, CALL, CALL, RAISE, RAISE, CALL), 13),  # the most that can be won
        ((4, 2, 0), (RAISE, CALL, CALL, RAISE, FOLD), -3),
    ],
)
def test_leduc_pays_the_pot(cards: tuple[int, int, int], actions: tuple[int, ...], won: float) -> None:
    turn = play(with_cards(LeducPoker(num_envs=1), cards, permutations(6, 3)), *actions)
    assert turn.terminated.all()
    assert turn.returns.tolist() == [[won, -won]]


def test_the_public_card_is_seen_only_in_the_second_round() -> None:
    env = with_cards(LeducPoker(num_envs=1), (0, 2, 4), permutations(6, 3))
    assert np.flatnonzero(play(env, CALL).obs[FIELD][0]).tolist() == [1, 2 + 2, 14]
    assert np.flatnonzero(play(env, CALL).obs[FIELD][0]).tolist() == [0, 2 + 0, 8 + 4, 14, 16]


def test_a_third_raise_and_a_fold_against_nothing_are_illegal() -> None:
    assert LeducBetting().legal == (CALL, RAISE)
    assert LeducBetting().after(RAISE).legal == (FOLD, CALL, RAISE)
    assert LeducBetting().after(RAISE).after(RAISE).legal == (FOLD, CALL)
    env = LeducPoker(num_envs=2)
    env.reset(0)
    with pytest.raises(EnvError, match=r"action 0 is illegal in game 1; legal are \[1, 2\]"):
        env.step(np.array([CALL, FOLD]))


@pytest.mark.parametrize("game", TREES)
def test_every_deal_is_equally_likely(game: str) -> None:
    """Null: uniform over D deals; chi-squared over 60,000 games within five standard deviations of its mean D - 1."""
    env: Any = make(EnvConfig(game), num_envs=60_000)
    env.reset(7)
    num_deals = env.tree.info_state.shape[1]
    counts = np.bincount(env.save()["deal"], minlength=num_deals)
    expected = 60_000 / num_deals
    assert abs(((counts - expected) ** 2 / expected).sum() - (num_deals - 1)) < 5 * np.sqrt(2 * (num_deals - 1))


@pytest.mark.parametrize("game", TREES)
def test_uniform_play_earns_what_openspiel_computes(game: str) -> None:
    """Null: the exact value; the mean of 100,000 turns' games within five standard errors."""
    env = make(EnvConfig(game), num_envs=2000)
    turn, bot, won = env.reset(1), make_bot("random", seed=2), []
    for _ in range(50):
        turn = env.step(bot.act(env, turn, np.arange(2000)))
        won.append(turn.returns[turn.ended, 0])
    played = np.concatenate(won)
    value = GOLDEN[game]["uniform"]["values"][0]
    assert abs(played.mean() - value) < 5 * played.std() / np.sqrt(played.size)


@pytest.mark.parametrize("bot", ["tactical", "mcts:10"])
def test_bots_that_would_see_hidden_cards_refuse(bot: str) -> None:
    env = KuhnPoker(num_envs=2)
    turn = env.reset(0)
    with pytest.raises(EnvError, match="which would show it what kuhn_poker hides; use random"):
        make_bot(bot, seed=0).act(env, turn, np.arange(2))


def test_the_games_after_a_copied_one_are_dealt_afresh() -> None:
    env = KuhnPoker(num_envs=64)
    env.reset(3)
    copies, turn = env.fork(np.arange(64))
    assert np.array_equal(turn.obs[FIELD], env.load(env.save()).obs[FIELD])
    for _ in range(2):
        after, copied = env.step(np.zeros(64, np.int64)), copies.step(np.zeros(64, np.int64))
    assert after.ended.all()
    assert not np.array_equal(after.obs[FIELD], copied.obs[FIELD])


@pytest.mark.parametrize("game", TREES)
def test_a_saved_game_continues_with_the_deals_of_the_original(game: str) -> None:
    env: Any = make(EnvConfig(game), num_envs=64)
    other: Any = make(EnvConfig(game), num_envs=64)
    env.reset(5)
    other.load(env.save())
    for _ in range(30):
        action = np.full(64, CALL)  # a bet in Kuhn, a call in Leduc: legal everywhere
        assert np.array_equal(env.step(action).obs[FIELD], other.step(action).obs[FIELD])
