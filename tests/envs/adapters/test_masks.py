"""Masks of games of others: every place where one may stand, one that comes late, and values that are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo import AECEnv, ParallelEnv

from league.envs.adapters import pettingzoo
from league.envs.adapters.bare import bare_rate
from league.envs.adapters.checks.masks import mask_path
from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.gymnasium_arrays import vector_env
from league.envs.adapters.user_env import guarded
from league.envs.bots import RandomBot
from league.envs.protocol import BatchedEnv, EnvError
from tests.envs.oracles.own_masks import OwnMasks

LEGAL = [1, 0, 1]
BOX = spaces.Box(-1, 1, (2,), np.float32)
FLAGS = spaces.MultiBinary(3)
SPACES: dict[str, spaces.Space] = {
    "observation": spaces.Dict({"o": BOX, "action_mask": FLAGS}),
    "nested": spaces.Dict({"o": BOX, "unit": spaces.Tuple([BOX, spaces.Dict({"b": BOX, "action_mask": FLAGS})])}),
    "avail_actions": spaces.Dict({"o": BOX, "avail_actions": spaces.Box(0, 1, (3,), np.int8)}),
}
"""Place of a mask -> an observation space with one there; the others have it outside of observations."""


class Masked:
    """What the games below share. place: of the mask; mask: what stands there; late: first step in which it does."""

    action_space_of: ClassVar[spaces.Space] = spaces.Discrete(3)

    def __init__(self, place: str, mask: Any = LEGAL, *, late: int = 0) -> None:
        self.place, self.mask, self.late, self.steps = place, mask, late, 0

    def seen(self) -> Any:
        box, mask = np.zeros(2, np.float32), self.mask
        return {
            "observation": {"o": box, "action_mask": mask},
            "undeclared": {"o": box, "action_mask": mask} if self.steps >= self.late else {"o": box},
            "nested": {"o": box, "unit": (box, {"b": box, "action_mask": mask})},
            "avail_actions": {"o": box, "avail_actions": mask},
        }.get(self.place, box)

    def infos(self) -> dict[str, Any]:
        name = self.place.removeprefix("infos.")
        return {name: self.mask} if name != self.place and self.steps >= self.late else {}

    def space(self) -> spaces.Space:
        return SPACES.get(self.place, spaces.Dict({"o": BOX}) if self.place == "undeclared" else BOX)

    def check(self, action: Any) -> bool:
        assert self.place == "nowhere" or self.late or self.mask[action] == 1, "an illegal action was played"
        self.steps += 1
        return self.steps == 4


class Single(Masked, gymnasium.Env):
    @property
    def observation_space(self) -> spaces.Space:  # type: ignore[override]
        return self.space()

    @property
    def action_space(self) -> spaces.Space:  # type: ignore[override]
        return self.action_space_of

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.seen(), self.infos()

    def step(self, action: Any) -> Any:
        over = self.check(action)
        return self.seen(), 0.0, over, False, self.infos()


class SingleMethod(Single):
    def action_masks(self) -> Any:
        return np.array(self.mask, bool)


class Parallel(Masked, ParallelEnv):
    metadata: ClassVar[dict[str, Any]] = {"name": "masked"}
    possible_agents: ClassVar[list[str]] = ["a", "b"]

    def observation_space(self, agent: str) -> spaces.Space:
        return self.space()

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_space_of

    def both(self, value: Callable[[], Any]) -> dict[str, Any]:
        return {agent: value() for agent in ("a", "b")}

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.steps, self.agents = 0, ["a", "b"]
        return self.both(self.seen), self.both(self.infos)

    def step(self, actions: dict[str, Any]) -> Any:
        self.check(actions["b"])
        self.steps -= 1
        over = self.check(actions["a"])
        self.agents = [] if over else self.agents
        flags = self.both(lambda: over)
        return self.both(self.seen), self.both(float), flags, self.both(bool), self.both(self.infos)


class ParallelMethod(Parallel):
    def action_masks(self) -> dict[str, Any]:
        return self.both(lambda: np.array(self.mask, bool))


class Turns(Masked, AECEnv):
    metadata: ClassVar[dict[str, Any]] = {"name": "masked"}
    possible_agents: ClassVar[list[str]] = ["a", "b"]

    def __init__(self, *given: Any, **options: Any) -> None:
        AECEnv.__init__(self)
        Masked.__init__(self, *given, **options)

    @property
    def infos(self) -> Any:  # type: ignore[override]
        return {agent: Masked.infos(self) for agent in ("a", "b")}

    def observation_space(self, agent: str) -> spaces.Space:
        return self.space()

    def action_space(self, agent: str) -> spaces.Space:
        return self.action_space_of

    def observe(self, agent: str) -> Any:
        return self.seen()

    def reset(self, seed: int | None = None, options: Any = None) -> None:
        self.steps, self.agents, self.agent_selection = 0, ["a", "b"], "a"
        self.rewards, self._cumulative_rewards = dict.fromkeys("ab", 0.0), dict.fromkeys("ab", 0.0)
        self.terminations, self.truncations = dict.fromkeys("ab", False), dict.fromkeys("ab", False)

    def step(self, action: Any) -> None:
        if self.terminations[self.agent_selection]:
            self._was_dead_step(action)
            return
        self.terminations = dict.fromkeys("ab", self.check(action))
        self.agent_selection = "b" if self.agent_selection == "a" else "a"


class TurnsMethod(Turns):
    def action_mask(self, agent: str) -> Any:
        return self.mask


PLAIN = {"gymnasium": Single, "parallel": Parallel, "aec": Turns}
BY_METHOD = {"gymnasium": SingleMethod, "parallel": ParallelMethod, "aec": TurnsMethod}
KINDS = tuple(PLAIN)


def wrapped(kind: str, place: str, mask: Any = LEGAL, **options: Any) -> BatchedEnv:
    game = (BY_METHOD if place == "method" else PLAIN)[kind]
    if kind == "gymnasium":
        return GymnasiumEnv.of(lambda: game(place, mask, **options), env_id="x", num_envs=2)
    adapter = pettingzoo.AecEnv if kind == "aec" else pettingzoo.ParallelEnv
    return adapter.of(lambda: game(place, mask, **options), env_id="x", num_envs=2)


PLACES = (*SPACES, "undeclared", "method", "infos.action_mask", "infos.avail_actions", "infos.action_masks")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_mask_is_taken_up_wherever_it_stands(kind: str, place: str) -> None:
    env = wrapped(kind, place)
    assert env.spec.has_mask
    assert not any("mask" in name or "avail" in name for name in env.spec.observations)
    bot, turn = RandomBot(seed=0), env.reset(0)
    for _ in range(12):
        assert turn.action_mask is not None
        assert turn.action_mask.tolist() == [[True, False, True]] * turn.env_index.size
        turn = env.step(bot.act(env, turn, np.arange(turn.env_index.size)))
    assert bare_rate(env, seconds=0.005), "the bare loop plays what is legal too"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", ["infos.action_mask", "infos.avail_actions", "infos.legal_moves", "undeclared"])
def test_a_mask_that_comes_after_the_first_reset_is_refused_by_name(kind: str, place: str) -> None:
    env = wrapped(kind, place, late=2)
    assert not env.spec.has_mask
    turn, name = env.reset(0), place.removeprefix("infos.") if place != "undeclared" else "action_mask"
    with pytest.raises(EnvError, match=rf"x, game 0, seat \w+: it gives \w+\['{name}'\], (but its first|which is not)"):
        for _ in range(3):
            turn = env.step(np.zeros(turn.env_index.size, np.int64))


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_legal_actions_are_refused_at_once(kind: str) -> None:
    with pytest.raises(EnvError, match=r"x: it gives infos\['legal_actions'\], which is not read; give infos\['act"):
        wrapped(kind, "infos.legal_actions", [0, 2])


@pytest.mark.parametrize("place", PLACES)
def test_a_mask_of_a_box_is_refused(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Masked, "action_space_of", spaces.Box(-1, 1, (3,), np.float32))
    if place in {"nested", "avail_actions"}:  # a part of the observation like any other
        assert any("mask" in name or "avail" in name for name in wrapped("parallel", place).spec.observations)
        return
    with pytest.raises(EnvError, match=r"x: it gives .*, but its actions are a Box, of which nothing is masked"):
        wrapped("parallel", place)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("mask", "words"),
    [
        ([0.0, -np.inf, 0.0], r"holds -inf at \[1\]; it must hold 1 for every legal action"),
        (np.array([1.0, np.nan, 0.0]), r"holds nan at \[1\]"),
        ([1, 0.5, 0], r"holds 0\.5 at \[1\]"),
        ([2, 0, 0], r"holds 2 at \[0\]"),
        ([-1, 1, 1], r"holds -1 at \[0\]"),
        ([1, None, 0], r"holds None at \[1\]"),
        (["1", "0", "1"], "holds 1 at"),
        ([1, 0, 1, 1], r"has shape \(4,\), expected \(3,\)"),
        ([1, 0], r"has shape \(2,\), expected \(3,\)"),
        (np.ones((3, 1)), r"has shape \(3, 1\), expected \(3,\)"),
        ([0, 0, 0], "is 0 for all 3 actions; a seat that must act needs a legal one"),
    ],
    ids=str,
)
def test_what_is_no_mask_is_one_sentence_with_game_seat_and_value(kind: str, mask: Any, words: str) -> None:
    for place in ("observation", "infos.action_mask"):
        env = wrapped(kind, place, mask)
        with pytest.raises(EnvError, match=rf"^x, game 0, seat \w+: (its )?action_mask {words}"):
            env.reset(0)


@pytest.mark.parametrize(
    "mask", [[1, 0, 1], np.array([1.0, 0.0, 1.0]), np.array([True, False, True]), (1, 0, 1)], ids=str
)
def test_a_mask_may_be_of_any_type(mask: Any) -> None:
    turn = wrapped("parallel", "infos.action_mask", mask).reset(0)
    assert turn.action_mask is not None and turn.action_mask[0].tolist() == [True, False, True]


def test_a_declared_mask_that_is_missing_is_named() -> None:
    env = wrapped("parallel", "nested")
    env.reset(0)
    env._games[1].place = "observation"
    with pytest.raises(EnvError, match=r"x, game 1, seat a: its observation has no 'unit\.1\.action_mask'"):
        env.step(np.zeros(4, np.int64))


def test_two_masks_that_fit_are_named() -> None:
    both = spaces.Dict({key: spaces.Dict({"action_mask": FLAGS}) for key in "ab"})
    with pytest.raises(ValueError, match=r"a\.action_mask and b\.action_mask may both be"):
        mask_path(both, 3)
    assert mask_path(both, 4) is None, "another number of flags is an observation"
    assert mask_path(spaces.Dict({"action_mask": BOX, "u": spaces.Dict({"action_mask": FLAGS})}), 3) == ("action_mask",)


def vector(place: str, *, late: int = 0) -> BatchedEnv:
    def make(count: int) -> SyncVectorEnv:
        game = SingleMethod if place == "method" else Single
        games = [lambda: game(place, late=late)] * count
        return SyncVectorEnv(games, autoreset_mode=AutoresetMode.SAME_STEP)

    return vector_env(make(2), make, env_id="x")


@pytest.mark.parametrize("place", [place for place in PLACES if place != "undeclared"])
def test_masks_of_a_vector_env_are_refused(place: str) -> None:
    with pytest.raises(EnvError, match="masks of a vector env cannot be read; return single envs"):
        vector(place)


def test_late_masks_of_a_vector_env_are_refused_by_name() -> None:
    env = vector("infos.action_mask", late=2)
    env.reset(0)
    with pytest.raises(EnvError, match=r"x: it gives infos\['action_mask'\], but its first reset gave no mask"):
        for _ in range(3):
            env.step(np.zeros(2, np.int64))


@pytest.mark.parametrize(
    ("mask", "has_mask", "words"),
    [
        (np.array([[0.0, -np.inf], [0.0, 0.0]]), True, r"seat 0: action_mask holds -inf at \[1\]"),
        (np.array([[1, 0], [0, 2]]), True, r"game 1, seat 0: action_mask holds 2 at \[1\]"),
        (np.array([[True, False], [False, False]]), True, "game 1, seat 0: action_mask allows no action"),
        (np.ones((2, 3), np.bool_), True, r"action_mask is \(2, 3\), expected \(2, 2\)"),
        (None, True, "its spec has masks, and a turn has none"),
        (np.ones((2, 2), np.bool_), False, "its spec has no masks, and a turn has some"),
    ],
)
def test_masks_of_a_users_batch_hold_what_its_spec_says(mask: Any, has_mask: bool, words: str) -> None:
    env = guarded(OwnMasks(has_mask=has_mask, first=np.ones((2, 2), np.bool_) if has_mask else None, later=mask))
    env.reset(0)
    with pytest.raises(EnvError, match=words):
        env.step(np.zeros(2, np.int64))


def test_a_method_that_asks_for_a_state_is_no_mask_of_a_lone_seat() -> None:
    taxi = gymnasium.make("Taxi-v4").unwrapped

    class Bare(gymnasium.Wrapper):
        """Taxi without the masks in its infos; its method `action_mask(state)` is left."""

        def reset(self, **kwargs: Any) -> Any:
            return self.env.reset(**kwargs)[0], {}

        def step(self, action: Any) -> Any:
            return (*self.env.step(action)[:4], {})

    env = GymnasiumEnv.of(lambda: Bare(taxi), env_id="taxi", num_envs=1)
    assert not env.spec.has_mask
    env.reset(0)
    env.step(np.zeros(1, np.int64))
