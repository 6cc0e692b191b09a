"""The benchmark of many hosts: the arithmetic of its curve."""

from __future__ import annotations

import math

import pytest

from benchmarks.throughput.many_hosts import leases_per_second, point_of
from benchmarks.throughput.roofline import RunParts

PARTS = RunParts(acting=1e6, recording=1e6, update=0.61e6, codec=float("inf"))
"""A ply costs a microsecond to play and one to learn from."""


def test_the_line_before_the_daemon_is_that_of_a_closed_queue() -> None:
    for hosts, lease_s, answer_s in ((1, 1.0, 0.5), (5, 1.0, 0.1), (40, 4.0, 0.2), (100, 1.0, 1e-3)):
        busy = [math.perm(hosts, number) * (answer_s / lease_s) ** number for number in range(hosts + 1)]
        expected = (1.0 - busy[0] / sum(busy)) / answer_s  # Erlang's formula for machines and one who repairs them
        assert leases_per_second(hosts, lease_s=lease_s, answer_s=answer_s)[hosts] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("cores", "answer_s", "expected"),
    [
        (1, 0.0, (1, 0, 0.5e6, 0.0)),
        (1, 0.2, (1, 0, 0.25e6, 0.5)),  # the daemon takes as long for a lease as all that it brings
        (2, 0.0, (1, 1, 1e6, 0.0)),
        (16, 0.0, (8, 8, 8e6, 0.0)),
        (16, 1e-5, (8, 8, 16 / 2.0001e-6, 8e-4)),
        (1_000, 1e-3, (None, None, 1e8, 1.0)),  # all that one core of a daemon can answer
    ],
)
def test_a_curve_ends_where_actors_learners_or_the_daemon_have_no_more(
    cores: int, answer_s: float, expected: tuple[int | None, int | None, float, float]
) -> None:
    found = point_of(cores, PARTS, lease_plies=1e5, answer_s=answer_s)
    actors, learners, plies, daemon = expected
    assert (found.plies, found.daemon) == (pytest.approx(plies, rel=2e-3), pytest.approx(daemon, rel=2e-3))
    if actors is not None:
        assert (found.actors, found.learners) == (actors, learners)
