"""Gymnasium's envs through the adapter: one by one equal to the probe, array envs restarted in the same step."""

from __future__ import annotations

import contextlib
import itertools
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.envs.classic_control import CartPoleEnv

from league.envs.adapters.bare import bare_rate
from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.gymnasium_arrays import ArrayEnv
from league.envs.adapters.spaces import action_code, flat_mask
from league.envs.bots import RandomBot
from league.envs.conformance import check_env
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from tests.envs.counting_games import SimultaneousProbe
from tests.envs.oracles import raw_arrays
from tests.envs.oracles.lockstep import first_difference, own_copy
from tests.envs.oracles.raw_probes import RawSingleProbe


@pytest.mark.parametrize("truncate", [False, True])
def test_single_envs_equal_the_probe(truncate: bool) -> None:
    rules = {"episode_length": [5, 3, 4, 1], "truncate": truncate}
    index, games = itertools.count(), []

    def make_one() -> RawSingleProbe:
        games.append(RawSingleProbe(index=next(index), **rules))
        return games[-1]

    raw = GymnasiumEnv.of(make_one, env_id="raw", num_envs=3)
    for game in games:
        game.count.episode = -1
    assert not first_difference(SimultaneousProbe(num_envs=3, num_seats=1, **rules), raw, steps=60)


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_array_envs_restart_in_the_same_step(mode: str, truncate: bool) -> None:
    config = EnvConfig("gymnasium:RawArrayProbe-v0", {"mode": mode, "truncate": truncate})
    env = make(config, num_envs=5)
    assert isinstance(env, ArrayEnv)
    turn, starts = own_copy(env.reset(3)), []
    for step in range(1, 40):
        actions = np.arange(5) % 3
        before, turn = turn, own_copy(env.step(actions))
        shown, in_episode = turn.obs["observation"], (step - 1) % raw_arrays.LENGTH + 1
        assert turn.rewards.ravel().tolist() == [16 * in_episode] * 5
        ends = in_episode == raw_arrays.LENGTH
        assert turn.ended.tolist() == [ends] * 5
        assert (turn.truncated if truncate else turn.terminated).tolist() == [ends] * 5
        if not ends:
            assert np.array_equal(shown[:, 0], before.obs["observation"][:, 0])
            assert shown[:, 1:].tolist() == [[in_episode, action + 1] for action in actions]
            continue
        starts.append(tuple(shown[:, 0].tolist()))
        assert shown[:, 1:].tolist() == [[0, -1]] * 5
        assert turn.returns.ravel().tolist() == [16 * (1 + 2 + 3 + 4)] * 5
        assert (turn.final is not None) == truncate
        if turn.final is not None:
            assert turn.final.env_index.tolist() == [0, 1, 2, 3, 4]
            assert np.array_equal(turn.final.obs["observation"][:, 0], before.obs["observation"][:, 0])
            assert turn.final.obs["observation"][:, 1].tolist() == [4] * 5
    assert len(set(starts)) == len(starts)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
@pytest.mark.parametrize("factory", ["own_arrays", "own_sync"])
def test_vector_envs_of_the_user_restart_in_the_same_step(factory: str, mode: str) -> None:
    config = EnvConfig(f"{raw_arrays.__name__}:{factory}", {"mode": mode})
    with contextlib.closing(make(config, num_envs=4)) as env:
        assert isinstance(env, ArrayEnv)
        env.reset(3)
        for step in range(1, 15):
            turn = env.step(np.arange(4) % 3)
            in_episode = (step - 1) % raw_arrays.LENGTH + 1
            assert turn.rewards.ravel().tolist() == [16 * in_episode] * 4
            assert turn.ended.tolist() == [in_episode == raw_arrays.LENGTH] * 4
    assert [finding for finding in check_env(config) if finding.kind == "fault"] == []


def test_vector_envs_that_cannot_be_used_are_refused_with_the_remedy() -> None:
    with pytest.raises(EnvError, match=r"restarts its games a step late .*make it with AutoresetMode.SAME_STEP"):
        make(EnvConfig(f"{raw_arrays.__name__}:own_hidden"), num_envs=3)
    with pytest.raises(EnvError, match="return a BatchedEnv or a VectorEnv of that many games"):
        make(EnvConfig(f"{raw_arrays.__name__}:own_few"), num_envs=3)


def test_an_array_env_that_hides_state_is_stepped_one_by_one() -> None:
    assert isinstance(make(EnvConfig("gymnasium:HiddenArrayProbe-v0"), num_envs=3), GymnasiumEnv)


def test_cart_pole_arrays_obey_the_single_envs_physics() -> None:
    env, bot = make(EnvConfig("gymnasium:CartPole-v1"), num_envs=8), RandomBot(seed=0)
    assert isinstance(env, ArrayEnv)
    turn = own_copy(env.reset(1))
    twins = [CartPoleEnv() for _ in range(8)]

    def follow(game: int) -> None:
        twins[game].reset()
        twins[game].state = turn.obs["observation"][game].astype(np.float64)

    for game in range(8):
        follow(game)
    num_ended = 0
    for _ in range(120):
        actions = bot.act(env, turn, np.arange(8))
        turn = own_copy(env.step(actions))
        for game, twin in enumerate(twins):
            expected, reward, terminated, _, _ = twin.step(int(actions[game]))
            assert terminated == turn.terminated[game]
            assert reward == turn.rewards[game, 0]
            if terminated:
                num_ended += 1
                assert (np.abs(turn.obs["observation"][game]) <= 0.05).all()
                follow(game)
            else:
                np.testing.assert_allclose(turn.obs["observation"][game], expected, atol=1e-4)
    assert num_ended > 20


def test_cart_pole_is_cut_off_at_its_time_limit_with_the_last_observation() -> None:
    env = make(EnvConfig("gymnasium:CartPole-v1"), num_envs=2)
    turn = env.reset(0)
    for _ in range(2000):
        before = own_copy(turn)
        x, x_dot, angle, spin = turn.obs["observation"].T
        turn = env.step((angle + 0.5 * spin + 0.01 * x + 0.05 * x_dot > 0).astype(np.int64))
        if turn.truncated.any():
            break
    game = int(turn.truncated.argmax())
    assert turn.truncated[game]
    assert turn.returns[game, 0] == 500
    assert turn.final is not None
    row = turn.final.env_index.tolist().index(game)
    assert np.abs(turn.final.obs["observation"][row] - before.obs["observation"][game]).max() < 1
    assert (np.abs(turn.obs["observation"][game]) <= 0.05).all()
    assert not np.array_equal(turn.final.obs["observation"][row], turn.obs["observation"][game])


def test_the_same_seed_gives_the_same_array_games() -> None:
    config = EnvConfig("gymnasium:CartPole-v1")
    assert not first_difference(make(config, num_envs=6), make(config, num_envs=6), steps=150, seed=7)


@pytest.mark.parametrize("env_id", ["gymnasium:CartPole-v1", "gymnasium:FrozenLake-v1"])
def test_a_fork_plays_as_its_origin(env_id: str) -> None:
    env = make(EnvConfig(env_id, {"is_slippery": False} if "Lake" in env_id else {}), num_envs=4)
    turn = env.reset(0)
    for _ in range(3):
        turn = env.step(np.full(4, 1))
    forked, shown = env.fork(np.array([2, 2, 0]))
    assert np.array_equal(shown.obs["observation"], turn.obs["observation"][[2, 2, 0]])
    turn, copied = env.step(np.array([1, 0, 1, 0])), forked.step(np.array([1, 1, 1]))
    going = ~copied.ended
    assert np.array_equal(copied.obs["observation"][going], turn.obs["observation"][[2, 2, 0]][going])
    assert np.array_equal(copied.ended, turn.ended[[2, 2, 0]])


def test_box_actions_are_given_in_the_bounds_of_the_env() -> None:
    class Uneven(RawSingleProbe):
        action_space = spaces.Box(np.array([0, -10]), np.array([4, 10]), dtype=np.float64)
        got: Any = None

        def step(self, action: Any) -> Any:
            self.got = action
            return super().step(0)

    env = GymnasiumEnv.of(Uneven, env_id="x", num_envs=1)
    env.reset(0)
    env.step(np.array([[-0.5, 1.0]], np.float32))
    assert env._games[0].got.tolist() == [1, 10]
    assert env._games[0].got.dtype == np.float64
    with pytest.raises(EnvError, match="illegal"):
        env.step(np.array([[0, 1.5]], np.float32))
    with pytest.raises(EnvError, match="illegal"):
        env.step(np.array([[0, np.nan]], np.float32))


def test_even_bounds_stay_as_they_are() -> None:
    env = make(EnvConfig("gymnasium:Pendulum-v1"), num_envs=2)
    assert (env.spec.actions.kind, env.spec.actions.low, env.spec.actions.high) == ("box", -2, 2)
    assert env.reset(0).obs["observation"].dtype == np.float32


@pytest.mark.parametrize(
    ("space", "words"),
    [
        (spaces.Text(3), "Text actions are not supported; give a Discrete, MultiDiscrete or MultiBinary space"),
        (spaces.Tuple([spaces.Discrete(2), spaces.Box(-1, 1)]), "choices and boxes of floats together"),
        (spaces.Tuple([]), "Tuple actions are not supported"),
        (spaces.Box(0, 255, (64, 64), np.uint8), "a Box of integers has 1,048,576 choices, at most 16384"),
        (spaces.Box(-np.inf, np.inf, (2,)), "no finite bounds"),
    ],
)
def test_unsupported_actions_are_one_sentence(space: Any, words: str) -> None:
    class Odd(RawSingleProbe):
        action_space = space

    with pytest.raises(EnvError, match=words):
        GymnasiumEnv.of(Odd, env_id="odd", num_envs=1)


def recording(space: Any) -> type[RawSingleProbe]:
    """A game that keeps the last action, which must be one of the space."""

    class Game(RawSingleProbe):
        action_space = space

        def step(self, action: Any) -> Any:
            assert space.contains(action), action
            self.got = action
            return super().step(0)

    return Game


INT_BOX = spaces.Box(np.array([0, 2]), np.array([1, 4]), dtype=np.int64)


@pytest.mark.parametrize(
    ("space", "nvec", "chosen", "taken"),
    [
        (INT_BOX, (2, 3), [1, 2], np.array([1, 4])),
        (spaces.Dict({"b": spaces.Discrete(3, start=5), "a": spaces.Discrete(2)}), (2, 3), [1, 2], {"a": 1, "b": 7}),
        (spaces.Tuple([spaces.Discrete(4), spaces.MultiBinary(2)]), (4, 2, 2), [3, 1, 0], (3, np.array([1, 0]))),
        (
            spaces.Dict({"move": spaces.Tuple([spaces.Discrete(2), INT_BOX]), "wait": spaces.Discrete(2)}),
            (2, 2, 3, 2),
            [1, 0, 1, 1],
            {"move": (1, np.array([0, 3])), "wait": 1},
        ),
    ],
)
def test_composite_choices_are_sub_actions(space: Any, nvec: tuple[int, ...], chosen: list[int], taken: Any) -> None:
    env = GymnasiumEnv.of(recording(space), env_id="x", num_envs=1)
    assert env.spec.actions.nvec == nvec
    env.reset(0)
    env.step(np.array([chosen]))
    np.testing.assert_equal(env._games[0].got, taken)


def test_composite_boxes_are_one_flat_box() -> None:
    space = spaces.Dict({"push": spaces.Box(0.0, 10.0, (2, 1), np.float64), "turn": spaces.Box(-1.0, 1.0, (1,))})

    env = GymnasiumEnv.of(recording(space), env_id="x", num_envs=1)
    assert (env.spec.actions.kind, env.spec.actions.shape) == ("box", (3,))
    env.reset(0)
    env.step(np.array([[-1.0, 0.5, 0.25]], np.float32))
    np.testing.assert_equal(env._games[0].got, {"push": np.array([[0.0], [7.5]]), "turn": np.float32([0.25])})


def test_masks_of_composite_choices_come_by_key_or_place() -> None:
    pair = spaces.Tuple([spaces.Discrete(2), spaces.MultiBinary(1)])
    space = spaces.Dict({"a": spaces.Discrete(2), "b": spaces.Discrete(3), "c": pair})
    code = action_code(space, env_id="x")
    wanted = [1, 0, 0, 1, 1, 0, 1, 1, 0]
    a, b, c = np.array([1, 0]), np.array([0, 1, 1]), (np.array([0, 1]), (np.array([1, 0]),))
    for mask in ({"c": c, "b": b, "a": a}, (a, b, c), wanted):
        assert flat_mask(mask, code).tolist() == wanted
    with pytest.raises(ValueError, match=r"action_mask has the keys a, b, and none for \['c'\]"):
        flat_mask({"a": a, "b": b}, code)
    with pytest.raises(ValueError, match="action_mask has sub-actions of"):
        flat_mask((a, b, (a, (a, a))), code)


class Masked(RawSingleProbe):
    """Shows what is legal of several choices, and takes nothing else."""

    action_space = spaces.Dict({"b": spaces.Discrete(3, start=1), "a": spaces.Discrete(2)})
    legal: ClassVar[dict[str, Any]] = {"b": np.array([0, 1, 1]), "a": np.array([1, 0])}

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[dict, dict]:
        return super().reset(seed=seed)[0], {"action_mask": self.legal}

    def step(self, action: Any) -> Any:
        assert action["b"] >= 2 and action["a"] == 0
        return *super().step(0)[:4], {"action_mask": self.legal}


def test_masked_choices_are_legal_by_the_adapter_and_in_the_bare_loop() -> None:
    env = GymnasiumEnv.of(Masked, env_id="x", num_envs=2)
    bot, turn = RandomBot(seed=0), env.reset(0)
    for _ in range(20):
        turn = env.step(bot.act(env, turn, np.arange(2)))
    rate = bare_rate(GymnasiumEnv.of(Masked, env_id="x", num_envs=1), seconds=0.01)
    assert rate is not None and rate > 0


def test_a_number_without_axes_is_an_observation() -> None:
    class Number(RawSingleProbe):
        observation_space = spaces.Box(-1.0, 1.0, (), np.float64)

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict]:
            super().reset(seed=seed)
            return 0.5, {}

    env = GymnasiumEnv.of(Number, env_id="x", num_envs=2)
    assert env.spec.observations["observation"].shape == (1,)
    assert env.reset(0).obs["observation"].tolist() == [[0.5], [0.5]]


def test_other_interfaces_are_named() -> None:
    class OldGym(RawSingleProbe):
        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return super().reset(seed=seed)[0]

    class Nameless(RawSingleProbe):
        def observation_space(self, agent: str) -> Any:
            return spaces.Discrete(2)

    for kind, words in ((OldGym, "envs of the older Gym return fewer"), (Nameless, "it has no possible_agents")):
        with pytest.raises(EnvError, match=words):
            GymnasiumEnv.of(kind, env_id="x", num_envs=1)


def test_spaces_of_the_older_gym_are_named_with_what_helps() -> None:
    class Older(RawSingleProbe):
        action_space = type("Discrete", (), {"__module__": "gym.spaces.discrete", "n": 2})()

    with pytest.raises(EnvError, match=r"the older Gym.* wrap it, as shimmy\.GymV21CompatibilityV0"):
        GymnasiumEnv.of(Older, env_id="x", num_envs=1)


def test_unsupported_observations_are_one_sentence() -> None:
    class Odd(RawSingleProbe):
        observation_space = spaces.Dict({"words": spaces.Sequence(spaces.Discrete(5))})

    with pytest.raises(EnvError, match="observation 'words' is a Sequence space; supported are"):
        GymnasiumEnv.of(Odd, env_id="odd", num_envs=1)


def test_fields_without_a_number_are_left_out_and_one_is_needed() -> None:
    nothing = spaces.Box(-1.0, 1.0, (0,))

    class Odd(RawSingleProbe):
        observation_space = spaces.Dict({"cell": spaces.Discrete(3), "rest": nothing})

    class Blind(RawSingleProbe):
        observation_space = nothing

    assert list(GymnasiumEnv.of(Odd, env_id="odd", num_envs=1).spec.observations) == ["cell"]
    with pytest.raises(EnvError, match="blind: its observations hold nothing besides the action mask; add a number"):
        GymnasiumEnv.of(Blind, env_id="blind", num_envs=1)


def test_discrete_observations_become_one_hot() -> None:
    class Odd(RawSingleProbe):
        observation_space = spaces.Dict({"cell": spaces.Discrete(3, start=5), "pair": spaces.MultiDiscrete([2, 3])})

        def reset(self, **_: Any) -> Any:
            return {"cell": np.int64(6), "pair": np.array([1, 2])}, {}

    turn = GymnasiumEnv.of(Odd, env_id="odd", num_envs=1).reset(0)
    assert turn.obs["cell"].tolist() == [[False, True, False]]
    assert turn.obs["pair"].tolist() == [[False, True, False, False, True]]


def test_an_env_that_raises_is_named_with_seed_and_step() -> None:
    class Broken(RawSingleProbe):
        def step(self, action: Any) -> Any:
            raise ZeroDivisionError("no floor")

    env = GymnasiumEnv.of(Broken, env_id="broken", num_envs=1)
    env.reset(0)
    with pytest.raises(
        EnvError, match=r"broken: step raised ZeroDivisionError: no floor \(game 0, .*seed \d+, step 1\)"
    ):
        env.step(np.array([0]))


def test_an_unknown_id_is_one_sentence() -> None:
    for name, words in (("CartPol-v1", "Did you mean: `CartPole`"), ("maze:A-v0", "that imports maze and returns")):
        with pytest.raises(EnvError, match=words):
            make(EnvConfig(f"gymnasium:{name}"), num_envs=1)


def test_single_env_kwargs_fall_back_to_single_envs() -> None:
    assert "RawArrayProbe-v0" in gymnasium.registry
    env = make(EnvConfig("gymnasium:CartPole-v1", {"disable_env_checker": True}), num_envs=2)
    assert isinstance(env, GymnasiumEnv)
    env.close()
    env.close()


@pytest.mark.parametrize(
    ("low", "high", "kept"), [(-2.0, 2.0, True), (-100.0, 100.0, False), (-0.01, 0.01, False), (0.0, 1.0, False)]
)
def test_a_box_that_a_fresh_policy_would_miss_is_reached_from_one(low: float, high: float, kept: bool) -> None:
    code = action_code(gymnasium.spaces.Box(low, high, (2,), np.float32), env_id="x")
    assert (code.spec.low, code.spec.high) == ((low, high) if kept else (-1.0, 1.0))
    bounds = np.array([[code.spec.low] * 2, [code.spec.high] * 2], np.float32)
    assert code.decode(bounds) == pytest.approx(np.array([[low] * 2, [high] * 2]), abs=1e-6)
