"""The table of docs/games-in-your-process.md on Ray: what a game does to its host reaches nobody else."""

from __future__ import annotations

from typing import Any

import pytest
import ray

from tests.envs.guard.guarded_play import cells
from tests.envs.guard.test_wild_games import CALLS, IGNORED
from tests.envs.guard.wild_games import FAILING, HARMLESS

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""


@pytest.mark.usefixtures("ray_cluster")
def test_every_behaviour_in_every_call_leaves_a_worker_of_ray_as_it_was() -> None:
    class Player:
        def cells(self, call: str) -> list[dict[str, Any]]:
            return list(cells(call, [*HARMLESS, *FAILING]))

    player = ray.remote(Player).remote()
    for call in CALLS:
        for cell in ray.get(player.cells.remote(call), timeout=150):
            fails = cell["how"] in FAILING and call not in IGNORED
            assert cell["changed"] == [] and ("wild_games:make" in cell["sentence"]) == fails, (call, cell)
    ray.kill(player)
