"""The parts of an actor's time, on a few games."""

from __future__ import annotations

import pytest

from benchmarks.throughput.actor_parts import assignments_of, parts_of
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of


@pytest.mark.parametrize("env_id", ["connect_four", "gymnasium:CartPole-v1"])
def test_the_parts_make_up_the_whole(env_id: str) -> None:
    found = parts_of(env_id, games=16, steps=40, rounds=1)
    parts = {"observe", "decide", "move", "arrive", "env"}
    assert parts | {"all"} <= found.keys() <= parts | {"all", "encode"}
    assert 0.0 < sum(found[name] for name in parts) <= 1.05 * found["all"]
    assert sum(row.probability for row in assignments_of(spec_of(EnvConfig(env_id)))) in (0.5, pytest.approx(1.0))
