"""Trees that are visited by copies against those that games say of themselves, and games that cannot be visited."""

from __future__ import annotations

import time
from contextlib import closing
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from numpy.typing import NDArray
from pettingzoo import ParallelEnv

from league.envs.decision_tree import DecisionTree
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from league.envs.search.deals import LEAST, DealEndings, Deals
from league.envs.search.tree_walk import VisitedTree, visit
from league.policies.exact.behaviours import Fields, PolicyFunction, tables_of
from league.policies.exact.sequence_form import SequenceForm
from tests.envs.search import auctions


def visited_game(game: str, *, limit_s: float) -> VisitedTree:
    with closing(make(EnvConfig(game), num_envs=1)) as env:
        return visit(env, limit_s=limit_s)


def form_of(tree: DecisionTree) -> SequenceForm:
    return SequenceForm(tree.info_states, tree.endings)


def blurred(seed: int) -> PolicyFunction:
    """A policy that depends on all that is seen, whatever the order of the rows."""
    weights = np.random.default_rng(seed).normal(size=(200, 8))

    def act(fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.float64]:
        seen = np.concatenate([fields[name].reshape(len(legal), -1) for name in sorted(fields)], axis=1)
        scores = np.exp(np.sin(seen @ weights[: seen.shape[1], : legal.shape[1]])) * legal
        return scores / scores.sum(axis=1, keepdims=True)

    return act


@pytest.mark.parametrize(
    "game", ["kuhn_poker", "openspiel:goofspiel(num_cards=3,imp_info=true,points_order=descending)"]
)
def test_a_visited_game_is_worth_what_its_own_tree_says(game: str) -> None:
    own = make(EnvConfig(game), num_envs=1).decision_tree()  # type: ignore[attr-defined]
    visited = visited_game(game, limit_s=60.0)
    assert visited.is_whole
    assert len(visited.tree.info_states.seat) == len(own.info_states.seat)
    for seed in range(3):
        worth = [
            form_of(tree).nash_conv(form_of(tree).plans(tables_of(tree.info_states, [blurred(seed)]))[0])
            for tree in (own, visited.tree)
        ]
        assert worth[1] == pytest.approx(worth[0], abs=1e-6)


def test_draws_of_chance_before_and_after_the_decisions_are_met_and_weighed() -> None:
    visited = visited_game(f"{auctions.__name__}:auction", limit_s=60.0)
    assert (visited.deals, visited.is_whole) == (8, True)  # two worths each, and a coin
    assert len(visited.tree.info_states.seat) == 4
    form = form_of(visited.tree)
    plan = form.plans(tables_of(visited.tree.info_states, [lambda fields, legal: legal / 3.0]))[0]
    # Of a thing worth v to it a seat that bids b gets (b + 1/2) / 3 * (v - b): 5/18 on average, at best 1/6 and 1.
    assert form.values(plan) == pytest.approx([5 / 18] * 2, abs=1e-6)
    assert form.best_reply(plan, 0)[0] == pytest.approx((1 / 6 + 1) / 2, abs=1e-6)


def test_a_game_of_too_much_chance_is_given_up_long_before_the_limit() -> None:
    began = time.monotonic()
    with pytest.raises(EnvError, match="too much chance"):
        visited_game(f"{auctions.__name__}:lottery", limit_s=5.0)
    assert time.monotonic() - began < 60.0


class Crowd(ParallelEnv):  # type: ignore[type-arg]
    """Forty agents of ten actions each, for as long as one likes; notes its steps, each of which takes a second."""

    metadata: ClassVar[dict[str, Any]] = {"name": "crowd"}
    steps: ClassVar[list[float]] = []

    def __init__(self, agents: int = 40, actions: int = 10) -> None:
        self.possible_agents = [f"agent_{number}" for number in range(agents)]
        self._actions = actions

    def observation_space(self, agent: str) -> Box:
        return Box(0, 1, (1,), np.float32)

    def action_space(self, agent: str) -> Discrete:  # type: ignore[type-arg]
        return Discrete(self._actions)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = self.possible_agents[:]
        return {agent: np.zeros(1, np.float32) for agent in self.agents}, {agent: {} for agent in self.agents}

    def step(self, actions: dict[str, int]) -> Any:
        self.steps.append(float(len(self.steps)))
        no, none = dict.fromkeys(self.agents, False), dict.fromkeys(self.agents, 0.0)
        seen = {agent: np.zeros(1, np.float32) for agent in self.agents}
        return seen, none, no, no, {agent: {} for agent in self.agents}


@pytest.mark.parametrize(
    ("agents", "actions", "message", "most_steps"),
    [(40, 10, "far too large", 0), (2, 3, "far too large", 20), (2, 1, "longer than the 7 s of a visit", 8)],
)
def test_a_game_that_cannot_be_visited_is_given_up_soon(
    agents: int, actions: int, message: str, most_steps: int
) -> None:
    Crowd.steps.clear()
    config = EnvConfig(f"{__name__}:Crowd", {"agents": agents, "actions": actions})
    with closing(make(config, num_envs=1)) as env:
        before = len(Crowd.steps)
        limit_s, clock = (7.0, lambda: float(len(Crowd.steps))) if actions == 1 else (1e9, time.monotonic)
        with pytest.raises(EnvError, match=message):
            visit(env, limit_s=limit_s, clock=clock)
    assert len(Crowd.steps) - before <= most_steps


class Rounds(Crowd):
    """Six rounds of three actions each: half a million histories, none of which is dear."""

    def __init__(self) -> None:
        super().__init__(agents=2, actions=3)
        self._left = 6

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self._left = 6
        return super().reset(seed, options)

    def step(self, actions: dict[str, int]) -> Any:
        self._left -= 1
        seen, rewards, _, no, infos = super().step(actions)
        over = dict.fromkeys(self.agents, self._left == 0)
        self.agents = [] if self._left == 0 else self.agents
        return seen, rewards, over, no, infos


def test_a_visit_that_cannot_end_in_time_is_given_up_at_its_first_look() -> None:
    Crowd.steps.clear()
    with closing(make(EnvConfig(f"{__name__}:Rounds"), num_envs=1)) as env:
        before = len(Crowd.steps)
        with pytest.raises(EnvError, match="too large, or has too much chance, to visit every history within 120 s"):
            visit(env, limit_s=120.0, clock=lambda: 1e-3 * len(Crowd.steps))
    assert len(Crowd.steps) - before < 2_500, "a second of the 120"


@pytest.mark.parametrize(
    ("game", "message"), [("connect_four", "far too large"), ("gymnasium:Pendulum-v1", "no numbered actions")]
)
def test_a_game_that_cannot_be_visited_says_why(game: str, message: str) -> None:
    with pytest.raises(EnvError, match=message):
        visited_game(game, limit_s=5.0)


def drawn(counts: list[int]) -> Deals:
    """Deals that came so often, each with one ending that tells it apart."""
    deals = Deals()
    for number, count in enumerate(counts):
        ending = DealEndings()
        ending.add([(0, number), (1, 0)], np.array([1.0, -1.0], np.float32))
        deals.draw(bytes([number]), ending)
        for _ in range(count - 1):
            assert deals.draw_again(bytes([number]))
    return deals


def test_deals_are_as_likely_as_they_came_unless_chance_alone_explains_the_difference() -> None:
    even = np.random.default_rng(0).multinomial(600, [0.05] * 20).tolist()
    assert np.allclose(drawn(even).probabilities(), 0.05)
    assert drawn([20] * 12 + [40] * 9).probabilities()[[0, 20]] == pytest.approx([1 / 30, 2 / 30])


def test_equal_deals_count_together_however_their_endings_came() -> None:
    deals, last = Deals(), [([(0, 0), (1, 1)], 1.0), ([(0, 1), (1, 0)], -1.0)]
    for number, endings in enumerate((last, last[::-1])):
        deal = DealEndings()
        for decisions, value in endings:
            deal.add(decisions, np.array([value, -value], np.float32))
        deals.draw(bytes([number]), deal)
    assert (len(deals), deals.num_drawn) == (1, 2)
    assert deals.endings().chance.tolist() == [1.0, 1.0]


def test_deals_are_known_once_all_came_often_and_will_do_once_few_came_only_once() -> None:
    assert not drawn([LEAST - 1]).will_do and drawn([LEAST]).are_known
    assert not drawn([6] * 10).are_known and drawn([6] * 10).will_do
    assert not drawn([1] * 10 + [2] * 10).will_do
    assert drawn([1] * 20).left > 5.0 > drawn([2] * 20).left
