"""PettingZoo's envs through the adapter: equal to the batched probes turn by turn, and to the stock Connect Four."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo import AECEnv
from pettingzoo import ParallelEnv as PettingZooParallel
from pettingzoo.classic import connect_four_v3

from league.envs.adapters.pettingzoo import AecEnv, EmulatorEnv, ParallelEnv
from league.envs.games.connect_four import ConnectFour
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from tests.envs.counting_games import LastMoveProbe, MaskProbe, SimultaneousProbe, TurnProbe
from tests.envs.oracles.lockstep import first_difference
from tests.envs.oracles.raw_probes import RawSimultaneousProbe, RawTurnProbe

LENGTHS = [5, 3, 4, 1]


def wrapped(adapter: Any, raw: Callable[..., Any], *, num_envs: int = 3, **kwargs: Any) -> Any:
    """Raw probes of indices 0, 1, ... behind an adapter, their episode counters at the start."""
    index, games = itertools.count(), []

    def make_one() -> Any:
        games.append(raw(index=next(index), **kwargs))
        return games[-1]

    env = adapter.of(make_one, env_id="raw", num_envs=num_envs)
    for game in games:
        game.count.episode = -1
    return env


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("num_seats", [1, 2, 3])
def test_aec_turns_equal_the_probe(num_seats: int, truncate: bool) -> None:
    rules = {"num_seats": num_seats, "episode_length": LENGTHS, "truncate": truncate}
    assert not first_difference(TurnProbe(num_envs=3, **rules), wrapped(AecEnv, RawTurnProbe, **rules), steps=60)


@pytest.mark.parametrize("truncate", [False, True])
@pytest.mark.parametrize("num_seats", [2, 3])
def test_parallel_turns_equal_the_probe(num_seats: int, truncate: bool) -> None:
    rules = {"num_seats": num_seats, "episode_length": LENGTHS, "truncate": truncate}
    raw = wrapped(ParallelEnv, RawSimultaneousProbe, **rules)
    assert not first_difference(SimultaneousProbe(num_envs=3, **rules), raw, steps=60)


@pytest.mark.parametrize("mask_in", ["observation", "infos"])
def test_masks_are_read_from_observations_and_infos(mask_in: str) -> None:
    raw = wrapped(AecEnv, RawTurnProbe, episode_length=LENGTHS, mask_in=mask_in)
    assert raw.spec.has_mask
    assert "action_mask" not in raw.spec.observations
    assert not first_difference(MaskProbe(num_envs=3, episode_length=LENGTHS), raw, steps=60)


def test_the_waiting_seat_gets_the_loss_of_the_others_last_move() -> None:
    raw = wrapped(AecEnv, RawTurnProbe, episode_length=LENGTHS, last_move=True)
    assert not first_difference(LastMoveProbe(num_envs=3, episode_length=LENGTHS), raw, steps=60)


def test_a_fork_of_outside_games_continues_as_its_origin() -> None:
    env = wrapped(AecEnv, RawTurnProbe, num_seats=3, episode_length=[6], truncate=True)
    env.reset(0)
    for _ in range(4):
        turn = env.step(np.zeros(3, np.int64))
    forked, shown = env.fork(np.array([1, 1, 0]))
    assert np.array_equal(shown.rewards, turn.rewards[[1, 1, 0]])
    for _ in range(9):
        turn, copied = env.step(np.array([2, 1, 0])), forked.step(np.array([1, 1, 2]))
        assert np.array_equal(copied.obs["counter"], turn.obs["counter"][[1, 1, 0]])
        assert np.array_equal(copied.rewards, turn.rewards[[1, 1, 0]])
        assert np.array_equal(copied.returns, turn.returns[[1, 1, 0]])


def stock_connect_four(num_envs: int) -> Any:
    return make(EnvConfig("pettingzoo:classic/connect_four_v3"), num_envs=num_envs)


def test_stock_connect_four_equals_ours() -> None:
    ours, stock = ConnectFour(num_envs=6), stock_connect_four(6)
    left, right, rng = ours.reset(0), stock.reset(0), np.random.default_rng(0)
    for _ in range(150):
        assert np.array_equal(left.obs["board"], np.moveaxis(right.obs["observation"], -1, 1))
        for name in ("env_index", "seat", "action_mask", "rewards", "returns", "terminated", "truncated"):
            assert np.array_equal(getattr(left, name), getattr(right, name)), name
        assert left.action_mask is not None
        actions = np.array([rng.choice(np.flatnonzero(row)) for row in left.action_mask])
        left, right = ours.step(actions), stock.step(actions)


def test_checked_wrappers_are_peeled_and_others_kept() -> None:
    assert type(stock_connect_four(1)._games[0]) is connect_four_v3.raw_env

    class Custom(connect_four_v3.raw_env):
        pass

    from pettingzoo.utils.wrappers import BaseWrapper, OrderEnforcingWrapper

    class Twist(BaseWrapper):
        pass

    env = AecEnv.of(lambda: OrderEnforcingWrapper(Twist(Custom())), env_id="x", num_envs=1)
    assert type(env._games[0]) is Twist


def test_a_fork_of_stock_connect_four_is_a_copy_and_no_fresh_game() -> None:
    env = stock_connect_four(2)
    env.reset(0)
    for column in (3, 3, 2):
        turn = env.step(np.array([column, 6]))
    forked, shown = env.fork(np.array([0]))
    assert np.array_equal(shown.obs["observation"], turn.obs["observation"][:1])
    assert shown.obs["observation"].sum() == 3
    forked.step(np.array([0]))
    assert env._games[0].board.count(0) == 39
    assert forked._games[0].board.count(0) == 38


def test_illegal_moves_are_refused_before_the_game_sees_them() -> None:
    env = stock_connect_four(1)
    env.reset(0)
    for _ in range(6):
        env.step(np.array([0]))
    for bad in (0, 7, -1):
        with pytest.raises(EnvError, match=r"game 0, seat player_0: action .* is illegal"):
            env.step(np.array([bad]))
    env.step(np.array([1]))


class Mortal(AECEnv):
    """Three seats in turn; seat 1 is out after its first action, the others go on to step 7."""

    metadata: ClassVar[dict[str, Any]] = {"name": "mortal"}

    def __init__(self, truncate: bool = False) -> None:
        self.possible_agents = ["a", "b", "c"]
        self.truncate = truncate

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Box(-100, 100, (1,), np.float64)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2, start=5)

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.agents, self.steps = list(self.possible_agents), 0
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = "a"

    def observe(self, agent: str) -> np.ndarray:
        assert agent in self.agents
        return np.array([self.steps + 10.0 * self.possible_agents.index(agent)])

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection] or self.truncations[self.agent_selection]:
            self._was_dead_step(action)
            return
        assert action in (5, 6)
        mover = self.agent_selection
        self.steps += 1
        self.rewards = {agent: float(self.steps) for agent in self.agents}
        if mover == "b":
            self.terminations["b"] = True
        if self.steps == 5:
            (self.truncations if self.truncate else self.terminations).update({"a": True, "c": True})
        self.agent_selection = (
            "a" if mover == "c" else "c" if mover == "a" and "b" not in self.agents else chr(ord(mover) + 1)
        )
        if self.terminations.get("b") and mover == "b":
            self._skip_agent_selection, self.agent_selection = "c", "b"


def test_a_dead_seat_is_passed_over_until_the_next_episode() -> None:
    env = AecEnv.of(Mortal, env_id="mortal", num_envs=1)
    turn = env.reset(0)
    seats, rewards = [turn.seat.tolist()], []
    for _ in range(5):
        turn = env.step(np.array([1]))
        seats.append(turn.seat.tolist())
        rewards.append(turn.rewards[0].tolist())
    assert seats == [[0], [1], [2], [0], [2], [0]]
    assert rewards == [[1, 1, 1], [3, 2, 3], [6, 2, 3], [4, 2, 7], [9, 2, 5]]
    assert turn.terminated.tolist() == [True]
    assert turn.returns.tolist() == [[15, 3, 15]]


def test_a_truncated_episode_ends_with_the_observations_of_the_seats_that_were_cut_off() -> None:
    env = AecEnv.of(lambda: Mortal(truncate=True), env_id="mortal", num_envs=1)
    env.reset(0)
    for _ in range(5):
        turn = env.step(np.array([0]))
    assert turn.truncated.tolist() == [True]
    assert turn.final is not None
    assert turn.final.seat.tolist() == [0, 2], "seat 1 terminated before: nothing follows for it"
    assert turn.final.obs["observation"].tolist() == [[5], [25]]
    assert turn.final.obs["observation"].dtype == np.float32


class Spoiled(RawSimultaneousProbe):
    """Goes wrong in a chosen way in the third step."""

    def __init__(self, fault: str = "", index: int = 0) -> None:
        super().__init__(index=index, num_seats=2, episode_length=9)
        self.fault = fault

    def step(self, actions: dict[str, Any]) -> Any:
        observations, rewards, *rest = super().step(actions)
        if self.count.steps == 3:
            if self.fault == "raise":
                raise RuntimeError("the ball rolled off")
            if self.fault == "observation":
                observations["seat_1"]["counter"][2] = np.nan
            if self.fault == "reward":
                rewards["seat_1"] = np.inf
            if self.fault == "no reward":
                del rewards["seat_1"]
            if self.fault == "no observation":
                del observations["seat_1"]
            if self.fault == "shape":
                observations["seat_0"]["echo"] = np.zeros(2, np.float32)
        return observations, rewards, *rest


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("raise", r"raw: step raised RuntimeError: the ball rolled off \(game 0, episode 0, seed \d+, step 3\)"),
        ("observation", r"raw, game 0, seat seat_1: observation 'counter' is nan at \[2\]"),
        ("reward", "raw, game 0, seat seat_1: a reward is inf"),
        ("no reward", "raw, game 0: agent 'seat_1' is given no reward; give 0.0 where it earned nothing"),
        ("no observation", "raw, game 0: agent 'seat_1' is given no observation"),
        ("shape", r"field 'echo' has shape \(2,\), its space says \(1,\)"),
    ],
)
def test_what_goes_wrong_inside_is_one_sentence_with_the_place(fault: str, words: str) -> None:
    env = wrapped(ParallelEnv, Spoiled, fault=fault)
    env.reset(0)
    with pytest.raises(EnvError, match=words):
        for _ in range(3):
            env.step(np.zeros(6, np.int64))


def test_seats_with_fewer_actions_get_a_standing_mask() -> None:
    class Uneven(RawSimultaneousProbe):
        def action_space(self, agent: str) -> spaces.Discrete:
            return spaces.Discrete(2 if agent == "seat_0" else 4)

    turn = wrapped(ParallelEnv, Uneven, num_envs=1).reset(0)
    assert turn.action_mask.tolist() == [[True, True, False, False], [True] * 4]


@pytest.mark.parametrize(
    ("env_id", "words"),
    [
        ("pettingzoo:classic/conect_four_v3", "did you mean pettingzoo:classic/connect_four_v3"),
        ("pettingzoo:nothing_like_it", "there are the families"),
    ],
)
def test_an_unknown_id_names_the_nearest(env_id: str, words: str) -> None:
    with pytest.raises(EnvError, match=words):
        make(EnvConfig(env_id), num_envs=1)


def test_ids_registered_as_parallel_are_simultaneous() -> None:
    env = make(EnvConfig("pettingzoo:classic/rps_v2"), num_envs=2)
    assert env.reset(0).seat.tolist() == [0, 1, 0, 1]
    assert env.spec.observations["observation"].dtype == "bool"


def test_an_unknown_id_is_answered_with_what_there_is_and_not_with_everything() -> None:
    with pytest.raises(EnvError, match="MPE has moved to the package mpe2; pip install mpe2") as moved:
        make(EnvConfig("pettingzoo:mpe/simple_tag_v3"), num_envs=1)
    assert "take mpe2.simple_tag_v3:parallel_env" in str(moved.value)
    with pytest.raises(EnvError, match=r"there are the families .*classic") as nothing_near:
        make(EnvConfig("pettingzoo:zzz/qqq_v1"), num_envs=1)
    assert len(str(nothing_near.value)) < 200
    with pytest.raises(EnvError, match="did you mean pettingzoo:classic/connect_four_v3"):
        make(EnvConfig("pettingzoo:classic/conect_four_v3"), num_envs=1)


def test_a_game_in_turns_in_the_guise_of_a_parallel_one_is_stepped_without_its_checks() -> None:
    env = make(EnvConfig("pettingzoo:classic/rps_v2"), num_envs=1)
    inner = env._games[0].aec_env  # type: ignore[attr-defined]
    assert inner is inner.unwrapped
    turn = env.reset(0)
    turn = env.step(np.array([0, 2]))  # rock beats scissors
    assert turn.rewards.tolist() == [[1.0, -1.0]]


class Emulator(RawSimultaneousProbe):
    """Remembers the seeds of its resets."""

    seeds: ClassVar[list[int | None]] = []

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.seeds.append(seed)
        return super().reset(seed=seed, options=options)


def test_an_emulator_is_seeded_once_by_each_reset_and_when_it_is_made_again() -> None:
    env = wrapped(EmulatorEnv, Emulator, num_envs=1, episode_length=2)
    Emulator.seeds.clear()
    for seed in (1, 2):
        turn = env.reset(seed)
        for _ in range(5):
            turn = env.step(np.zeros(len(turn.seat), np.int64))
    assert [seed is None for seed in Emulator.seeds] == [False, True, True] * 2
    assert Emulator.seeds[0] != Emulator.seeds[3]
    env._games[0] = Emulator()
    assert [env._seed_for(0, 9), env._seed_for(0, 9)] == [9, None]


def test_a_game_of_two_seats_runs_on_the_roms_of_ale_py() -> None:
    env = make(EnvConfig("pettingzoo:atari/pong_v3", {"obs_type": "ram", "max_cycles": 5}), num_envs=1)
    turn = env.reset(0)
    assert turn.obs["observation"].shape == (2, 128)
    for _ in range(5):
        turn = env.step(np.zeros(2, np.int64))
    assert turn.truncated.all()
    with pytest.raises(EnvError, match=r"cannot be copied.*ALEInterface releases"):
        env.fork(np.zeros(1, np.int64))
    env.close()


class OneValue(PettingZooParallel):
    """Its reset returns the observations alone."""

    metadata: ClassVar[dict[str, Any]] = {"name": "one_value"}
    possible_agents: ClassVar[list[str]] = ["a", "b"]

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents = ["a", "b"]
        return {"a": 0, "b": 0}


def test_a_parallel_reset_that_returns_observations_only_is_one_sentence() -> None:
    with pytest.raises(EnvError, match="reset returned a dict; it must return observations, infos"):
        ParallelEnv.of(OneValue, env_id="one", num_envs=1)
