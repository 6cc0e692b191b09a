"""The sequence form against enumeration: probabilities, values, best replies, and what a reply earns from each."""

from __future__ import annotations

import itertools
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from league.envs.decision_tree import Endings, InformationStates
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.envs.search.known_tree import known_tree
from league.policies.exact.behaviours import tables_of, uniform
from league.policies.exact.sequence_form import START, Array, SequenceForm
from league.policies.exact.small_game import VISIT_S, NoExactValue, small_game

GAMES = (
    "kuhn_poker",
    "openspiel:kuhn_poker(players=3)",
    "openspiel:goofspiel(num_cards=3,imp_info=true)",
    "openspiel:blotto(coins=3,fields=2)",
    "rock_paper_scissors",
)


def made(game: str, *, seed: int = 0, members: int = 3, sharpness: float = 1.0) -> tuple[SequenceForm, Array, Array]:
    """A game's sequence form with random behaviours: their tables [M, I, A] and plans [M, Q]."""
    form = small_game(game).form
    legal = tables_of(states_of(game), [uniform])[0] > 0
    tables = np.random.default_rng(seed).exponential(size=(members, *legal.shape)) ** sharpness * legal
    tables /= tables.sum(axis=2, keepdims=True)
    return form, tables, form.plans(tables)


def states_of(game: str) -> InformationStates:
    return small_game(game).states


@pytest.mark.parametrize("game", GAMES)
def test_endings_are_reached_with_probability_one_and_pay_nothing_in_sum(game: str) -> None:
    form, _, plans = made(game)
    with closing(make(EnvConfig(game), num_envs=1)) as env:
        tree = known_tree(env, limit_s=VISIT_S).tree
    paying = SequenceForm(tree.info_states, replace(tree.endings, returns=np.ones_like(tree.endings.returns)))
    for plan in plans:
        assert paying.values(plan) == pytest.approx(np.ones(form.num_seats), abs=1e-12)
    assert [form.values(plan).sum() for plan in plans] == pytest.approx([0.0] * len(plans), abs=1e-12)
    assert form.is_zero_sum


@pytest.mark.parametrize("game", ["kuhn_poker", "openspiel:goofspiel(num_cards=2,imp_info=true)"])
def test_a_best_reply_earns_what_the_best_pure_behaviour_does(game: str) -> None:
    form, tables, plans = made(game, members=2)
    states = states_of(game)
    for seat, (table, plan) in itertools.product(range(form.num_seats), zip(tables, plans, strict=True)):
        own = np.flatnonzero(states.seat == seat)
        earned = []
        for choice in itertools.product(*(np.flatnonzero(states.legal[state]) for state in own)):
            pure = table.copy()
            pure[own] = np.eye(table.shape[1])[list(choice)]
            earned.append(form.values(form.plans(pure[None])[0])[seat])
        value, reply = form.best_reply(plan, seat)
        assert value == pytest.approx(max(earned), abs=1e-12)
        assert reply[START] == 1.0 and set(np.unique(reply)) <= {0.0, 1.0}


@pytest.mark.parametrize("game", GAMES)
def test_a_reply_earns_from_each_member_what_the_joint_plan_pays(game: str) -> None:
    form, _, plans = made(game)
    states = states_of(game)
    seat_of = np.append(-1, np.repeat(states.seat, states.legal.shape[1]))
    for seat in range(form.num_seats):
        value, reply = form.best_reply(plans[0], seat)
        expected = [form.values(np.where(seat_of == seat, reply, plan))[seat] for plan in plans]
        assert form.against_each(reply, seat, plans) == pytest.approx(expected, abs=1e-12)
        assert expected[0] == pytest.approx(value, abs=1e-12)


def test_a_game_of_teams_has_no_sequence_form() -> None:
    game = small_game("openspiel:kuhn_poker")
    assert game.plans([uniform]).shape == (1, 1 + 12 * 2)
    with pytest.raises(NoExactValue, match="each seat for itself"):
        small_game("team_rock_paper_scissors")


def test_a_seat_that_never_acts_has_nothing_to_gain() -> None:
    """One choice of the first seat, which takes 1 from the second or nothing."""
    none = np.array([-1])
    states = InformationStates(np.array([0]), {"seen": np.zeros((1, 1))}, np.ones((1, 2), np.bool_), none, none)
    endings = Endings(
        np.ones(2), np.array([[1.0, -1.0], [0.0, 0.0]]), np.array([[0, -1], [0, -1]]), np.array([[0, -1], [1, -1]])
    )
    form = SequenceForm(states, endings)
    (plan,) = form.plans(np.full((1, 1, 2), 0.5))
    assert form.best_reply(plan, 1)[0] == -0.5
    assert form.nash_conv(plan) == 0.5
