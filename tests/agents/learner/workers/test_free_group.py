"""Replicas on clocks of their own, as threads of this process: what is counted, what is learnt, who is lost."""

from __future__ import annotations

import dataclasses
import itertools
import math
import socket
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch

from league.agents.learner.algorithms.objective import BatchLoss, LossWeights
from league.agents.learner.build import build_updater, local_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.learner import Learner
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.replicas.free_config import free_problems
from league.agents.learner.replicas.free_replicas import FreeReplicas
from league.agents.learner.replicas.hogwild import Hogwild
from league.agents.learner.replicas.shard_link import ShardLink, ShardLostError
from league.agents.learner.step.backend import SingleBackend
from league.agents.learner.step.updater import UpdateInputs
from league.agents.learner.workers.free_group import FreeGroup
from league.agents.learner.workers.thread_group import ThreadWorkerGroup
from league.agents.learner.workers.worker import NetworkPlan, WorkerSetup
from league.agents.nets.network import build_network
from league.agents.restart_state import WEIGHTS
from league.agents.unroll.unroll import Unrolls, concatenate
from league.agents.weights import layout_of
from tests.agents.learner.learner_cases import BOARD_GAME, FLOAT32, MLP, small_config, unrolls_of

PLAN = NetworkPlan(BOARD_GAME, MLP, seed=1)
NETWORK = build_network(BOARD_GAME, MLP, seed=1)
INPUTS = UpdateInputs(1e-2, LossWeights(0.1, 1.0), oldest_version=0, microbatches_per_block=1)
SERVER = {"kind": "parameter_server", "shards": 3}
HOGWILD = {"kind": "hogwild", "workers": "threads"}
GOSSIP = {"kind": "gossip", "asynchronous": True}
MODES = {
    "parameter server": SERVER,
    "server that waits": {**SERVER, "on_stale": "wait", "max_staleness": 1},
    "server, rare messages": {**SERVER, "push_every": 2, "fetch_every": 2},
    "synchronous server": {**SERVER, "sync": True},
    "hogwild": HOGWILD,
    "asynchronous gossip": GOSSIP,
    "a mode of one's own": {"kind": f"{__name__}:OwnMode", "asynchronous": True},
}


@dataclasses.dataclass(frozen=True)
class OwnConfig:
    asynchronous: bool = True


class OwnMode(Hogwild):
    """A mode from outside, whose option says that its replicas run on clocks of their own."""

    def __init__(self, replicas: FreeReplicas, options: OwnConfig) -> None:
        super().__init__(replicas)


def batch(seed: int) -> Unrolls:
    return unrolls_of(BOARD_GAME, NETWORK, rows=12, steps=5, seed=seed)


def config_of(mode: object, *, replicas: int = 2, **changes: object) -> LearnerConfig:
    return small_config(update_mode=mode, replicas=replicas, stage_timeout_s=20.0, **changes)


@contextmanager
def group_of(mode: object, *, replicas: int = 2, **changes: object) -> Iterator[FreeGroup]:
    """A group in threads, also of one replica, which a configuration would refuse."""
    config = config_of(mode, replicas=replicas, **changes)
    setups = [WorkerSetup(PLAN, config, rank, "float32", "cpu", (), "") for rank in range(config.pipeline.num_workers)]
    group = FreeGroup(setups, layout_of(NETWORK), config, launcher=ThreadWorkerGroup)
    group.start()
    try:
        yield group
    finally:
        group.close()


def finish(group: FreeGroup) -> None:
    """Wait until no replica has a batch in hand; results stay for the next update."""
    group._hand_out()
    while any(member.doing != "idle" for member in group._members):
        group._look(timeout_s=0.2)


@pytest.mark.parametrize("name", list(MODES))
def test_every_decision_is_counted_once_and_every_finished_batch_moves_the_version(name) -> None:
    handed = 0
    with group_of(MODES[name]) as group:
        learner = Learner(group, layout_of(NETWORK), config_of(MODES[name]))
        first = learner.publish()
        for seed in range(8):
            unrolls = batch(seed)
            handed += int(unrolls.valid.sum())
            report = learner.update(unrolls, budget_fraction=0.0)
            assert not report.skipped and not report.group.lost
        finish(group)
        last = batch(8)
        learner.update(last, budget_fraction=0.0)
        assert learner.trained_steps in (handed, handed + int(last.valid.sum()))  # the last may be done already
        assert 1 <= learner.version <= 9 and learner.skipped_updates == 0
        assert learner.publish().digest() != first.digest()


@pytest.mark.parametrize(
    "mode", [{"kind": "parameter_server"}, {"kind": "parameter_server", "sync": True}, HOGWILD, GOSSIP]
)
def test_one_replica_makes_the_updates_of_a_single_learner_bit_for_bit(mode) -> None:
    """With one shard; the ends of several are other places of the vector, where Adam's kernel rounds otherwise."""
    alone = local_updater(PLAN.build(), dataclasses.replace(config_of(None), pipeline=PipelineConfig()), FLOAT32)
    with group_of(mode, replicas=1) as group:
        for seed in range(6):
            group.update([batch(seed)], INPUTS)
            finish(group)
            alone.update([batch(seed)], INPUTS)
            np.testing.assert_array_equal(group.weights(), alone.weights())
        saved, expected = group.save(), alone.save()
        for key, array in expected.items():
            np.testing.assert_array_equal(saved[key], array, err_msg=key)


def test_a_synchronous_server_steps_as_one_learner_with_all_rows_does() -> None:
    changes = {"max_grad_norm": 1e9, "optimizer": {"kind": "adam", "eps": 0.1}}
    settings = dataclasses.replace(config_of(None, **changes), pipeline=PipelineConfig(), batch_rows=24)
    alone = local_updater(PLAN.build(), settings, FLOAT32)
    with group_of(MODES["synchronous server"], **changes) as group:
        for seed in range(0, 8, 2):
            for part in (seed, seed + 1):
                group.update([batch(part)], INPUTS)
            finish(group)
            alone.update([concatenate([batch(seed), batch(seed + 1)])], INPUTS)
            np.testing.assert_allclose(group.weights(), alone.weights(), rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["parameter server", "hogwild"])
def test_a_saved_state_is_restored_in_another_group_and_a_rewind_forgets_what_is_in_hand(name) -> None:
    with group_of(MODES[name]) as group, group_of(MODES[name]) as other:
        for seed in range(4):
            group.update([batch(seed)], INPUTS)
        finish(group)
        saved = group.save()
        assert any(name.startswith("optimizer_vector.") and np.any(array) for name, array in saved.items())
        other.load(saved)
        for key, array in other.save().items():
            np.testing.assert_array_equal(array, saved[key], err_msg=key)
        group.update([batch(5)], INPUTS)
        group.load(saved)
        np.testing.assert_array_equal(group.weights(), saved[WEIGHTS])
        finish(group)
        assert group.update([batch(6)], INPUTS).stats.steps == 0.0


def test_a_failing_replica_is_reported_its_batch_alone_is_lost_and_it_returns() -> None:
    with group_of(SERVER) as group:
        finish(group)
        broken = dataclasses.replace(batch(0), log_probs=np.zeros((12, 4), np.float32))
        group.update([broken], INPUTS)
        results = [group.update([batch(seed)], INPUTS) for seed in range(1, 7)]
        finish(group)
        results.append(group.update([batch(7)], INPUTS))
        (sentence,) = (sentence for result in results for sentence in result.group.lost)
        assert sentence.startswith("replica 0 was lost and its batch with it: worker 0 failed:")
        assert sum(result.group.batches for result in results) in (6, 7)
        assert [member.failures for member in group._members[:2]].count(0) >= 1


def test_a_gradient_that_is_not_finite_is_left_out_and_counted() -> None:
    for mode in (SERVER, HOGWILD):
        with group_of(mode) as group:
            before = group.weights()
            spoilt = batch(0)
            group.update([dataclasses.replace(spoilt, rewards=np.full_like(spoilt.rewards, np.nan))], INPUTS)
            finish(group)
            np.testing.assert_array_equal(group.weights(), before)
            group.update([batch(1)], INPUTS)
            finish(group)
            result = group.update([batch(2)], INPUTS)
            assert np.isfinite(group.weights()).all() and math.isfinite(result.gradient_norm)


def test_a_report_between_two_batches_shows_the_losses_of_the_last() -> None:
    with group_of(HOGWILD) as group:
        learner = Learner(group, layout_of(NETWORK), config_of(HOGWILD))
        learner.update(batch(0), budget_fraction=0.0)
        finish(group)
        reports = [
            learner.update(batch(seed), budget_fraction=0.0) for seed in (1, 2)
        ]  # two are idle: none is waited for
        while reports[-1].group.batches:
            finish(group)
            reports += [learner.update(batch(seed), budget_fraction=0.0) for seed in (1, 2)]
        assert reports[-1].steps == 0
        assert (reports[-1].gradient_norm, reports[-1].entropy) == (reports[-2].gradient_norm, reports[-2].entropy)
        assert reports[-1].gradient_norm > 0.0 < reports[-1].entropy
        finish(group)


@dataclasses.dataclass(frozen=True)
class HeldConfig:
    """No options."""


class HeldBackend(SingleBackend):
    """The first replica that is made computes nothing until the test releases it."""

    released = threading.Event()
    made = itertools.count()

    def __init__(self, network: Any, objective: Any, config: Any, placement: Any, options: HeldConfig) -> None:
        super().__init__(network, objective, config, placement)
        self._is_held = next(self.made) == 0

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        if self._is_held:
            self.released.wait()
        return super().accumulate(microbatches, loss_weights)


@pytest.mark.parametrize("mode", [SERVER, HOGWILD, GOSSIP])
def test_a_replica_that_stands_still_costs_the_others_nothing(mode, monkeypatch: pytest.MonkeyPatch) -> None:
    """In step with it they would do no batch at all; its speed beside theirs is a figure of the benchmark."""
    monkeypatch.setattr(HeldBackend, "released", threading.Event())
    monkeypatch.setattr(HeldBackend, "made", itertools.count())
    with group_of(mode, replicas=4, backend={"kind": f"{__name__}:HeldBackend"}) as group:
        try:
            handed = finished = 0
            while finished < 24:
                result = group.update([batch(handed % 4)], INPUTS)
                handed, finished = handed + 1, finished + result.group.batches
                assert not result.group.lost
            assert handed - finished <= 4, "no more than one for each"
        finally:
            HeldBackend.released.set()
        finish(group)
        assert next(HeldBackend.made) == 4


def test_settings_that_free_replicas_cannot_have_are_refused_in_one_sentence_each() -> None:
    def problems(**changes: object) -> str:
        config = small_config(**{"update_mode": SERVER, "replicas": 2, **changes})
        return "\n".join([*config.problems(), *free_problems(config)])

    assert problems(replicas=1) == (
        "pipeline.update_mode: parameter_server is for replicas that learn beside each other, not for 1; use 2 or more"
    )
    assert "pipeline.stages: replicas under hogwild run on clocks of their own" in problems(
        update_mode="hogwild", stages=2
    )
    assert problems(value_normalisation="popart").startswith("value_normalisation: popart changes the network beside")
    assert problems(replicas=7) == ""  # each takes a whole batch of 12 rows
    with pytest.raises(ValueError, match=r"pipeline.update_mode.shards: \d+ shards for \d+ parameters; use at most"):
        build_updater(PLAN, config_of({**SERVER, "shards": 60_000}), dtype=torch.float32, launcher=ThreadWorkerGroup)


def test_a_link_is_there_once_the_shard_knows_of_the_replica(tmp_path) -> None:
    """Else the first of two replicas could step alone, before the other's greeting was read."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "shard"))
    listener.listen()
    with listener, pytest.raises(ShardLostError):
        ShardLink(tmp_path / "shard", rank=0, timeout_s=0.05)
