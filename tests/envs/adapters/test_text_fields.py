"""Observations that hold text, which no network reads."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.spec_facts import env_facts
from tests.envs.oracles.raw_probes import RawSingleProbe


def test_text_is_left_out_also_by_a_space_of_the_games_own_and_a_check_says_so() -> None:
    class MissionSpace(spaces.Space[str]):
        def __init__(self) -> None:
            super().__init__(dtype=str)

    class Missions(RawSingleProbe):
        observation_space = spaces.Dict(
            {
                **RawSingleProbe.observation_space.spaces,
                "mission": MissionSpace(),
                "deep": spaces.Dict(word=spaces.Text(5)),
            }
        )

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            seen, infos = super().reset(seed=seed)
            return {**seen, "mission": "get the key", "deep": {"word": "abc"}}, infos

        def step(self, action: Any) -> Any:
            seen, *rest = super().step(action)
            return {**seen, "mission": "get the key", "deep": {"word": "abc"}}, *rest

    plain, worded = (GymnasiumEnv.of(kind, env_id="x", num_envs=2) for kind in (RawSingleProbe, Missions))
    assert worded.spec.observations == plain.spec.observations
    assert (plain.left_out, worded.left_out) == ((), ("deep.word", "mission"))
    assert dict(env_facts(worded))["not seen"] == "deep.word, mission, which is text"
    turns = [env.reset(0).obs for env in (plain, worded)]
    for name, array in turns[0].items():
        np.testing.assert_array_equal(turns[1][name], array)
