"""Every family of games goes through a whole run: actors, learner, snapshots, evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import yaml
from gymnasium import spaces

from league.config.loading import load_config
from league.see.reports.verify import verify_run
from tests.league.tiny_runs import ONE_PLAYER, start, state_of, tiny

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "configs" / "families").glob("*.yaml"))

OBSERVED = {
    "discrete": spaces.Discrete(5, start=2),
    "box": spaces.Box(-1, 1, (3,), np.float64),
    "multi_discrete": spaces.MultiDiscrete([3, 2]),
    "multi_binary": spaces.MultiBinary(4),
    "dict": spaces.Dict({"tile": spaces.Discrete(3), "where": spaces.Box(0, 9, (2,), np.float32)}),
    "tuple": spaces.Tuple((spaces.Discrete(2), spaces.Box(-1, 1, (2, 2), np.float32))),
    "image": spaces.Box(0, 255, (16, 16, 3), np.uint8),
}
ACTED = {
    "discrete": spaces.Discrete(3, start=1),
    "box": spaces.Box(np.array([-1, 0], np.float32), np.array([1, 5], np.float32)),
    "multi_discrete": spaces.MultiDiscrete([3, 2]),
    "multi_binary": spaces.MultiBinary(3),
}
NETWORKS = {"dict": {"encoder": "dict"}, "image": {"encoder": "conv"}}


class Sampled(gymnasium.Env[Any, Any]):
    """Shows draws of its observation space; an episode is six steps, cut off if `cut`."""

    def __init__(self, *, observed: str, acted: str, mask: str = "", cut: bool = False) -> None:
        self.observation_space = OBSERVED[observed]
        self.action_space = ACTED[acted]
        if mask == "observation":
            self.observation_space = spaces.Dict({"seen": OBSERVED[observed], "action_mask": spaces.MultiBinary(3)})
        self._mask, self._cut, self._step = mask, cut, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self._step = 0
        return self._seen()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action), action
        assert not self._mask or action != 2, "the middle action is illegal"
        self._step += 1
        ended = self._step == 6
        observation, infos = self._seen()
        return observation, 1.0, ended and not self._cut, ended and self._cut, infos

    def _seen(self) -> tuple[Any, dict[str, Any]]:
        mask, observation = np.array([1, 0, 1], np.int8), self.observation_space.sample()
        if self._mask == "observation":
            observation["action_mask"] = mask
        return observation, {"action_mask": mask} if self._mask == "info" else {}


KINDS = [
    *({"observed": observed, "acted": "discrete"} for observed in OBSERVED),
    *({"observed": "box", "acted": acted, "cut": True} for acted in ACTED),
    *({"observed": "box", "acted": "discrete", "mask": mask} for mask in ("observation", "info")),
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: "-".join(str(value) for value in kind.values()))
def test_a_space_of_gymnasium_goes_through_a_run(kind: dict[str, Any], tmp_path: Path) -> None:
    plain = tiny(
        env={"id": "tests.integration.test_families:Sampled", "kwargs": kind},
        network=NETWORKS.get(kind["observed"], {}),
        actors={"num_envs": 4},
        league=ONE_PLAYER,
    )
    start(tmp_path, plain, env_steps=400)
    state = state_of(tmp_path / "run")
    assert state.totals.games > 0
    assert state.totals.truncated == (state.totals.games if kind.get("cut") else 0)
    assert verify_run(tmp_path / "run").problems == ()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_a_family_goes_through_a_run(path: Path, tmp_path: Path) -> None:
    """The env of the configuration, in a run of a few seconds; the configuration itself is valid."""
    load_config(path)
    env = yaml.safe_load(path.read_text())["env"]
    if "max_cycles" in env.get("kwargs", {}):
        env["kwargs"]["max_cycles"] = 40
    num_envs = 1 if path.stem == "atari" else 4  # each console takes two seconds to switch on
    plain = tiny(env=env, actors={"num_envs": num_envs}, budget={"env_steps": 300})
    start(tmp_path, plain, env_steps=300)
    state = state_of(tmp_path / "run")
    assert state.totals.env_steps >= 300
    assert sum(player.trained_steps for player in state.players.values()) > 0
    assert verify_run(tmp_path / "run").problems == ()


def test_every_family_has_a_configuration() -> None:
    assert {path.stem for path in CONFIGS} >= {
        "atari", "butterfly", "classic", "gymnasium", "openspiel_hidden", "openspiel_simultaneous"
    }  # fmt: skip
