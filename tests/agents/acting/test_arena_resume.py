"""An arena that is saved and loaded goes on bit for bit, with every built-in game."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.agents.acting.arena import Arena
from league.agents.acting.policy import ActInputs, ActOutputs
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.bots import RandomBot, legal_actions
from league.envs.protocol import EnvConfig
from league.envs.registry import BUILT_IN, make
from league.envs.sampling import uniform_legal
from league.envs.sub_actions import draw_sub_actions
from tests.agents.acting import probe_cases as cases
from tests.agents.acting.probe_cases import Assignment, RulePolicy, play
from tests.envs.counting_games import TurnProbe
from tests.oracles.probe_unrolls import Rules


def equal_unrolls(left: Unrolls, right: Unrolls) -> bool:
    def arrays(unrolls: Unrolls) -> dict[str, np.ndarray]:
        plain = {name: value for name, value in vars(unrolls).items() if name != "obs" and value is not None}
        return {**plain, **unrolls.obs}

    one, two = arrays(left), arrays(right)
    return one.keys() == two.keys() and all(np.array_equal(one[name], two[name]) for name in one)


class UniformPolicy:
    """Uniform over the legal actions, by the arena's own stream of chance."""

    version = 0

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        zeros, actions = np.zeros(len(inputs.slots), np.float32), inputs.env.spec.actions
        if actions.kind == "multi_categorical":
            mask = None if inputs.turn.action_mask is None else inputs.turn.action_mask[inputs.slots]
            return ActOutputs(draw_sub_actions(actions, len(zeros), mask=mask, rng=rng), zeros, inputs.core + 1)
        legal = legal_actions(inputs.env, inputs.turn)[inputs.slots]
        return ActOutputs(uniform_legal(legal, rng), zeros, inputs.core + 1)


GAME_OPTIONS: dict[str, dict[str, object]] = {
    "matrix_game": {"payoffs": [[1, -1], [-2, 3]], "rounds": 3},
    "probe_sub_actions": {"masked": True},
}


@pytest.mark.parametrize("env_id", sorted(BUILT_IN))
def test_every_built_in_game_continues_bit_for_bit_from_what_it_saved(env_id: str) -> None:
    config = EnvConfig(env_id, GAME_OPTIONS.get(env_id, {}))
    spec = make(config, num_envs=1).spec
    seats = spec.num_seats
    table = [Assignment(("home",) * seats, (True,) * seats)]
    for steps in (1, 10, 23):
        recorded = UnrollSpec(spec, 3, core_size=1)
        whole, again = (Arena(make(config, num_envs=8), recorded, seed=3) for _ in range(2))
        list(whole.run(table, {"home": UniformPolicy()}, steps=steps))
        saved = whole.save()
        if saved is None:
            pytest.fail(f"{env_id} cannot be saved, so a run of it cannot be resumed exactly")
        again.load({name: array.copy() for name, array in saved.items()}, table, {"home": UniformPolicy()})
        pair = [list(arena.run(table, {"home": UniformPolicy()}, steps=40)) for arena in (whole, again)]
        assert len(pair[0]) == len(pair[1]) > 1
        assert all(equal_unrolls(left, right) for left, right in zip(*pair, strict=True))


@pytest.mark.parametrize("env_id", sorted(BUILT_IN))
def test_a_copy_of_every_built_in_game_shows_the_rewards_of_its_turn(env_id: str) -> None:
    env: Any = make(EnvConfig(env_id, GAME_OPTIONS.get(env_id, {})), num_envs=12)
    bot, turn = RandomBot(seed=0), env.reset(0)
    for _ in range(9):
        turn = env.step(bot.act(env, turn, np.arange(turn.env_index.size)))
        games = np.arange(12)[::-1]
        _, shown = env.fork(games)
        going = ~turn.ended[games]
        assert np.array_equal(shown.rewards[going], turn.rewards[games][going])


@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("probe_turns", {"num_seats": 3, "episode_length": [17, 11], "truncate": True}),
        ("probe_simultaneous", {"episode_length": [4, 2]}),
        ("probe_mask", {"episode_length": [6, 5]}),
    ],
)
def test_a_loaded_arena_continues_bit_for_bit(env_id: str, kwargs: dict[str, object]) -> None:
    config = EnvConfig(env_id, kwargs)
    seats = make(config, num_envs=1).spec.num_seats
    others = ("other",) * (seats - 1)
    table = [Assignment(("home", *others), (True,) * seats, 0.5), Assignment((*others, "home"), (True,) * seats, 0.5)]
    policies = {name: RulePolicy(masked=env_id == "probe_mask") for name in ("home", "other")}

    def arena() -> Arena:
        env = make(config, num_envs=6)
        return Arena(env, UnrollSpec(env.spec, 2, core_size=2), seed=3)

    whole, again = arena(), arena()
    list(whole.run(table, policies, steps=23))
    whole.take_outcomes()
    saved = whole.save()
    assert saved is not None
    again.load({name: array.copy() for name, array in saved.items()}, whole.saved_assignments(), policies)
    going_on = list(whole.run(table, policies, steps=31))
    resumed = list(again.run(table, policies, steps=31))
    assert len(going_on) == len(resumed) > 3
    assert all(equal_unrolls(left, right) for left, right in zip(going_on, resumed, strict=True))
    for left, right in zip(whole.take_outcomes(), again.take_outcomes(), strict=True):
        assert (left.policies, left.games, left.decisions) == (right.policies, right.games, right.decisions)
        assert np.array_equal(left.wins, right.wins)
        assert np.array_equal(left.return_sums, right.return_sums)


def test_an_env_that_cannot_be_saved_says_so_and_a_fresh_arena_has_nothing_to_save(tmp_path: Path) -> None:
    arena, _ = play(cases.aec(Rules(), 2, tmp_path), steps=3, unroll_length=2)
    assert arena.save() is None
    env = TurnProbe(num_envs=2)
    assert Arena(env, UnrollSpec(env.spec, 2), seed=0).save() is None
