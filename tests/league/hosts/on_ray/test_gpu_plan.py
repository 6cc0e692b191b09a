"""Who gets which GPU: shares that pack, GPUs kept for the workers of a learner, a word where one does without."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import cast

import pytest
import ray
import torch
from ray.util.placement_group import PlacementGroup

from league.agents.learner.config import LearnerConfig
from league.agents.learner.errors import StageDiedError
from league.agents.learner.pipeline_config import PipelineConfig
from league.config.run_config import RuntimeConfig
from league.envs.registry import spec_of
from league.hosts.learners.learner_host import Workers, player_learner
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.host_processes import ActorHostProcess, _workers
from league.hosts.on_ray.nodes.learner_groups import GpuPlan, WorkerPlace, plan_gpus
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import HostStarted, InstallPlayer, PlayerInstalled
from league.store.run_folder import WorkerStatus
from tests.league.hosts.host_cases import setup_of
from tests.league.hosts.on_ray.test_ray_runtime import Watched

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

TWO_STAGES = LearnerConfig(
    unroll_length=4,
    batch_rows=8,
    precision="float32",
    microbatches=2,
    pipeline=PipelineConfig(backend="torch_pipeline", stages=2),
)


@pytest.mark.parametrize("num_gpus", range(1, 9))
@pytest.mark.parametrize("hosts", range(1, 13))
def test_the_shares_of_all_learner_hosts_find_room_on_whole_gpus(num_gpus: int, hosts: int) -> None:
    host_share = plan_gpus(num_gpus, players=["a"], learner_hosts=hosts, num_workers=0).host_share
    assert 0.0 < host_share <= 1.0
    assert math.floor(1.0 / host_share + 1e-9) * num_gpus >= hosts
    assert plan_gpus(0, players=["a"], learner_hosts=hosts, num_workers=0) == GpuPlan(0.0)


def test_a_host_whose_learners_compute_in_workers_leaves_the_gpus_to_these() -> None:
    plan = plan_gpus(2, players=["main-0"], learner_hosts=1, num_workers=2)
    assert (plan.host_share, plan.players, plan.on_cpu) == (0.0, ("main-0",), ())
    assert list(plan.warnings()) == []
    assert plan.device_of("main-0") == "2 GPUs"


def test_workers_without_a_gpu_are_reported_with_the_arithmetic() -> None:
    plan = plan_gpus(5, players=["a", "b", "c"], learner_hosts=2, num_workers=2)
    assert (plan.players, plan.on_cpu) == (("a", "b"), ("c",))
    (warning,) = plan.warnings()
    assert warning.startswith("c: the 2 workers of each learner run on the CPU, as there are 5 GPUs for 6 workers")
    assert list(plan_gpus(0, players=["a"], learner_hosts=1, num_workers=2).warnings()) == []


@pytest.fixture
def piped(ray_cluster: Cluster) -> Iterator[Watched]:
    """A runtime whose one learner has two stages, on two pretended GPUs."""
    setup = dataclasses.replace(setup_of(), learner=TWO_STAGES)
    settings = RuntimeConfig(kind="ray", actor_hosts=1, learner_hosts=1)
    made = Watched(RayRuntime(setup, settings, players=("main-0",), cluster=ray_cluster))
    made.runtime.start()
    made.until_all(HostStarted("actor-0", "actor_host"), HostStarted("learner-0", "learner_host", ("main-0",)))
    yield made
    made.runtime.close()


def test_two_stages_have_the_two_gpus_for_as_long_as_the_run_lasts_and_status_says_so(piped: Watched) -> None:
    assert ray.available_resources().get("GPU", 0.0) == 0.0, "both are kept for the stages, none is the host's"
    (learner,) = (worker for worker in piped.runtime.workers() if worker.kind == "learner_host")
    assert learner.device == "main-0: 2 GPUs"
    assert learner.text() == f"learner_host {learner.pid} (main-0: 2 GPUs)"
    place = piped.runtime._placement.worker_places("learner-0")["main-0"]
    group = place.group
    assert place.first_bundle == 1
    for _ in range(2):  # installed again, as after a lost stage, the workers find the same GPUs
        piped.runtime.submit(InstallPlayer("main-0"))
        piped.until_all(PlayerInstalled("main-0"))
        assert piped.runtime._placement.worker_places("learner-0")["main-0"].group is group
        assert ray.available_resources().get("GPU", 0.0) == 0.0


def test_a_worker_without_a_device_is_its_kind_and_process() -> None:
    assert WorkerStatus("actor_host", 7).text() == "actor_host 7"
    assert Workers().device is None


def test_actor_hosts_see_no_gpu(ray_cluster: Cluster) -> None:
    class Probe(ActorHostProcess):
        def visible(self) -> str | None:
            import os

            return os.environ.get("CUDA_VISIBLE_DEVICES")

    host = ray.remote(num_cpus=0, num_gpus=0)(Probe).remote(setup_of(), "actor-0")
    try:
        assert ray.get(host.visible.remote(), timeout=60.0) == ""
    finally:
        ray.kill(host)


def test_a_learner_receives_the_device_that_its_players_workers_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its cut into stages is timed and its gradients are compared; the host itself may see another device."""
    told: list[object] = []

    def build(*args: object, stage_device: torch.device | None, **options: object) -> None:
        told.append(stage_device)
        raise StageDiedError("the cluster had no room")

    monkeypatch.setattr("league.hosts.learners.learner_host.build_learner", build)
    setup = dataclasses.replace(setup_of(), learner=TWO_STAGES)
    places = {"main-0": WorkerPlace(cast(PlacementGroup, object()), 1)}
    for player in ("main-0", "main-1"):
        with pytest.raises(StageDiedError):
            player_learner(
                InstallPlayer(player),
                setup,
                spec_of(setup.env),
                dtype=torch.float32,
                workers=_workers(places.get(player)),
            )
    assert told == [torch.device("cuda"), torch.device("cpu")]
