"""A lockstep group that loses a worker goes on from the newest weights of whole replicas, and counts what is lost."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from league.agents.learner.build import build_learner
from league.agents.learner.errors import StageDiedError, StageHungError
from league.agents.learner.workers.distributed_updater import ask, loss_in, surviving_replicas
from league.agents.learner.workers.worker import PeersLost, Save
from league.agents.nets.network import build_network
from league.agents.restart_state import OPTIMIZER_STEPS, WEIGHTS, weights_in
from league.agents.weights import layout_of
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, small_config, unrolls_of

pytestmark = pytest.mark.xdist_group("forked workers")  # they share the server

AVERAGING = {"kind": "local_sgd", "period": 3}
POPART = dataclasses.replace(MLP, value_output="popart")
LAYOUT = layout_of(build_network(BOARD_GAME, POPART, seed=1))
ENDS = np.cumsum(LAYOUT.sizes)[:-1]
(MOMENTS,) = (name for name in LAYOUT.names if name.endswith("moments"))


@dataclasses.dataclass
class FakeGroup:
    """Workers whose answers are known; None for one that never answers."""

    answers: list[object]
    sent: list[int] = dataclasses.field(default_factory=list)

    def send(self, rank: int, request: object) -> None:
        self.sent.append(rank)

    def receive(self, *, timeout_s: float) -> list[tuple[int, object]]:
        came = [(rank, self.answers[rank]) for rank in self.sent if self.answers[rank] is not None]
        self.sent = []
        return came


def state(steps: int) -> dict[str, np.ndarray]:
    return {OPTIMIZER_STEPS: np.array(steps), WEIGHTS: np.full(2, float(steps), np.float32)}


def test_whole_replicas_with_the_most_steps_survive() -> None:
    """Four replicas of two stages: one is half dead, one is a step behind, one was cut within a step."""
    group = FakeGroup([None, None, state(6), state(6), state(7), state(7), state(8), state(7)])
    found = surviving_replicas(group, [0], replicas=4, pipeline_workers=2, timeout_s=1.0)
    assert list(found) == [2]
    assert [weights_in(part).tolist() for part in found[2]] == [[7.0, 7.0]] * 2


def test_the_worker_that_ended_is_named_before_those_that_waited_for_it() -> None:
    ended = StageDiedError("worker 1 ended with exit code -9")
    answers = ask(FakeGroup([PeersLost("x"), ended, None]), dict.fromkeys(range(3), Save()), timeout_s=9.0)
    assert loss_in(answers, range(3), timeout_s=9.0) is ended
    assert isinstance(loss_in({0: PeersLost("x")}, range(2), timeout_s=9.0), StageHungError)
    assert "x" in str(loss_in({0: PeersLost("x")}, range(1), timeout_s=9.0))
    assert loss_in({0: state(1)}, range(1), timeout_s=9.0) is None


def test_a_group_continues_from_its_survivor_and_counts_what_went_with_the_lost_replica() -> None:
    """Two replicas average every third of five updates, so that two are not agreed on when one is killed."""
    settings = {"value_normalisation": "popart", "value_rate": 0.2}
    config = small_config(replicas=2, stage_timeout_s=30.0, update_mode=AVERAGING, **settings)
    learner = build_learner(BOARD_GAME, POPART, config, seed=1, dtype=torch.float32)
    network = build_network(BOARD_GAME, POPART, seed=1)
    batches = [unrolls_of(BOARD_GAME, network, rows=12, steps=5, seed=seed) for seed in range(7)]
    try:
        published = [learner.publish().vector]
        reports = []
        for batch in batches[:5]:
            reports.append(learner.update(batch, budget_fraction=0.0))
            published.append(learner.publish().vector)
        changes = [not np.array_equal(old, new) for old, new in itertools.pairwise(published)]
        assert changes == [False, False, True, False, False]  # all are given the outer point
        assert [report.steps for report in reports] == [int(batch.valid.sum()) for batch in batches[:5]]
        assert [report.sent_bytes for report in reports] == [0, 0, 8 * published[0].size, 0, 0]
        saved = learner.save()
        assert not np.array_equal(weights_in(saved), published[-1])  # the mean of what the replicas hold now
        group = learner._updater
        first, second = group._workers.call([Save(), Save()], timeout_s=30.0)
        differs = dict(zip(LAYOUT.names, np.split(first[WEIGHTS] != second[WEIGHTS], ENDS), strict=True))
        assert not differs.pop(MOMENTS).any() and any(part.any() for part in differs.values())
        np.testing.assert_array_equal(first["ema"], second["ema"])
        group._workers._processes[1].kill()
        report = learner.update(batches[5], budget_fraction=0.0)
        own = sum(int(batch.valid[6:].sum()) for batch in batches[3:5])  # the second replica's half, since they agreed
        assert report.skipped and learner.restarts == 1
        assert learner.trained_steps == sum(report.steps for report in reports) - own
        survivor = learner.save()
        np.testing.assert_array_equal(learner.publish().vector, published[-1])  # the outer point, in both
        np.testing.assert_array_equal(weights_in(survivor), first[WEIGHTS])
        np.testing.assert_array_equal(survivor["mode_vector.outer_point"], saved["mode_vector.outer_point"])
        after = learner.update(batches[6], budget_fraction=0.0)
        assert not after.skipped and not np.array_equal(learner.publish().vector, published[-1])
    finally:
        learner.close()
    again = build_learner(BOARD_GAME, POPART, small_config(**settings), seed=2, dtype=torch.float32)
    again.load(saved)  # also by a learner without replicas
    np.testing.assert_array_equal(again.publish().vector, weights_in(saved))


def test_decisions_count_no_longer_where_all_return_to_the_last_good_state(monkeypatch: pytest.MonkeyPatch) -> None:
    learner = build_learner(BOARD_GAME, MLP, small_config(), seed=1, dtype=torch.float32)
    network = build_network(BOARD_GAME, MLP, seed=1)
    unrolls = unrolls_of(BOARD_GAME, network, rows=12, steps=5)
    good = learner.publish().digest()
    learner.update(unrolls, budget_fraction=0.0)
    assert learner.trained_steps > 0

    def lose(*arguments: object, **named: object) -> None:
        raise StageDiedError("worker 0 ended")

    monkeypatch.setattr(learner._updater, "update", lose)
    learner.update(unrolls, budget_fraction=0.0)
    assert learner.publish().digest() == good and learner.trained_steps == 0 and learner.sampled_steps == 0
