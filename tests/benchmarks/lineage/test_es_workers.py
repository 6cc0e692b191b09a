"""Simulated workers of evolution strategies: exact where nothing costs time or varies, and plausible where it does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.lineage.es_workers import ESCosts, efficiency, simulate_es

FREE = ESCosts(episode_s=1.0, episodes=64, spread=0.0, send_s=0.0, take_s=0.0, step_s=0.0, rebuild_s=0.0)


@pytest.mark.parametrize("workers", [1, 8, 64])
def test_without_costs_scaling_is_linear(workers: int) -> None:
    assert simulate_es(FREE, workers=workers, updates=5, seed=0).seconds == pytest.approx(64 / workers)
    assert efficiency(FREE, workers=workers, beside=1) == pytest.approx(1.0)


def test_more_workers_than_episodes_do_not_help() -> None:
    assert simulate_es(FREE, workers=128, updates=5, seed=0).seconds == pytest.approx(1.0)
    assert efficiency(FREE, workers=128, beside=64) == pytest.approx(0.5)


def test_every_cost_is_paid_once_an_update() -> None:
    costs = replace(FREE, send_s=0.5, take_s=0.001, step_s=0.25, rebuild_s=0.125)
    # one worker: 64 episodes, the last one is taken in, the step, both ways, and the first update has no step before it
    seconds = simulate_es(costs, workers=1, updates=4, seed=0).seconds
    assert seconds == pytest.approx(64 + 0.5 + 0.001 + 0.25 + 0.5 + 0.125 * 3 / 4)


def test_episodes_on_their_way_are_late_and_scaling_falls_short() -> None:
    costs = ESCosts(episode_s=1.0, episodes=1_000, send_s=0.05)
    scaling = simulate_es(costs, workers=200, updates=5, seed=1)
    assert 0.0 < scaling.late < 0.1 and 5.0 < scaling.seconds < 7.0
    assert efficiency(costs, workers=200, beside=10) < efficiency(costs, workers=50, beside=10) < 1.0
