"""What is kept for a learner host and the workers of its learners."""

from __future__ import annotations

import pytest

from league.hosts.on_ray.nodes.learner_groups import bundles_of, strategy_of
from tests.league.hosts.on_ray.nodes.machines import machine


def test_a_learner_host_and_the_gpus_of_its_workers_are_one_group() -> None:
    cpu, gpu = {"CPU": 1.0}, {"GPU": 1.0}
    assert bundles_of(["a", "b"], with_gpus=["b"], num_workers=2) == [cpu, gpu, gpu]
    assert bundles_of(["a", "b"], with_gpus=["a", "b"], num_workers=1) == [cpu, gpu, gpu]
    assert bundles_of(["a"], with_gpus=[], num_workers=4) == [cpu]


@pytest.mark.parametrize(
    ("gpus_each", "expected"), [((4,), "STRICT_PACK"), ((2, 2), "PACK"), ((2, 4), "STRICT_PACK"), ((), "PACK")]
)
def test_a_group_lies_on_one_machine_where_one_is_large_enough(gpus_each: tuple[int, ...], expected: str) -> None:
    nodes = [machine(f"m{number}", gpus=gpus) for number, gpus in enumerate(gpus_each)]
    assert strategy_of(bundles_of(["a"], with_gpus=["a"], num_workers=3), nodes) == expected
