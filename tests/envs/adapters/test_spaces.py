"""Spaces at their edges: bounds in every precision, narrow and wide dtypes, names, masks and infos of odd games."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from league.envs.adapters.gymnasium_arrays import ArrayEnv, NotBatchedError, vector_env
from league.envs.adapters.pettingzoo import ParallelEnv
from league.envs.adapters.spaces import action_code, observation_fields
from league.envs.adapters.user_env import guarded
from league.envs.games.matrix import RepeatedRockPaperScissors
from league.envs.protocol import MAX_OBSERVATION_FIELDS, OBSERVATION_DTYPES, EnvConfig, EnvError, Turn
from league.envs.registry import make
from tests.envs.oracles import raw_arrays
from tests.envs.oracles.raw_probes import RawSimultaneousProbe


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_the_ends_of_a_box_are_in_it(dtype: type) -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        low, high = np.sort(np.round(rng.uniform(-5, 5, 2), 2)) + np.array([0.0, 0.01])
        for bounds in ((low, high), (-abs(high), abs(high))):
            space = spaces.Box(*bounds, (3,), dtype)
            code = action_code(space, env_id="x")
            for end in (code.spec.low, code.spec.high):
                assert space.contains(code.decode(np.full(3, end, np.float32))), (space, end)


def test_boxes_beyond_every_number_are_refused() -> None:
    largest = float(np.finfo(np.float32).max)
    with pytest.raises(EnvError, match="no finite bounds"):
        action_code(spaces.Box(-largest, largest, (1,)), env_id="x")
    whole = np.iinfo(np.int64)
    with pytest.raises(EnvError, match=r"18,446,744,073,709,551,616 choices"):
        action_code(spaces.Box(whole.min, whole.max, (1,), np.int64), env_id="x")


@pytest.mark.parametrize(
    "space", [spaces.Discrete(10**9), spaces.MultiDiscrete([10**9, 3]), spaces.Tuple([spaces.Discrete(10**9)])]
)
def test_more_choices_than_a_network_can_have_outputs_are_refused(space: spaces.Space[Any]) -> None:
    with pytest.raises(EnvError, match=r"actions have 1,000,000,00\d choices, at most 1,048,576 are taken"):
        action_code(space, env_id="many")


@pytest.mark.parametrize("given", ["uint16", "uint32", "uint64"])
def test_wide_unsigned_numbers_become_ones_that_can_be_learnt_from(given: str) -> None:
    (field,) = observation_fields(spaces.Box(0, 60_000, (2,), given), env_id="x")
    row = np.zeros(2, field.spec.dtype)
    field.write(np.array([3, 60_000], given), row)
    assert field.spec.dtype in OBSERVATION_DTYPES and row.tolist() == [3, 60_000]


@pytest.mark.parametrize(
    ("dtype", "shown"), [("int8", [0.5, 0.0]), ("uint8", [-1, 3]), ("uint8", [300, 3]), ("int8", [np.nan, 0.0])]
)
def test_numbers_that_the_declared_dtype_cannot_hold_are_refused(dtype: str, shown: list[float]) -> None:
    (field,) = observation_fields(spaces.Box(0, 1, (2,), dtype), env_id="x")
    with np.errstate(invalid="ignore"), pytest.raises(ValueError, match="its space has another dtype"):
        field.write(np.array(shown), np.zeros(2, dtype))


def test_other_dtypes_that_hold_the_same_numbers_are_taken() -> None:
    (field,) = observation_fields(spaces.Box(0, 9, (2,), np.uint8), env_id="x")
    for shown in ([1, 9], np.array([1.0, 9.0]), np.array([1, 9], np.int64)):
        row = np.zeros(2, np.uint8)
        field.write(shown, row)
        assert row.tolist() == [1, 9]


def test_a_number_of_any_width_marks_its_own_place() -> None:
    (field,) = observation_fields(spaces.Discrete(201, start=-100), env_id="x")
    row = np.zeros(201, np.bool_)
    for number in (np.int8(100), 100, np.array(100), np.array([100.0])):
        field.write(number, row)
        assert np.flatnonzero(row).tolist() == [200]
    with pytest.raises(ValueError, match=r"is 0\.5"):
        field.write(np.array([0.5]), row)


def test_two_parts_of_one_name_and_too_many_are_refused() -> None:
    twice = spaces.Dict({"a.b": spaces.Discrete(2), "a": spaces.Dict({"b": spaces.Discrete(2)})})
    with pytest.raises(EnvError, match=r"two parts of an observation are named 'a\.b'"):
        observation_fields(twice, env_id="x")
    many = spaces.Dict({str(number): spaces.Discrete(2) for number in range(MAX_OBSERVATION_FIELDS + 1)})
    with pytest.raises(EnvError, match="1001 parts of an observation"):
        observation_fields(many, env_id="x")


class Counting(gymnasium.Env):
    """Counts its steps; a mask, where asked for, stands in the infos."""

    observation_space = spaces.Box(0, 9, (2,))
    action_space: ClassVar[Any] = spaces.Discrete(2)

    def __init__(self, *, masked: bool = False) -> None:
        self._infos: dict[str, Any] = {"action_mask": np.array([True, False])} if masked else {}
        self._steps = 0

    def reset(self, *, seed: int | None = None, options: Mapping[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self._steps = 0
        return np.zeros(2, np.float32), self._infos

    def step(self, action: Any) -> Any:
        self._steps += 1
        return np.full(2, self._steps, np.float32), 1.0, self._steps == 3, False, self._infos


class PlainResults(SyncVectorEnv):
    """Returns lists, and pictures upside down, as numpy code of users does."""

    def step(self, actions: Any) -> Any:
        observations, rewards, terminated, truncated, infos = super().step(actions)
        flags = terminated.astype(np.int8).tolist()
        return observations[:, ::-1], rewards.tolist(), flags, truncated.astype(np.int8), infos


def _vector(kind: type[SyncVectorEnv], *, masked: bool) -> ArrayEnv:
    def make_one(count: int) -> SyncVectorEnv:
        return kind([lambda: Counting(masked=masked)] * count, autoreset_mode=AutoresetMode.SAME_STEP)

    env = vector_env(make_one(2), make_one, env_id="x")
    assert isinstance(env, ArrayEnv)
    return env


def test_a_vector_env_with_masks_in_its_infos_is_refused() -> None:
    with pytest.raises(NotBatchedError, match="masks of a vector env cannot be read"):
        _vector(SyncVectorEnv, masked=True)


def test_a_vector_env_may_return_lists_and_numbers_for_flags() -> None:
    env = _vector(PlainResults, masked=False)
    env.reset(0)
    turns = [env.step(np.zeros(2, np.int64)) for _ in range(3)]
    assert [turn.terminated.tolist() for turn in turns] == [[False, False], [False, False], [True, True]]
    assert turns[2].returns.tolist() == [[3.0], [3.0]] and turns[0].truncated.dtype == np.bool_
    env.close()


class Scripted(RawSimultaneousProbe):
    """Rewards as given; infos that are None."""

    def __init__(self, reward: Any) -> None:
        super().__init__()
        self._reward = reward

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed, options)[0], None

    def step(self, actions: Any) -> Any:
        seen, rewards, terminated, truncated, _ = super().step(actions)
        return seen, dict.fromkeys(rewards, self._reward), terminated, truncated, dict.fromkeys(rewards)


def paid(reward: Any) -> Any:
    """The rewards of the first step of a game that pays every seat this."""
    env = ParallelEnv.of(lambda: Scripted(reward), env_id="x", num_envs=1)
    env.reset(0)
    return env.step(np.zeros(2, np.int64)).rewards.tolist()


def test_infos_may_be_none() -> None:
    assert paid(1.0) == [[1.0, 1.0]]


@pytest.mark.parametrize("reward", [1e20, -1e16, np.inf, np.nan])
def test_a_reward_that_nothing_can_be_learnt_from_is_refused(reward: float) -> None:
    with pytest.raises(EnvError, match=r"rewards must be finite, and 1,000,000,000,000,000 at most"):
        paid(reward)


@pytest.mark.parametrize("reward", [1e20, np.nan])
def test_the_bound_of_a_reward_holds_for_arrays_and_for_batched_envs_of_the_user_too(
    reward: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = make(EnvConfig(f"{raw_arrays.__name__}:own_arrays", {"mode": "NextStep"}), num_envs=2)
    assert isinstance(arrays, ArrayEnv)
    step = arrays._env.step

    def paying(actions: Any) -> Any:
        seen, rewards, *rest = step(actions)
        return (seen, np.full_like(rewards, reward), *rest)

    monkeypatch.setattr(arrays._env, "step", paying)
    for env, chosen in ((arrays, 2), (guarded(Paying(reward)), 4)):
        env.reset(0)
        with pytest.raises(
            EnvError, match=r"game 0.*: a reward is .*; rewards must be finite, and 1,000,000,000,000,000 at most"
        ):
            env.step(np.zeros(chosen, np.int64))
        env.close()


class Paying(RepeatedRockPaperScissors):
    """Pays every seat this in every step."""

    def __init__(self, reward: float) -> None:
        super().__init__(num_envs=2, rounds=4)
        self._reward = reward

    def step(self, actions: Any) -> Turn:
        turn = super().step(actions)
        return dataclasses.replace(turn, rewards=np.full_like(turn.rewards, self._reward))


@pytest.mark.parametrize("reward", [np.array([1.0, 2.0]), None, "1"], ids=["two", "none", "text"])
def test_a_reward_that_is_no_single_number_is_named(reward: Any) -> None:
    with pytest.raises(EnvError, match=r"x, game 0, seat \w+: a reward is .*; a single number is needed"):
        paid(reward)


@pytest.mark.parametrize("reward", [np.array(2.0), np.array([2.0]), np.int64(2), np.float32(2.0)], ids=str)
def test_a_reward_may_be_a_number_of_numpy(reward: Any) -> None:
    assert paid(reward) == [[2.0, 2.0]]
