"""Rules of a parameter server, each against its definition; asynchronous SGD against its bound of stability."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from league.agents.learner.replicas.free_config import ParameterServerConfig
from league.agents.learner.replicas.parameter_shard import ParameterShard, Push, ShardAnswer
from league.agents.learner.replicas.server_rules import (
    OUTLIER_BATCHES,
    LossOutliers,
    ReplicaClocks,
    part_bounds,
    stale_weight,
    weighted_mean,
)
from league.agents.learner.replicas.shared_vector import SharedVector


def test_stale_gradients_count_in_full_within_the_bound_and_by_rule_beyond_it() -> None:
    for lag in range(12):
        for bound in (0, 3, 8):
            assert stale_weight(lag, max_staleness=bound, on_stale="wait") == 1.0
            assert stale_weight(lag, max_staleness=bound, on_stale="drop") == float(lag <= bound)
            expected = 1.0 if lag <= bound else 1.0 / (1.0 + lag)
            assert stale_weight(lag, max_staleness=bound, on_stale="scale") == expected


@pytest.mark.parametrize(("size", "parts"), [(10, 3), (9, 3), (5, 5), (7, 1)])
def test_parts_cover_the_vector_in_order_and_differ_by_one_at_most(size, parts) -> None:
    bounds = part_bounds(size, parts)
    assert [index for start, stop in bounds for index in range(start, stop)] == list(range(size))
    lengths = [stop - start for start, stop in bounds]
    assert len(lengths) == parts and max(lengths) - min(lengths) <= 1


def test_weighted_mean_of_means_is_the_mean_over_all_decisions() -> None:
    rng = np.random.default_rng(0)
    groups = [rng.normal(size=count) for count in (3, 10, 1)]
    weights = weighted_mean(len(group) for group in groups)
    mean = sum(weight * group.mean() for weight, group in zip(weights, groups, strict=True))
    assert mean == pytest.approx(np.concatenate(groups).mean(), rel=1e-12)


def test_nobody_begins_when_too_far_ahead_of_one_at_work_and_all_do_once_that_one_is_gone() -> None:
    clocks = ReplicaClocks(max_ahead=2)
    for rank in (0, 1):
        clocks.join(rank)
        clocks.begin(rank)
    for _ in range(2):  # replica 0 works on its own while 1 is at its first batch
        clocks.end(0)
        assert clocks.may_begin(0)
        clocks.begin(0)
    clocks.end(0)
    assert not clocks.may_begin(0)
    clocks.end(1)
    assert clocks.may_begin(0)  # 1 is idle: nobody waits for a replica without rows
    clocks.begin(1)
    assert clocks.may_begin(0) and clocks.may_begin(1)
    clocks.begin(0)
    clocks.end(0)
    assert not clocks.may_begin(0)
    clocks.leave(1)
    assert clocks.may_begin(0)
    clocks.join(1)
    clocks.begin(1)
    assert clocks.may_begin(0)  # it returned with the clock of the others


def test_losses_far_above_the_running_mean_are_outliers_and_do_not_move_it() -> None:
    rng = np.random.default_rng(1)
    outliers = LossOutliers(deviations=6.0)
    assert not any(outliers.is_outlier(10.0 + loss) for loss in rng.normal(size=300))
    assert all(outliers.is_outlier(loss) for loss in (20.0, 20.0, math.inf, math.nan))
    assert not outliers.is_outlier(12.0) and not outliers.is_outlier(-50.0)
    assert not any(LossOutliers(deviations=0.0).is_outlier(loss) for loss in [0.0] * OUTLIER_BATCHES + [1e9])


class Plain:
    """A slice that steps by plain gradient descent; it clips nothing."""

    def __init__(self, shared: SharedVector) -> None:
        self.values, self.gradients = torch.from_numpy(shared.values), torch.zeros(len(shared.values))
        self.steps = 0

    def squared_norm(self) -> torch.Tensor:
        return torch.dot(self.gradients, self.gradients)[None]

    def clip(self, *, count: float, squared_norm: float) -> float:
        return 0.0

    def step(self, *, count: float, squared_norm: float, learning_rate: float) -> float:
        self.values.sub_(self.gradients, alpha=learning_rate)
        return 0.0

    def follow(self, consensus: torch.Tensor) -> None:
        self.steps += 1


def shard_of(
    tmp_path, gradients: dict[int, np.ndarray], **options: object
) -> tuple[ParameterShard, SharedVector, Plain]:  # type: ignore[type-arg]
    shared = SharedVector(tmp_path / "weights", 2)
    shared.write(np.zeros(2, np.float32), version=1)
    vector = Plain(shared)
    config = ParameterServerConfig(**options)  # type: ignore[arg-type]
    return ParameterShard(vector, shared, config, gradient_of=gradients.__getitem__), shared, vector


def test_a_shard_scales_drops_and_counts_what_is_stale(tmp_path) -> None:
    ones = {0: np.ones(2, np.float32), 1: np.full(2, 10.0, np.float32)}
    for on_stale, weight in (("scale", 0.25), ("drop", 0.0)):
        shard, shared, vector = shard_of(tmp_path, ones, max_staleness=2, on_stale=on_stale)
        for rank in (0, 1):
            assert shard.join(rank) == []
        for step in range(3):
            assert shard.push(0, Push(1 + step, 5.0, 0.5)) == [(0, ShardAnswer(0, 1.0))]
        assert shared.values.tolist() == [-1.5, -1.5]
        assert shard.push(1, Push(1, 5.0, 0.5)) == [(1, ShardAnswer(3, weight))]
        assert shared.values.tolist() == [-1.5 - 5.0 * weight] * 2
        assert (shared.version, vector.steps) == (4 + (weight > 0), 3 + (weight > 0))


def test_a_synchronous_shard_waits_for_all_who_are_there_and_takes_the_weighted_mean(tmp_path) -> None:
    given = {rank: np.full(2, float(rank + 1), np.float32) for rank in range(3)}
    shard, shared, _ = shard_of(tmp_path, given, sync=True)
    for rank in range(3):
        shard.join(rank)
    assert shard.push(0, Push(1, 30.0, 1.0)) == []
    assert shard.push(2, None) == []  # its gradient was not finite
    assert shared.values.tolist() == [0.0, 0.0]
    assert sorted(shard.push(1, Push(1, 10.0, 1.0))) == [(rank, ShardAnswer()) for rank in range(3)]
    np.testing.assert_allclose(shared.values, -(0.75 * 1.0 + 0.25 * 2.0), rtol=1e-6)
    shard.push(0, Push(2, 1.0, 1.0))
    shard.push(1, Push(2, 1.0, 1.0))
    assert [rank for rank, _ in shard.leave(2)] == [0, 1]  # the lost one is not waited for


def test_waiting_replicas_are_answered_when_the_slowest_has_come_on_or_is_lost(tmp_path) -> None:
    zeros = {rank: np.zeros(2, np.float32) for rank in range(2)}
    shard, _, _ = shard_of(tmp_path, zeros, max_staleness=1, on_stale="wait")
    shard.join(0)
    shard.join(1)
    assert shard.begin(1) == [(1, ShardAnswer())]
    assert shard.begin(0) == [(0, ShardAnswer())]
    shard.push(0, Push(1, 1.0, 1.0))
    assert shard.begin(0) == [(0, ShardAnswer())]
    shard.push(0, Push(2, 1.0, 1.0))
    assert shard.begin(0) == []
    assert shard.push(1, Push(1, 1.0, 1.0)) == [(1, ShardAnswer(2, 1.0)), (0, ShardAnswer())]
    shard.begin(1)
    shard.push(0, Push(3, 1.0, 1.0))
    assert shard.begin(0) == []
    assert shard.leave(1) == [(0, ShardAnswer())]


@pytest.mark.parametrize("lag", [0, 1, 2, 4, 8])
def test_sgd_with_a_fixed_lag_diverges_exactly_above_its_bound(lag, tmp_path) -> None:
    """x <- x - a lr x_old is stable iff a lr < 2 sin(pi / (2 (2 lag + 1))): the roots of z^(lag+1) = z^lag - a lr.

    Replicas that push in turn make the lag; all but the count of steps is in float64.
    """
    bound = 2.0 * math.sin(math.pi / (2.0 * (2.0 * lag + 1.0)))
    for factor, diverges in ((0.99, False), (1.01, True)):
        replicas = range(lag + 1)
        gradients = {rank: np.ones(1) for rank in replicas}
        shared = SharedVector(tmp_path / f"{factor}", 1)
        vector = Plain(shared)
        vector.values, vector.gradients = torch.ones(1, dtype=torch.float64), torch.zeros(1, dtype=torch.float64)
        options = ParameterServerConfig(max_staleness=lag, on_stale="drop")
        shard = ParameterShard(vector, shared, options, gradient_of=gradients.__getitem__)
        for rank in replicas:
            shard.join(rank)
        fetched, sizes = [0] * len(replicas), []
        for step in range(3000):
            rank = step % len(replicas)
            ((_, verdict),) = shard.push(rank, Push(fetched[rank], 1.0, factor * bound))
            assert verdict == ShardAnswer(min(step, lag), 1.0)
            gradients[rank][0], fetched[rank] = float(vector.values), shared.version
            sizes.append(abs(float(vector.values)))
        assert (max(sizes[-100:]) > max(sizes[:100])) is diverges
