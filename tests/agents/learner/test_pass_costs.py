"""Costs of passes: the line through a small and a large pass, and what dear networks change in the settings."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from league.agents.learner import pass_costs as module
from league.agents.learner.pass_costs import LARGE, REPEATS, SMALL, device_act_cost, pass_costs
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.unroll import Unrolls
from league.agents.weights import layout_of
from league.config.auto.measure import network_costs
from league.config.auto.situation import NetworkCosts
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec
from tests.league.config.auto.situations import board_game, settled

IMAGES = EnvSpec(
    "screens", 2, {"screen": ArraySpec((32, 32, 3), "uint8")}, ActionSpec("categorical", 6), (0, 1), False, max_turns=99
)
NUMBERS = EnvSpec(
    "numbers", 2, {"x": ArraySpec((8,), "float32")}, ActionSpec("categorical", 6), (0, 1), True, max_turns=9
)


def test_the_line_goes_through_both_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]

    def takes(batch: Unrolls) -> None:
        now[0] += 0.003 + 2e-5 * batch.valid.size

    def batch(decisions: int) -> Unrolls:
        return _of(decisions)

    found = module._cost(takes, batch, LARGE, lambda: now[0], lambda: module.WORK_S)
    assert found == pytest.approx((0.003, 2e-5))
    assert found.of(LARGE) == pytest.approx(0.003 + LARGE * 2e-5)


def test_a_slow_pass_is_made_once_and_taken_for_all() -> None:
    now, sizes = [0.0], list[int]()

    def takes(batch: Unrolls) -> None:
        sizes.append(batch.valid.size)
        now[0] += 0.01 * batch.valid.size

    assert module._cost(takes, _of, LARGE, lambda: now[0], lambda: module.WORK_S) == pytest.approx((0.0, 0.01))
    assert sizes == [SMALL]


@pytest.mark.parametrize(("num_actions", "large"), [(6, LARGE), (1_000, LARGE), (20_000, 199), (90_000, 2 * SMALL)])
def test_the_large_pass_is_smaller_where_there_are_many_actions(num_actions: int, large: int) -> None:
    assert module.large_of(replace(NUMBERS, actions=ActionSpec("categorical", num_actions))) == large


def _of(decisions: int) -> Unrolls:
    from league.agents.nets.network import build_network
    from league.agents.unroll.synthetic import synthetic_unrolls
    from league.agents.unroll.unroll import UnrollSpec

    network = build_network(NUMBERS, NetworkConfig(hidden=(4,)), seed=0)
    return synthetic_unrolls(UnrollSpec.of(NUMBERS, network, unroll_length=1), rows=decisions, seed=0)


@pytest.mark.parametrize("core", ["none", "lstm"])
def test_costs_are_found_for_every_kind_of_game_and_the_threads_come_back(core: str) -> None:
    threads = torch.get_num_threads()
    config = NetworkConfig(hidden=(16,), core=core, core_size=8)
    act, learn, num_parameters = pass_costs(NUMBERS, config)
    assert num_parameters == layout_of(build_network(NUMBERS, config, seed=1)).size
    assert 0.0 < act.of(LARGE) < learn.of(LARGE)
    assert torch.get_num_threads() == threads


def test_acting_on_a_device_is_timed_after_a_first_pass_that_is_not() -> None:
    """By a clock that goes on by 1/1024 s whenever it is read: twice for each timed pass of both sizes."""
    times = iter(float(number) / 1024 for number in range(100))
    config = NetworkConfig(hidden=(16,), core="lstm", core_size=8)
    cost = device_act_cost(NUMBERS, config, torch.device("cpu"), clock=lambda: next(times))
    assert cost == (1 / 1024, 0.0)
    assert next(times) == 2 * 2 * (REPEATS + 1) / 1024


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.usefixtures("no_gpu")
def test_only_a_dear_network_is_taken_by_the_clock() -> None:
    cheap = network_costs(NUMBERS, NetworkConfig(hidden=(16,)))
    assert 0.0 < cheap.weights_mib < 0.1
    assert replace(cheap, weights_mib=0.0) == NetworkCosts()
    dear = network_costs(IMAGES, NetworkConfig(encoder="impala_resnet"))
    assert dear.learn_s > 20 * NetworkCosts().learn_s
    assert dear.act_s > 20 * NetworkCosts().act_s
    assert dear.update_call_s >= NetworkCosts().update_call_s


@pytest.mark.usefixtures("no_gpu")
def test_a_network_that_cannot_be_made_counts_as_nominal() -> None:
    assert network_costs(NUMBERS, NetworkConfig(encoder="nowhere:Nothing")) == NetworkCosts()


def test_settings_of_a_dear_network() -> None:
    """Pictures at 5 ms a decision: one pass over every row, leases of seconds, and updates enough in the budget."""
    slow_game = {"costs": None}
    dear = NetworkCosts(act_s=2e-3, learn_s=5e-3)
    cheap, _ = settled(board_game(**slow_game))
    found, why = settled(board_game(**slow_game), network=dear)
    assert found.actors.num_envs < cheap.actors.num_envs
    decisions = 0.7 * 300.0 / 7e-3
    rows = found.learner.batch_rows * found.learner.unroll_length
    assert decisions / rows > 50, why["learner.batch_rows"]
    lease_s = found.actors.num_envs * found.league.lease_steps * 7e-3
    assert lease_s < 30.0, why["league.lease_steps"]
