"""Plug-ins from a file beside the configuration on Ray: the hosts load the game and a network part from it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from league.agents.nets.config import NetworkConfig
from league.envs.protocol import EnvConfig
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import HostStarted, InstallPlayer, LearnerProgress, LeaseDone, PlayerInstalled, PlayLease
from tests.league.hosts.host_cases import lease_of, setup_of
from tests.league.hosts.on_ray.test_ray_runtime import SETTINGS, Watched

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

OWN = """
import os

from league.agents.nets.mlp import build_mlp
from league.envs.games.matrix import RepeatedRockPaperScissors

def game(*, num_envs):
    with open(__file__ + ".hosts", "a") as file:
        file.write(f"{os.getpid()}\\n")
    return RepeatedRockPaperScissors(num_envs=num_envs, rounds=4)

encoder = build_mlp
"""


def test_hosts_on_ray_load_a_game_and_an_encoder_from_the_users_file(ray_cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(OWN)
    setup = setup_of(EnvConfig(f"{file}:game"))
    setup = dataclasses.replace(setup, network=NetworkConfig(encoder=f"{file}:encoder", hidden=(8,)))
    made = Watched(RayRuntime(setup, SETTINGS, players=("main-0",), cluster=ray_cluster))
    try:
        made.runtime.start()
        made.until_all(HostStarted("actor-0", "actor_host"), HostStarted("learner-0", "learner_host", ("main-0",)))
        made.runtime.submit(InstallPlayer("main-0"))
        made.until_all(PlayerInstalled("main-0"))
        made.runtime.submit(PlayLease(lease_of(), frozen={}))
        done = made.until(lambda report: isinstance(report, LeaseDone))
        assert isinstance(done, LeaseDone) and done.answer.env_steps > 0
        made.until(lambda report: isinstance(report, LearnerProgress) and report.progress.version > 0)
        pids = {int(line) for line in file.with_name("own.py.hosts").read_text().split()}
        assert {made.pid("actor_host"), made.pid("learner_host")} <= pids
    finally:
        made.runtime.close()
