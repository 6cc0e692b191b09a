"""The composition bound: its arithmetic, and that each part is timed on legal, learnable input."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from benchmarks.throughput import opponents, roofline
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.envs.protocol import EnvConfig
from league.envs.registry import make

TINY = roofline.Bench(
    EnvConfig("connect_four"), NetworkConfig(hidden=(8,)), LearnerConfig(unroll_length=4, batch_rows=8), (8,), 0.01
)


def test_bound_adds_the_time_of_the_parts():
    parts = roofline.Parts(env=100.0, forward=50.0, update=25.0, codec=1.0)
    assert parts.bound == pytest.approx(1.0 / (0.01 + 0.02 + 0.04))


def test_plies_that_nobody_learns_from_cost_no_update():
    parts = roofline.Parts(env=100.0, forward=50.0, update=25.0, codec=1.0)
    assert parts.bound_learning(0.5) == pytest.approx(1.0 / (0.01 + 0.02 + 0.02))


def test_opponents_that_cost_nothing_leave_a_run_its_speed():
    """Half of the plies are learnt from: acting for all of them, recording, codec and update for half."""
    parts = roofline.RunParts(acting=100.0, recording=80.0, update=25.0, codec=200.0)
    assert parts.plies(1.0) == pytest.approx(1.0 / (1 / 80 + 1 / 200 + 1 / 25))
    assert parts.plies(0.0) == pytest.approx(100.0)
    assert parts.plies(0.5) == pytest.approx(2.0 / (1.0 / parts.plies(0.0) + 1.0 / parts.plies(1.0)))


def test_parts_of_a_run_are_taken_in_its_own_sizes(monkeypatch: pytest.MonkeyPatch):
    sizes, run = [], roofline.Arena.run

    def spy(self, assignments, policies, *, steps):
        sizes.append((self.num_envs, assignments[0].records))
        return run(self, assignments, policies, steps=steps)

    monkeypatch.setattr(roofline, "update_rate", lambda bench, unrolls, *, dtype: float(unrolls.num_rows))
    monkeypatch.setattr(roofline.Arena, "run", spy)
    found = roofline.measure_run_parts(TINY, num_envs=6, dtype=torch.float32)
    assert found.update == TINY.learner.batch_rows
    assert {records for num_envs, records in sizes if num_envs == 6} == {(False, False), (True, True)}


def test_a_ply_of_seats_that_act_at_once_holds_several_decisions():
    parts = roofline.Parts(env=100.0, forward=50.0, update=25.0, codec=1.0, decisions=4.0)
    assert parts.bound == pytest.approx(1.0 / (0.01 + 4 * 0.02 + 4 * 0.04))
    run = roofline.RunParts(acting=100.0, recording=80.0, update=25.0, codec=200.0, decisions=4.0)
    assert run.plies(4.0) == pytest.approx(1.0 / (1 / 80 + 4 / 200 + 4 / 25))
    both = replace(TINY, env=EnvConfig("rock_paper_scissors"))
    assert roofline.decisions_of_ply(both) == 2.0
    assert roofline.decisions_of_ply(TINY) == 1.0


def test_median_is_taken_of_every_part_by_itself():
    found = roofline.middle_of([roofline.Parts(1, 9, 5, 0), roofline.Parts(2, 8, 4, 0), roofline.Parts(3, 7, 6, 9)])
    assert found == roofline.Parts(2, 8, 5, 0)


def test_random_play_is_legal():
    env = make(EnvConfig("connect_four"), num_envs=16)
    turn, rng = env.reset(0), np.random.default_rng(0)
    for _ in range(60):
        actions = roofline.random_actions(env.spec, turn, rng)
        assert turn.action_mask is not None
        assert turn.action_mask[np.arange(16), actions].all()
        turn = env.step(actions)


def test_warm_up_calls_are_not_timed():
    clock, calls = iter([10.0, 10.5, 11.0]), []
    rate = roofline.calls_per_core_second(lambda: calls.append(1), seconds=1.0, clock=lambda: next(clock))
    assert rate == pytest.approx(2.0)
    assert len(calls) == roofline.WARM_CALLS + 2


def test_ready_batch_is_whole_and_of_one_version():
    unrolls = roofline.ready_unrolls(TINY, rows=20)
    assert unrolls.num_rows == 20
    assert unrolls.num_steps == 20 * 4
    assert not unrolls.versions.any()


def test_a_ready_batch_never_grows_too_old_to_be_learnt_from(monkeypatch: pytest.MonkeyPatch):
    build, reports = roofline.build_learner, []

    def far_ahead(*args, **settings):
        learner = build(*args, **settings)
        learner.version = 1_000_000
        return learner

    monkeypatch.setattr(roofline, "build_learner", far_ahead)
    monkeypatch.setattr(roofline, "calls_per_core_second", lambda call, *, seconds: reports.append(call()) or 1.0)
    assert roofline.update_rate(TINY, roofline.ready_unrolls(TINY, rows=8), dtype=torch.float32) == 8 * 4
    assert reports[0].steps == 8 * 4


def test_every_opponent_meets_home_from_both_seats(monkeypatch: pytest.MonkeyPatch):
    met = set()
    run = opponents.Arena.run

    def spy(self, assignments, policies, *, steps):
        met.update((assignment.policies, assignment.records) for assignment in assignments)
        return run(self, assignments, policies, steps=steps)

    monkeypatch.setattr(opponents.Arena, "run", spy)
    assert opponents.opponents_rate(TINY, opponents=2, num_envs=8, seed=0) > 0
    assert met == {
        (("home", "frozen-0"), (True, False)),
        (("frozen-0", "home"), (False, True)),
        (("home", "frozen-1"), (True, False)),
        (("frozen-1", "home"), (False, True)),
    }


def test_the_timed_learner_has_the_settings_of_the_run(monkeypatch: pytest.MonkeyPatch):
    build, configs = roofline.build_learner, []

    def noted(spec, network, config, **settings):
        configs.append(config)
        return build(spec, network, config, **settings)

    monkeypatch.setattr(roofline, "build_learner", noted)
    learner = replace(TINY.learner, entropy_cost=0.3, target_every=7)
    bench = replace(TINY, learner=learner)
    roofline.update_rate(bench, roofline.ready_unrolls(bench, rows=8), dtype=torch.float32)
    assert configs == [replace(learner, batch_rows=8, max_policy_lag=roofline.FOREVER)]
