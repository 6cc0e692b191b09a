"""A league whose games are on the learner's device: leases, learning and conservation, as with games on the host."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

from league.agents.acting.on_device import step_graph
from league.agents.learner.build import build_learner
from league.agents.nets.network import build_network
from league.agents.unroll.device_unrolls import on_device
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from league.config.loading import load_config
from league.core.state.assignments import counted_pairs
from league.core.state.events import LeaseFinished
from league.core.state.records import Assignment
from league.envs.registry import spec_of
from league.errors import ConfigError
from league.hosts.device_host import DeviceActorHost
from league.hosts.inprocess import DirectLearnerClient
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.hosts.setup import HostSetup
from tests.agents.learner.learner_cases import weights_in
from tests.agents.pretend_gpu import GPU, pretended_gpu
from tests.league.hosts.host_cases import lease_of, paired, rows_of, setup_of, weights_of
from tests.league.tiny_runs import ONE_PLAYER, events_of, go_on, start, state_of, tiny, write_config

CPU = torch.device("cpu")


def hosts(setup: HostSetup, *, device: torch.device = CPU) -> tuple[DeviceActorHost, SyncLearnerHost]:
    learners = SyncLearnerHost(setup, dtype=torch.float32)
    learners.install(InstallPlayer("main-0"))
    return DeviceActorHost(setup, name="actor-0", dtype=torch.float32, device=device), learners


def test_a_lease_learns_and_its_outcomes_are_its_games() -> None:
    setup = setup_of()
    actor, learners = hosts(setup)
    client = DirectLearnerClient(learners)
    games = decisions = 0
    for lease_id in range(4):
        lease = dataclasses.replace(lease_of(steps=60), lease_id=lease_id)
        frozen = {name: weights_of(setup, seed=9) for name in names_of(lease.assignments) if name != "main-0"}
        answer = actor.play(lease, frozen=frozen, learners=client)
        assert answer.env_steps == 60 * setup.num_envs and answer.outcomes
        games += sum(outcome.games for outcome in answer.outcomes)
        decisions += sum(outcome.decisions for outcome in answer.outcomes)
    (progress,) = learners.progress()
    assert progress.update is not None and progress.progress.version > 3
    # Tic-tac-toe takes 5 to 9 plies; games in flight are not counted yet.
    assert 4 * 60 * setup.num_envs - 9 * setup.num_envs <= decisions <= 4 * 60 * setup.num_envs
    assert decisions / 9 <= games <= decisions / 5
    actor.close()


def test_a_lease_on_a_pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step_graph, "WARM_UP", 10**9)  # it records no graph
    setup = setup_of()
    with pretended_gpu(monkeypatch):
        actor, learners = hosts(setup, device=GPU)
        frozen = {"main-0-1": weights_of(setup, seed=9)}
        lease = lease_of(*paired("main-0", "main-0-1"), steps=60)
        answer = actor.play(lease, frozen=frozen, learners=DirectLearnerClient(learners))
        (progress,) = learners.progress()
        rating = lease_of(*paired("main-0-1", "main-0-1", records=False), home=None, steps=20)
        assert actor.play(rating, frozen=frozen, learners=DirectLearnerClient(learners)).outcomes
    assert {outcome.policies for outcome in answer.outcomes} == {("main-0", "main-0-1"), ("main-0-1", "main-0")}
    assert progress.update is not None and progress.progress.version > 3


def names_of(assignments: tuple[Assignment, ...]) -> set[str]:
    return {policy for assignment in assignments for policy in assignment.policies}


def test_a_lease_with_a_bot_is_played_beside_and_learnt_from() -> None:
    setup = setup_of()
    actor, learners = hosts(setup)
    client = DirectLearnerClient(learners)
    actor.play(dataclasses.replace(lease_of(steps=60), assignments=self_play()), frozen={}, learners=client)
    with_bot = (Assignment(("main-0", "bot:random"), (True, False), 1.0),)
    answer = actor.play(dataclasses.replace(lease_of(steps=60), assignments=with_bot), frozen={}, learners=client)
    assert {outcome.policies for outcome in answer.outcomes} == {("main-0", "bot:random")}
    before = learners.progress()[0].progress.trained_steps
    actor.play(dataclasses.replace(lease_of(steps=60), assignments=self_play()), frozen={}, learners=client)
    assert learners.progress()[0].progress.trained_steps > before
    actor.close()


def self_play() -> tuple[Assignment, ...]:
    return (Assignment(("main-0", "main-0"), (True, True), 1.0),)


def test_rows_of_a_past_self_are_dropped_after_a_reset() -> None:
    setup = setup_of()
    _, learners = hosts(setup)
    learners.reset("main-0", weights_of(setup, seed=3))
    batch = setup.learner.batch_rows
    old = on_device(rows_of(batch, seed=0), CPU)  # of version 0
    old = dataclasses.replace(old, versions=torch.zeros_like(old.versions))
    learners.push_rows("main-0", old)
    assert learners.progress()[0].update is None
    new = dataclasses.replace(old, versions=torch.ones_like(old.versions))
    learners.push_rows("main-0", new)
    assert learners.progress()[0].update is not None


def test_a_reset_begins_new_games() -> None:
    actor, learners = hosts(setup_of())
    client = DirectLearnerClient(learners)
    lease = dataclasses.replace(lease_of(steps=30), assignments=self_play())
    actor.play(lease, frozen={}, learners=client)
    before = actor._arenas["main-0"]
    actor.play(lease, frozen={}, learners=client)
    assert actor._arenas["main-0"] is before
    actor.play(dataclasses.replace(lease, generation=1), frozen={}, learners=client)
    assert actor._arenas["main-0"] is not before


@pytest.mark.parametrize("core", ["none", "lstm"])
def test_an_update_of_rows_on_the_device_is_that_of_the_same_rows_on_the_host(core: str) -> None:
    setup = setup_of()
    spec = spec_of(setup.env)
    network = dataclasses.replace(setup.network, core=core, core_size=8)
    unrolls = UnrollSpec.of(spec, build_network(spec, network, seed=0), unroll_length=setup.learner.unroll_length)
    rows = synthetic_unrolls(unrolls, rows=setup.learner.batch_rows, seed=1)
    config = dataclasses.replace(setup.learner, max_policy_lag=2)
    rows = dataclasses.replace(rows, versions=np.random.default_rng(0).integers(0, 6, rows.versions.shape, np.int32))
    reports, weights = [], []
    for given in (rows, on_device(rows, CPU)):
        learner = build_learner(spec, network, config, seed=0, dtype=torch.float32)
        learner.version = 4
        report = learner.update(given, budget_fraction=0.0)
        assert 0 < report.stale_steps < rows.num_steps and report.lag_max == 4
        reports.append(dataclasses.replace(report, update_s=0.0, waited_s=0.0))
        weights.append(learner.publish().digest())
    assert reports[0] == reports[1] and weights[0] == weights[1]


def test_games_in_the_payoff_are_the_outcomes_reported(tmp_path: Path) -> None:
    start(tmp_path, tiny(actors={"games": "device"}), env_steps=5_000)
    go_on(tmp_path / "run", env_steps=2_000)
    state, expected, games = state_of(tmp_path / "run"), Counter[tuple[int, ...]](), 0
    for event in events_of(tmp_path / "run"):
        for outcome in event.outcomes if isinstance(event, LeaseFinished) else ():
            games += outcome.games
            assert outcome.games == outcome.wins[0][1] + outcome.wins[1][0] + outcome.draws[0][1]
            numbers = [state.population.index[policy] for policy in outcome.policies]
            for i, j in counted_pairs(outcome.policies, state.teams):
                results = (outcome.wins[i][j], outcome.draws[i][j], outcome.wins[j][i])
                for result, count in enumerate(results):
                    expected[numbers[i], numbers[j], i, result] += count
    found = Counter[tuple[int, ...]]()
    payoff = state.payoff
    for home, away, totals in zip(payoff.home.tolist(), payoff.away.tolist(), payoff.totals, strict=True):
        for seat, result in np.ndindex(*totals.shape):
            found[home, away, seat, result] += int(totals[seat, result])
    assert state.totals.games == games > 500
    assert +found == +expected


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"env": {"id": "probe_turns"}},
            "actors.games: probe_turns has no device form; those that have one are connect_",
        ),
        (
            {"runtime": {"kind": "ray"}},
            "runtime.kind: games on the device are played in the learner's process, which kind: ray",
        ),
        ({"actors": {"games": "device", "inference": "central"}}, "actors.inference: games on the device"),
        ({"actors": {"games": "device", "num_splits": 2}}, "actors.num_splits: games on the device"),
        ({"env": {"id": "connect_four", "workers": 2}}, "env.workers: games on the device"),
        ({"learner": {"pipeline": {"replicas": 2}}}, "learner.pipeline: games on the device"),
    ],
)
def test_what_does_not_go_with_games_on_the_device_is_one_sentence(
    tmp_path: Path, changes: dict[str, object], sentence: str
) -> None:
    plain = tiny(actors={"games": "device"}, league=ONE_PLAYER)
    for section, value in changes.items():
        plain[section] = value if section == "env" else {**plain[section], **value}  # type: ignore[dict-item]
    with pytest.raises(ConfigError) as error:
        load_config(write_config(tmp_path, plain))
    assert any(problem.startswith(sentence) for problem in error.value.problems), error.value.problems


def test_weights_that_come_back_act_on_the_device() -> None:
    setup = setup_of()
    actor, learners = hosts(setup)
    lease = dataclasses.replace(lease_of(steps=60), assignments=self_play())
    actor.play(lease, frozen={}, learners=DirectLearnerClient(learners))
    acting = actor._live["main-0"]
    newest = learners.newest("main-0").weights
    assert acting.version == newest.version > 0
    assert weights_in(acting.network, version=0).digest() == newest.digest()  # type: ignore[union-attr]
