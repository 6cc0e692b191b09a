"""Real worker processes: the same gradients and updates as one process, and what happens when one is lost."""

from __future__ import annotations

import dataclasses
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from multiprocessing.connection import Connection

import numpy as np
import pytest
import torch

from league.agents.learner.build import build_learner, build_updater
from league.agents.learner.errors import GradientCheckError, StageHungError
from league.agents.learner.learner import Learner
from league.agents.learner.workers.worker import NetworkPlan, Save, WorkerSetup
from league.agents.learner.workers.worker_group import ProcessWorkerGroup
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvSpec
from league.envs.workers import child_endings
from tests.agents.learner.learner_cases import (
    BOARD_GAME,
    COMMANDS,
    CONTROL,
    ENTITIES,
    LSTM,
    MLP,
    small_config,
    unrolls_of,
)

pytestmark = pytest.mark.xdist_group("forked workers")  # they share the server

DEEP = NetworkConfig(hidden=(12, 12), core="lstm", core_size=6)

SPREADS = {
    "three stages, gpipe, box actions": (CONTROL, LSTM, {"stages": 3, "microbatches": 2, "schedule": "gpipe"}),
    "four stages, 1f1b, entities and parts": (
        COMMANDS,
        ENTITIES,
        {"stages": 4, "microbatches": 6, "action_groups": ((0,), (1, 2))},
    ),
    "four stages on two workers, interleaved": (
        BOARD_GAME,
        DEEP,
        {"stages": 4, "microbatches": 4, "schedule": "interleaved"},
    ),
    "two replicas": (BOARD_GAME, LSTM, {"replicas": 2, "microbatches": 3}),
    "two replicas of two stages, ppo": (
        BOARD_GAME,
        MLP,
        {"replicas": 2, "stages": 2, "microbatches": 3, "algorithm": "ppo", "epochs": 2},
    ),
    "two stages, popart": (
        BOARD_GAME,
        dataclasses.replace(LSTM, value_output="popart"),
        {"stages": 2, "microbatches": 2, "value_normalisation": "popart", "value_rate": 0.2},
    ),
    "two stages, appo with magnet": (
        BOARD_GAME,
        LSTM,
        {"stages": 2, "microbatches": 2, "algorithm": "appo", "magnet_cost": 0.1},
    ),
}


def learner_of(spec: EnvSpec, network: NetworkConfig, **changes: object) -> Learner:
    return build_learner(spec, network, small_config(stage_timeout_s=20.0, **changes), seed=1, dtype=torch.float32)


@pytest.mark.parametrize("name", list(SPREADS))
def test_spread_learner_makes_the_same_updates_as_one_process(name) -> None:
    spec, network_config, changes = SPREADS[name]
    network = build_network(spec, network_config, seed=1)
    spreading = {"stages", "microbatches", "replicas", "schedule"}
    alike = {key: value for key, value in changes.items() if key not in spreading}
    single, spread = learner_of(spec, network_config, **alike), learner_of(spec, network_config, **changes)
    try:
        for seed in range(4):
            unrolls = unrolls_of(spec, network, rows=12, steps=5, seed=seed)
            expected, found = (learner.update(unrolls, budget_fraction=0.1) for learner in (single, spread))
            assert found.steps == expected.steps
            assert found.loss_policy == pytest.approx(expected.loss_policy, rel=1e-4, abs=1e-5)
            assert found.gradient_norm == pytest.approx(expected.gradient_norm, rel=1e-4)
        np.testing.assert_allclose(spread.publish().vector, single.publish().vector, rtol=1e-3, atol=2e-5)
        saved = spread.save()
        alone = learner_of(spec, network_config, **alike)
        alone.load(saved)
        for key, array in alone.save().items():
            np.testing.assert_array_equal(array, saved[key], err_msg=f"{key} depends on the number of stages")
    finally:
        spread.close()
        spread.close()


def test_group_with_wrong_gradients_is_refused_at_the_start_and_leaves_nothing_running() -> None:
    plan = NetworkPlan(BOARD_GAME, MLP, seed=1, builder="tests.agents.learner.learner_cases:build_spoilt")
    worker_groups = []

    def launch(setups: Sequence[WorkerSetup]) -> ProcessWorkerGroup:
        worker_groups.append(ProcessWorkerGroup(setups))
        worker_groups.extend(worker_groups[0]._processes)
        return worker_groups[0]

    config = small_config(replicas=2, stage_timeout_s=20.0)
    with pytest.raises(GradientCheckError, match=r"encoder_0.*differs from plain autograd's by 1\.0e\+00"):
        build_updater(plan, config, dtype=torch.float32, launcher=launch)
    assert len(worker_groups) == 3 and all(process.poll() is not None for process in worker_groups[1:])


def test_worker_ends_with_its_parent_whatever_it_is_doing() -> None:
    ours, theirs = socket.socketpair()
    lifeline, watched = socket.socketpair()
    command = [
        sys.executable,
        "-m",
        "league.agents.learner.workers.worker_process",
        str(theirs.fileno()),
        str(watched.fileno()),
    ]
    process = subprocess.Popen(command, pass_fds=(theirs.fileno(), watched.fileno()))
    theirs.close()
    watched.close()
    lifeline.close()
    assert process.wait(timeout=60.0) == 1
    ours.close()


def test_a_worker_that_is_killed_and_does_not_end_leaves_no_call_behind(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    killed: list[subprocess.Popen[bytes]] = []
    really_kill = subprocess.Popen.kill

    def start_silent(group: ProcessWorkerGroup, setup: WorkerSetup) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-S", "-c", "import time; time.sleep(600)"]
            group._processes.append(subprocess.Popen(command, pass_fds=(theirs.fileno(),)))
        group._connections.append(Connection(ours.detach()))

    def kill_in_vain(process: subprocess.Popen[bytes]) -> None:
        killed.append(process)

    monkeypatch.setattr(ProcessWorkerGroup, "_start", start_silent)
    monkeypatch.setattr(subprocess.Popen, "kill", kill_in_vain)
    monkeypatch.setattr(child_endings, "KILLED_S", 0.05)
    plan = NetworkPlan(BOARD_GAME, MLP, seed=1)
    group = ProcessWorkerGroup([WorkerSetup(plan, small_config(), 0, "float32", "cpu", (), "")])
    with pytest.raises(StageHungError):
        group.call([Save()], timeout_s=0.05)
    ending = threading.Thread(target=group.kill, daemon=True)
    ending.start()
    ending.join(timeout=20.0)
    is_over, (process,) = not ending.is_alive(), killed
    really_kill(process)
    process.wait()
    assert is_over
    assert f"process {process.pid} was killed and is not gone" in caplog.text


def test_lost_and_hung_workers_are_noticed_and_the_group_continues_from_the_last_good_state() -> None:
    config = {"stages": 2, "microbatches": 2, "schedule": "gpipe"}
    learner = build_learner(BOARD_GAME, MLP, small_config(stage_timeout_s=5.0, **config), seed=1, dtype=torch.float32)
    group = learner._updater
    network = build_network(BOARD_GAME, MLP, seed=1)
    unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5)
    try:
        good = learner.publish()
        assert not learner.update(unrolls, budget_fraction=0.0).skipped
        processes = group._workers._processes
        processes[1].kill()
        assert learner.update(unrolls, budget_fraction=0.0).skipped
        assert (learner.restarts, learner.version) == (1, 2)
        assert learner.publish().digest() == good.digest()
        assert all(process.poll() is not None for process in processes)

        processes = group._workers._processes
        os.kill(processes[0].pid, signal.SIGSTOP)
        report = learner.update(unrolls, budget_fraction=0.0)
        assert report.skipped and report.update_s < 60.0
        assert learner.restarts == 2
        assert all(process.poll() is not None for process in processes)
    finally:
        learner.close()
