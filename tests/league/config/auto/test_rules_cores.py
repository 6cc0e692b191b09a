"""The rules of the cores of one machine, on made-up facts: threads of the learner, and actor hosts."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from league.config.auto.situation import NetworkCosts
from league.config.run_config import BudgetConfig
from league.envs.facts.game_facts import GameFacts
from tests.league.config.auto.situations import FAST, SLOW, board_game, one_seat, settled, spec

HOUR = BudgetConfig(seconds=3600.0)
IMAGES = NetworkCosts(act_call_s=1e-3, act_s=2e-4, update_call_s=2e-2, learn_s=8e-4)
"""Of a convolutional network on one core."""
EMULATOR = replace(FAST, game_s=2e-4)


def chosen(game: GameFacts, cores: int, **changes: Any) -> tuple[int, int, dict[str, str]]:
    """Threads, actor hosts and all reasons for an hour on a machine with so many cores."""
    given = changes.pop("given", None)
    config, reasons = settled(game, given, **{"budget": HOUR, "cores": cores, "memory_mib": 1e6, **changes})
    return config.learner.pipeline.threads, config.runtime.actor_hosts, reasons


@pytest.mark.parametrize(("cores", "hosts"), [(2, 1), (4, 2), (8, 2), (16, 2), (64, 2)])
def test_a_small_network_has_work_for_one_thread_and_no_more_hosts_than_it_keeps_up_with(
    cores: int, hosts: int
) -> None:
    """A decision of a fast board game costs three times as much to learn from as to make."""
    found = chosen(board_game(), cores)
    assert found[:2] == (1, hosts)
    wants = f"learning needs {0.7457 * cores:.1f} of {cores} cores"
    assert found[2]["learner.pipeline.threads"].startswith(wants)
    assert found[2]["learner.pipeline.threads"].endswith(", and an update of 2,048 decisions has work for 1")
    kept_up = {2: "2 cores, one of them learns"}
    assert found[2]["runtime.actor_hosts"] == kept_up.get(cores, "the learner keeps up with about 0.3")


def test_four_times_the_batch_has_work_for_several_threads() -> None:
    assert chosen(board_game(), 16, given={"learner": {"batch_rows": 512}})[:2] == (4, 7)


@pytest.mark.parametrize(
    ("cores", "threads", "hosts"),
    [(2, 2, 1), (4, 4, 3), (8, 8, 7), (16, 8, 15), (32, 8, 22)],
)
def test_learning_from_images_has_work_for_several_threads(cores: int, threads: int, hosts: int) -> None:
    game = board_game(costs=EMULATOR)
    found = chosen(game, cores, network=IMAGES)
    assert found[:2] == (threads, hosts)
    keeps_up = {32: "the learner keeps up with about 4.3"}
    assert found[2]["runtime.actor_hosts"] == keeps_up.get(cores, f"{cores} cores, one of them learns")


@pytest.mark.parametrize("cores", [2, 4, 8, 16, 64])
def test_where_acting_takes_nearly_all_the_time_one_thread_learns_and_every_other_core_acts(cores: int) -> None:
    threads, hosts, reasons = chosen(board_game(costs=replace(SLOW, make_s=1e-3)), cores)
    assert (threads, hosts) == (1, cores - 1)
    assert reasons["learner.pipeline.threads"].startswith("learning needs 0.")


def test_several_epochs_of_a_lone_seat_count_as_often_as_they_are_learnt_from() -> None:
    once = chosen(one_seat(), 4, given={"learner": {"algorithm": {"kind": "ppo", "epochs": 1}}})
    often = chosen(one_seat(), 4, given={"learner": {"algorithm": {"kind": "ppo", "epochs": 8}}})
    wants = [float(found[2]["learner.pipeline.threads"].split()[2]) for found in (once, often)]
    assert wants[0] < wants[1] < 4.0
    assert often[1] <= once[1]


def test_memory_bounds_the_hosts() -> None:
    game = board_game(costs=EMULATOR)
    threads, hosts, reasons = chosen(game, 64, network=IMAGES, memory_mib=8192.0)
    assert (threads, hosts) == (8, 15)
    assert reasons["runtime.actor_hosts"] == "each host takes 251 MiB of memory"
    assert chosen(game, 64, network=IMAGES, memory_mib=100.0)[1] == 1


@pytest.mark.parametrize("make_mib", [0.01, 1.0, 50.0, 500.0])
@pytest.mark.parametrize("roles", [0, 1, 3])
@pytest.mark.parametrize("shape", [(84,), (84, 84, 4)])
def test_all_games_of_all_hosts_fit_into_half_of_the_memory(
    make_mib: float, roles: int, shape: tuple[int, ...]
) -> None:
    """Each host holds games, and the unrolls of their seats, for every learning player and for rating matches."""
    game = board_game(costs=replace(SLOW, make_mib=make_mib, make_s=1e-4), spec=spec(shape=shape))
    given = {"league": {"players": [{"role": "main_agent", "name": f"p{i}"} for i in range(roles)]}} if roles else None
    situation = {"cores": 16, "memory_mib": 32_768.0, "budget": HOUR}
    config, _ = settled(game, given, **situation)
    arenas = sum(player.count for player in config.league.players) + 1
    unroll_mib = 2 * (config.learner.unroll_length + 1) * 4 * math.prod(shape) / 2**20
    host_mib = 250.0 + arenas * config.actors.num_envs * (make_mib + unroll_mib)
    assert host_mib * config.runtime.actor_hosts <= 0.5 * 32_768


def test_threads_divide_the_rows_of_a_batch() -> None:
    given = {"learner": {"batch_rows": 130, "unroll_length": 16}}
    assert chosen(board_game(costs=EMULATOR), 8, given=given, network=IMAGES)[0] == 5


@pytest.mark.parametrize(
    ("given", "changes", "reason"),
    [
        ({"runtime": {"kind": "inprocess"}}, {}, "one process acts and learns in turns"),
        ({}, {"cores": 1}, "one process acts and learns in turns"),
        ({}, {"budget": BudgetConfig(core_seconds=900.0)}, "one process acts and learns in turns"),
        ({}, {"cluster": "10.0.0.1:6379"}, "on a cluster other cores of its machine act"),
        ({"runtime": {"actor_hosts": 0, "address": "head:6379"}}, {}, "on a cluster other cores of its machine act"),
        ({}, {"network": replace(IMAGES, learns_on_gpu=True)}, "it learns on a GPU"),
        ({"learner": {"pipeline": {"replicas": 2}}}, {}, "learner.pipeline.replicas is set"),
        ({"learner": {"microbatches": 2}}, {}, "learner.microbatches is set"),
        ({"learner": {"compile_mode": "default"}}, {}, "learner.compile_mode is set"),
        ({"learner": {"pipeline": {"backend": "single"}}}, {}, "learner.pipeline.backend is set"),
    ],
)
def test_one_thread_where_others_would_take_cores_or_have_no_rows(
    given: dict[str, Any], changes: dict[str, Any], reason: str
) -> None:
    threads, _, reasons = chosen(board_game(), changes.pop("cores", 16), given=given, **changes)
    assert (threads, reasons["learner.pipeline.threads"]) == (1, reason)


def test_hosts_follow_a_cluster_and_feed_a_gpu_with_every_core() -> None:
    assert chosen(board_game(), 16, cluster="10.0.0.1:6379")[1] == 0
    assert chosen(board_game(), 16, network=NetworkCosts(learns_on_gpu=True))[1] == 15
    assert chosen(board_game(), 16, given={"runtime": {"learner_hosts": 2}})[1] == 4


def test_what_is_stated_stays() -> None:
    given = {"runtime": {"actor_hosts": 5}, "learner": {"pipeline": {"threads": 3}, "batch_rows": 96}}
    assert chosen(board_game(), 8, given=given)[:2] == (3, 5)
