"""What games of others declare: numbers outside of a Box are told once, and what cannot be read is one sentence."""

from __future__ import annotations

import itertools
import logging
from typing import Any, ClassVar

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from pettingzoo import AECEnv, ParallelEnv

from league.envs.adapters.bare import bare_rate
from league.envs.adapters.external import frame_of
from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.gymnasium_arrays import vector_env
from league.envs.adapters.pettingzoo import ParallelEnv as ParallelGames
from league.envs.conformance import check_env
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError
from league.envs.registry import make

NAMES = map("game{}".format, itertools.count())
"""Of games: each is warned of once."""


class Lone(gymnasium.Env):
    """Shows numbers as given, one row a step."""

    action_space = spaces.Discrete(2)

    def __init__(self, space: spaces.Space, rows: list[Any]) -> None:
        self.observation_space, self.rows, self.steps = space, rows, 0

    def seen(self) -> Any:
        row = self.rows[min(self.steps, len(self.rows) - 1)]
        return row if isinstance(row, dict) else np.array(row, self.observation_space.dtype)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return self.seen(), {}

    def step(self, action: Any) -> Any:
        self.steps += 1
        return self.seen(), 0.0, self.steps == 5, False, {}


def single(space: spaces.Space, rows: list[Any], name: str) -> BatchedEnv:
    return GymnasiumEnv.of(lambda: Lone(space, rows), env_id=name, num_envs=2)


def vector(space: spaces.Space, rows: list[Any], name: str) -> BatchedEnv:
    def make_one(count: int) -> SyncVectorEnv:
        return SyncVectorEnv([lambda: Lone(space, rows)] * count, autoreset_mode=AutoresetMode.SAME_STEP)

    return vector_env(make_one(2), make_one, env_id=name)


def pair(space: spaces.Space, rows: list[Any], name: str) -> BatchedEnv:
    class Pair(ParallelEnv):
        metadata: ClassVar[dict[str, Any]] = {"name": "pair"}
        possible_agents: ClassVar[list[str]] = ["a", "b"]

        def observation_space(self, agent: str) -> spaces.Space:
            return space if agent == "a" else spaces.Box(-100, 100, (3,), np.float32)

        def action_space(self, agent: str) -> spaces.Space:
            return Lone.action_space

        def reset(self, seed: int | None = None, options: Any = None) -> Any:
            self.lone, self.agents = Lone(space, rows), ["a", "b"]
            return {"a": self.lone.reset()[0], "b": np.full(3, 50, np.float32)}, {}

        def step(self, actions: Any) -> Any:
            seen, reward, over, _, _ = self.lone.step(0)
            self.agents = [] if over else self.agents
            flags = dict.fromkeys("ab", over)
            shown = {"a": seen, "b": np.full(3, 50, np.float32)}
            return shown, dict.fromkeys("ab", reward), flags, dict.fromkeys("ab", False), {}

    return ParallelGames.of(Pair, env_id=name, num_envs=2)


def box(low: Any, high: Any, dtype: Any = np.float32) -> spaces.Box:
    return spaces.Box(np.array(low, dtype), np.array(high, dtype), dtype=dtype)


def warnings_of(make_env: Any, space: spaces.Space, rows: list[Any], caplog: pytest.LogCaptureFixture) -> list[str]:
    name = next(NAMES)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):  # a game is made many times in one process
            env = make_env(space, rows, name)
            turn = env.reset(0)
            for _ in range(8):
                turn = env.step(np.zeros(turn.env_index.size, np.int64))
    return [record.getMessage().removeprefix(f"{name}: ") for record in caplog.records]


@pytest.mark.parametrize("make_env", [single, vector, pair])
@pytest.mark.parametrize(
    ("space", "rows", "text"),
    [
        (box([-1, -1], [1, 1]), [[0, 0], [55, -99]], "'observation' goes from -99 to 55, its space says -1 to 1;"),
        (
            box([0, -1], [1, 5]),
            [[0, 0], [0, 4], [2, 5]],
            "'observation' goes from 2 to 2 at [0], its space says 0 to 1;",
        ),
        (
            box([0, -np.inf], [1, np.inf]),
            [[0, 1e6], [-3, 7]],
            "'observation' goes from -3 to -3 at [0], its space says",
        ),
        (box([0, 0], [9, 9], np.int8), [[0, 9], [10, 3]], "'observation' goes from 3 to 10, its space says 0 to 9;"),
    ],
)
def test_numbers_outside_of_their_box_are_warned_of_once_with_both_ranges(
    make_env: Any, space: spaces.Space, rows: list[Any], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    told = warnings_of(make_env, space, rows, caplog)
    assert len(told) == 1 and told[0].startswith(f"observation {text}"), told


@pytest.mark.parametrize(
    ("space", "rows"),
    [
        (box([-1, -1], [1, 1]), [[-1, 1], [0.1, 1]]),
        (box([0.1, 0.1], [0.7, 0.7], np.float64), [[0.1, 0.7]]),  # which float32 rounds
        (box([-np.inf, -np.inf], [np.inf, np.inf]), [[-1e30, 1e30]]),
        (box([0, 0], [255, 255], np.uint8), [[0, 255]]),
        (box([-1e300, 0], [1e300, 1], np.float64), [[1e30, 0.5]]),
    ],
)
@pytest.mark.parametrize("make_env", [single, vector])
def test_numbers_within_their_box_are_never_warned_of(
    make_env: Any, space: spaces.Space, rows: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert warnings_of(make_env, space, rows, caplog) == []


def test_every_field_has_a_warning_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    space = spaces.Dict({"x": box([0], [1]), "y": box([0], [1]), "z": box([0], [1])})
    row = {name: np.full(1, value, np.float32) for name, value in {"x": 2.0, "y": 0.5, "z": -1.0}.items()}
    told = warnings_of(single, space, [row], caplog)
    assert [text.split()[1] for text in told] == ["'x'", "'z'"]


class Unready:
    """Raises where an attribute named in `raises` is read."""

    raises, error = "", AttributeError("no such thing yet")

    def __getattribute__(self, name: str) -> Any:
        if name == object.__getattribute__(self, "raises"):
            raise object.__getattribute__(self, "error")
        return object.__getattribute__(self, name)


class UnreadyParallel(Unready, ParallelEnv):
    metadata: ClassVar[dict[str, Any]] = {"name": "unready"}
    possible_agents: ClassVar[list[str]] = ["a", "b"]
    render_mode = "ansi"

    def __init__(self, raises: str = "", error: str = "AttributeError") -> None:
        self.raises, self.error = raises, {"AttributeError": AttributeError, "KeyError": KeyError}[error]("gone")

    def observation_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def action_space(self, agent: str) -> spaces.Space:
        return spaces.Discrete(2)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        self.agents, self.steps = ["a", "b"], 0
        return dict.fromkeys("ab", 0), {}

    def step(self, actions: Any) -> Any:
        self.steps += 1
        over = self.steps == 3
        self.agents = [] if over else self.agents
        zero, flags = dict.fromkeys("ab", 0), dict.fromkeys("ab", over)
        return zero, zero, flags, dict.fromkeys("ab", False), {}

    def close(self) -> None:
        pass


class UnreadyAec(UnreadyParallel, AECEnv):
    """As far as an adapter asks it before the first reset."""

    def last(self, observe: bool = True) -> Any:
        return None

    def observe(self, agent: str) -> Any:
        return 0


class UnreadySingle(Unready, gymnasium.Env):
    observation_space = action_space = spaces.Discrete(2)

    def __init__(self, raises: str = "", error: str = "AttributeError") -> None:
        self.raises, self.error = raises, {"AttributeError": AttributeError, "KeyError": KeyError}[error]("gone")

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, 0.0, True, False, {}


ASKED = [
    *(("UnreadyParallel", name) for name in ("possible_agents", "observation_space", "action_space")),
    *(("UnreadyAec", name) for name in ("possible_agents", "observation_space", "action_space")),
    *(("UnreadySingle", name) for name in ("observation_space", "action_space")),
]


@pytest.mark.parametrize("error", ["AttributeError", "KeyError"])
@pytest.mark.parametrize(("game", "name"), ASKED)
def test_what_raises_before_the_first_reset_is_one_sentence_with_game_and_attribute(
    game: str, name: str, error: str
) -> None:
    config = EnvConfig(f"{__name__}:{game}", {"raises": name, "error": error})
    with pytest.raises(EnvError, match=rf"^{config.id}: its {name}[^ ]* raised {error}: .*gone.*; it is read before"):
        make(config, num_envs=1)
    (finding,) = (found for found in check_env(config) if found.kind == "fault")
    assert "\n" not in finding.text and name in finding.text


@pytest.mark.parametrize("name", ["render_mode", "metadata", "max_num_agents", "state_space"])
@pytest.mark.parametrize("game", ["UnreadyParallel", "UnreadySingle"])
def test_what_is_only_nice_to_have_may_raise(game: str, name: str) -> None:
    config = EnvConfig(f"{__name__}:{game}", {"raises": name, "error": "KeyError"})
    assert not [found.text for found in check_env(config, steps=5) if found.kind == "fault"]
    env: Any = make(config, num_envs=1)
    assert frame_of(env._games[0]) is None
    env.close()


def test_a_vector_env_that_raises_is_one_sentence() -> None:
    class Broken(SyncVectorEnv):
        def reset(self, **_: Any) -> Any:
            raise KeyError("gone")

    def make_one(count: int) -> SyncVectorEnv:
        return Broken([lambda: Lone(box([0], [1]), [[0]])] * count, autoreset_mode=AutoresetMode.SAME_STEP)

    with pytest.raises(EnvError, match=r"^x: its first reset raised KeyError: 'gone'$"):
        vector_env(make_one(2), make_one, env_id="x")


@pytest.mark.parametrize(
    ("agents", "words"),
    [(["a", "a"], "has a name twice: a, a"), (3, "raised TypeError"), ([], "it has no possible_agents")],
)
def test_possible_agents_that_are_no_list_of_names_are_named(agents: Any, words: str) -> None:
    game = UnreadyParallel()
    game.possible_agents = agents
    with pytest.raises(EnvError, match=f"x: .*{words}"):
        ParallelGames.of(lambda: game, env_id="x", num_envs=1)


def test_an_agent_that_is_not_possible_is_named() -> None:
    game = UnreadyParallel()
    env = ParallelGames.of(lambda: game, env_id="x", num_envs=1)
    game.reset = lambda seed=None, options=None: (setattr(game, "agents", ["a", "c"]), ({"a": 0, "c": 0}, {}))[1]
    with pytest.raises(EnvError, match="x, game 0: agent 'c' is not in possible_agents"):
        env.reset(0)


@pytest.mark.parametrize(("call", "parts"), [("reset", "observations, infos"), ("step", "observations, rewards, ter")])
def test_results_of_another_number_of_parts_are_named(call: str, parts: str) -> None:
    game = UnreadyParallel()
    env = ParallelGames.of(lambda: game, env_id="x", num_envs=1)
    setattr(game, call, lambda *given, **options: dict.fromkeys("ab", 0))
    with pytest.raises(EnvError, match=f"x: {call} returned a dict; it must return {parts}"):
        env.reset(0)
        env.step(np.zeros(2, np.int64))


def test_a_bare_game_that_cannot_be_made_again_is_one_sentence() -> None:
    made = iter([UnreadyParallel()])
    env = ParallelGames.of(lambda: next(made), env_id="x", num_envs=1)
    with pytest.raises(EnvError, match=r"^x: played in the usual loop of its kind, it raised StopIteration"):
        bare_rate(env, seconds=0.01)
