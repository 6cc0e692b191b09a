"""The rules of processes and machines, on made-up facts: hosts, child processes, central inference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from league.config.auto.situation import NetworkCosts
from league.config.run_config import BudgetConfig
from tests.league.config.auto.situations import SLOW, board_game, settled, spec


def test_central_inference_where_a_gpu_makes_a_dear_decision_much_cheaper() -> None:
    ray: dict[str, object] = {"runtime": {"kind": "ray", "actor_hosts": 2, "address": "local"}}
    dear = NetworkCosts(act_s=1e-3, gpu_act_s=2e-5)
    found, why = settled(board_game(), ray, network=dear)
    assert found.actors.inference == "central"
    assert "1,100 us on a core" in why["actors.inference"]
    # 20 us a decision at the GPU, for each of 30 hosts, is not half of 1,000 us.
    many = {"runtime": {"kind": "ray", "actor_hosts": 30, "address": "local"}}
    for given, changes in (
        (ray, {"network": replace(dear, gpu_act_s=None)}),
        (ray, {"network": replace(dear, act_s=3e-5)}),
        (many, {"network": dear}),
        (ray, {"network": dear, "is_exact": True}),
        ({"runtime": {"kind": "inprocess"}}, {"network": dear}),
        ({"runtime": {"kind": "ray"}}, {"network": dear, "cluster": "10.0.0.1:6379"}),
    ):
        assert settled(board_game(), given, **changes)[0].actors.inference == "local", (given, changes)
    assert settled(board_game(), {**ray, "actors": {"inference": "local"}}, network=dear)[0].actors.inference == "local"


def test_child_processes_where_cores_are_free_and_steps_are_dear() -> None:
    wall, few_hosts = {"budget": BudgetConfig(seconds=20.0), "cores": 4}, {"runtime": {"kind": "inprocess"}}
    config, reasons = settled(board_game(costs=SLOW), few_hosts, **wall)
    assert config.env.workers == 4
    assert config.actors.num_splits == 2
    assert config.evaluation.bots == ("random",)
    assert reasons["evaluation.bots"] == "games in child processes cannot be copied for search"
    assert settled(board_game(), few_hosts, **wall)[0].env.workers == 0
    assert settled(board_game(), few_hosts, **wall)[0].actors.num_splits == 1
    assert settled(board_game(costs=SLOW), few_hosts, **{**wall, "cores": 1})[0].env.workers == 0
    assert settled(board_game(costs=SLOW), few_hosts, **wall, is_exact=True)[0].env.workers == 0
    assert settled(board_game(costs=SLOW), few_hosts, budget=BudgetConfig(core_seconds=300.0))[0].env.workers == 0
    ray = {"runtime": {"kind": "ray", "actor_hosts": 1}}
    assert settled(board_game(costs=SLOW), ray, **wall)[0].env.workers == 2
    assert settled(board_game(costs=SLOW), {"runtime": {"kind": "ray"}}, **wall)[0].env.workers == 0


@pytest.mark.parametrize(
    ("budget", "cores", "kind"),
    [
        (BudgetConfig(env_steps=1000), 2, "inprocess"),
        (BudgetConfig(core_seconds=9000.0), 2, "inprocess"),
        (BudgetConfig(seconds=30.0), 2, "inprocess"),
        (BudgetConfig(seconds=600.0), 2, "ray"),
        (BudgetConfig(seconds=600.0), 1, "inprocess"),
    ],
)
def test_hosts_of_their_own_where_they_pay_off(budget: BudgetConfig, cores: int, kind: str) -> None:
    assert settled(board_game(), budget=budget, cores=cores)[0].runtime.kind == kind


def test_games_on_the_device_share_the_learners_process() -> None:
    long, on_device = BudgetConfig(seconds=600.0), {"actors": {"games": "device", "num_envs": 32768}}
    config, reasons = settled(board_game(costs=SLOW), on_device, budget=long, cores=16)
    assert (config.runtime.kind, config.actors.inference, config.actors.num_splits) == ("inprocess", "local", 1)
    assert config.env.workers == 0
    assert reasons["runtime.kind"] == "games on the device share the learner's process"


def test_hosts_on_the_cluster_that_ray_address_names_unless_the_run_repeats_exactly() -> None:
    short = BudgetConfig(seconds=10.0)
    config, reasons = settled(board_game(), budget=short, cluster="head:6379")
    assert (config.runtime.kind, config.runtime.address) == ("ray", "auto")
    assert reasons["runtime.kind"] == "RAY_ADDRESS names the cluster head:6379"
    assert (config.runtime.actor_hosts, reasons["runtime.actor_hosts"]) == (
        0,
        "they follow the machines of the cluster",
    )
    there = settled(board_game(), {"runtime": {"address": "head:6379"}}, budget=short)[0]
    assert (there.runtime.kind, there.runtime.actor_hosts) == ("ray", 0)
    own = {"runtime": {"address": "auto", "kind": "inprocess"}}
    assert settled(board_game(), own, budget=short, cluster="head:6379")[0].runtime.kind == "inprocess"
    steps = BudgetConfig(env_steps=1000)
    assert settled(board_game(), budget=steps, is_exact=True)[0].runtime.kind == "inprocess"


@pytest.mark.parametrize(
    ("weights_mib", "memory_mib", "room", "reason"),
    [
        (0.1, 1e5, 256, "the weights take 0.1 MiB"),
        (20.0, 1e5, 2 * 2 * (14 + 2) * 20, "14 actor hosts may each hold other weights, of 20 MiB"),
        (600.0, 1e5, 25_000, "at most 25% of this machine's memory"),
    ],
)
def test_the_object_store_has_room_for_weights_of_its_own_on_every_host(
    weights_mib: float, memory_mib: float, room: int, reason: str
) -> None:
    given = {"runtime": {"kind": "ray", "actor_hosts": 14, "address": "local"}}
    large, wall = NetworkCosts(weights_mib=weights_mib), BudgetConfig(seconds=3600.0)
    found, why = settled(board_game(), given, network=large, memory_mib=memory_mib, budget=wall)
    assert len(found.league.players) == 2
    assert (found.runtime.object_store_mb, why["runtime.object_store_mb"]) == (room, reason)
    alone = {**given, "league": {"players": [{"role": "main_agent", "count": 3}]}}
    three = settled(board_game(), alone, network=large, memory_mib=1e9, budget=wall)[0]
    assert three.runtime.object_store_mb == max(256, round(2 * 3 * 16 * weights_mib))
    for elsewhere in ({"runtime": {"kind": "inprocess"}}, {"runtime": {"kind": "ray", "address": "10.0.0.1:6379"}}):
        assert "runtime.object_store_mb" not in settled(board_game(), elsewhere, network=large, budget=wall)[1]


@pytest.mark.parametrize("game_us", [5.0, 10.0, 20.0])
def test_near_the_cost_that_pays_the_clock_does_not_decide(game_us: float) -> None:
    costs = replace(SLOW, call_s=0.0, game_s=game_us * 1e-6)
    given = {"runtime": {"kind": "inprocess"}, "actors": {"num_envs": 150}}
    wall = {"budget": BudgetConfig(seconds=20.0), "cores": 4}
    own = board_game(costs=costs, spec=spec(env_id="moves.py:make"))
    published = board_game(costs=costs, spec=spec(env_id="pettingzoo:classic/chess_v6"))
    assert settled(own, given, **wall)[0].env.workers == (0 if game_us < 6 else 4)
    assert settled(published, given, **wall)[0].env.workers == 0


def test_a_game_that_reaches_into_its_process_has_one_of_its_own() -> None:
    wild = board_game(liberties=("the current folder",), spec=spec(env_id="moves.py:make"))
    found, why = settled(wild, {"runtime": {"kind": "inprocess"}}, cores=1, budget=BudgetConfig(core_seconds=300.0))
    assert found.env.workers == 1 and "the current folder" in why["env.workers"]
    assert settled(wild, {"runtime": {"kind": "inprocess"}}, is_exact=True)[0].env.workers == 0


def test_leases_are_longer_where_many_hosts_ask_for_them() -> None:
    def steps(hosts: int, seconds: float = 36_000.0) -> int:
        ray = {"runtime": {"kind": "ray", "actor_hosts": hosts, "address": "10.0.0.1:6379"}}
        return settled(board_game(), ray, budget=BudgetConfig(seconds=seconds))[0].league.lease_steps

    assert steps(2) == steps(63) == 128
    assert 128 < steps(128) == steps(1_000), "four seconds of this game"
    assert steps(1_000, seconds=60.0) <= 128, "opponents change in a short budget too"
