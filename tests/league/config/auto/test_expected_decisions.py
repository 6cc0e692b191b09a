"""Decisions expected in a budget: what other programs leave of a machine, and how settings use the number."""

from __future__ import annotations

from dataclasses import replace

import pytest

from league.config.auto.measure import core_pace, core_share
from league.config.auto.situation import NetworkCosts, Situation
from league.config.run_config import BudgetConfig
from league.envs.facts.core_speed import WORK_S
from league.envs.text.number_text import number_text
from tests.league.config.auto.situations import FAST, board_game, poker, settled

PYTHON_GAME = board_game(costs=replace(FAST, call_s=6e-5, game_s=5e-5))


class SharedCore:
    """Clocks of a thread that gets `share` of a core, 10 ms at a time."""

    def __init__(self, share: float) -> None:
        self.share, self.wall_s, self.processor_s = share, 0.0, 0.0

    def work(self) -> None:
        self.processor_s += 0.01
        self.wall_s += 0.01 / self.share


@pytest.mark.parametrize(("share", "told"), [(1.0, 1.0), (0.9, 1.0), (0.7, 0.707), (0.5, 0.5), (0.18, 0.177)])
def test_a_busy_thread_tells_what_other_programs_leave_of_a_core(share: float, told: float) -> None:
    core = SharedCore(share)
    found = core_share(0.5, wall=lambda: core.wall_s, processor=lambda: core.processor_s, work=core.work)
    assert found == pytest.approx(told, rel=0.01)


def test_a_limit_of_wall_time_holds_what_other_programs_leave_and_one_of_core_seconds_all() -> None:
    wall, core = BudgetConfig(seconds=60.0), BudgetConfig(core_seconds=60.0)
    free, shared = (Situation(PYTHON_GAME, wall, cores=4, core_share=share) for share in (1.0, 0.25))
    assert shared.decisions(64) == pytest.approx(free.decisions(64) / 4.0)
    assert Situation(PYTHON_GAME, core, core_share=0.25).decisions(64) == Situation(PYTHON_GAME, core).decisions(64)


def test_entropy_is_chosen_for_decisions_that_are_learnt_from_as_often_as_the_run_does() -> None:
    """Four epochs on small batches cost more than one on large ones, which the estimate left out: a fourth was made."""
    found, reasons = settled(PYTHON_GAME, budget=BudgetConfig(core_seconds=600.0))
    epochs = found.learner.algorithm["epochs"]  # type: ignore[index]
    assert epochs > 1
    situation = Situation(PYTHON_GAME, BudgetConfig(core_seconds=600.0))
    settings = {"epochs": epochs, "batch": found.learner.batch_rows * found.learner.unroll_length}
    least = situation.least_decisions(found.actors.num_envs, **settings)
    assert f"at least {number_text(least, 2)} decisions" in reasons["learner.entropy_cost"]
    expected = situation.decisions(found.actors.num_envs, **settings)
    assert found.runtime.expected_decisions == pytest.approx(expected, rel=0.06)
    assert found.learner.entropy_cost_end == pytest.approx(0.25 * found.learner.entropy_cost, rel=0.01)


@pytest.mark.parametrize("given", [{"learner": {"entropy_cost": 0.1}}, {}])
def test_nothing_is_expected_where_the_entropy_cost_rests_on_no_estimate(given: dict[str, object]) -> None:
    exact = settled(PYTHON_GAME, given, budget=BudgetConfig(env_steps=100_000), is_exact=True)[0]
    mixed = settled(poker(), given)[0]
    assert exact.runtime.expected_decisions == mixed.runtime.expected_decisions == 0
    assert bool(settled(PYTHON_GAME, given)[0].runtime.expected_decisions) == (not given)


@pytest.mark.parametrize(("pace", "told"), [(1.0, 1.0), (1.3, 1.41), (2.1, 2.0), (0.7, 0.71), (100.0, 8.0)])
def test_fewer_decisions_are_expected_of_a_slow_core(pace: float, told: float) -> None:
    """Costs are told at the speed of a core of 2024; a budget is spent on this one."""
    found = core_pace(work=lambda: pace * WORK_S)
    assert found == pytest.approx(told, rel=0.01)
    budget = BudgetConfig(core_seconds=60.0)
    usual, slow = Situation(PYTHON_GAME, budget), Situation(PYTHON_GAME, budget, core_pace=found)
    assert slow.decisions(64) == pytest.approx(usual.decisions(64) / found)
    assert slow.least_decisions(64) == usual.least_decisions(64), "what settings go by does not depend on the moment"


def test_dear_calls_of_a_network_leave_fewer_decisions_and_the_same_settings() -> None:
    """An update that takes 3 ms here, not the 1.2 ms of the machine on which the share of calls was found."""
    budget = BudgetConfig(core_seconds=60.0)
    here = NetworkCosts(timed_act_call_s=5e-4, timed_update_call_s=3e-3)
    usual, slow = Situation(board_game(), budget), Situation(board_game(), budget, network=here)
    per_decision = [0.7 * 60.0 / situation.decisions(64, batch=256) for situation in (usual, slow)]
    calls_s = 5e-4 / 64 + 3e-3 / 256
    assert per_decision[1] - per_decision[0] == pytest.approx(0.6 * calls_s, rel=0.01)
    assert slow.least_decisions(64) == usual.least_decisions(64)
