"""In a game of one team `best` is the newest snapshot, and an earlier one where measured returns have fallen since."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from league.core.state.records import ProbeReading
from league.envs.protocol import EnvConfig
from league.policies.loading import open_run
from league.policies.select import choose
from tests.league.judge.matches.eval_runs import MadeRun, constant_network


@pytest.fixture
def lone(tmp_path: Path) -> Iterator[MadeRun]:
    """A run of one seat with four trained snapshots, s1 to s4."""
    run = MadeRun(tmp_path / "lone", env=EnvConfig("probe_turns", kwargs={"num_seats": 1}))
    for number in range(5):
        network = constant_network(run.config, action=number % 2)
        run.snapshot("main-0", network, version=number, trained_steps=1000 * number)
    yield run
    run.close()


def measure(run: MadeRun, number: int, value: float, half: float = 1.0) -> None:
    """Answer a probe of one snapshot."""
    run.measure(f"main-0-s{number}", ProbeReading("mean_return", value, value - half, value + half, 20, scale="return"))


def best(run: MadeRun) -> str:
    ((_, snapshot),) = choose(open_run(run.path).state, "best").members
    return snapshot.snapshot_id


def test_a_fall_of_the_measured_return_takes_best_back_to_before_it(lone: MadeRun) -> None:
    for number, value in ((1, 10.0), (2, 100.0), (3, 99.0), (4, 20.0)):
        measure(lone, number, value)
    chosen = choose(open_run(lone.path).state, "auto")
    assert best(lone) == "main-0-s3", "as good as s2, as far as the games tell, and trained longer"
    assert "99 [98, 100]; main-0-s4 returned 20 [19, 21]" in chosen.reason


def test_without_a_clear_fall_best_is_the_newest(lone: MadeRun) -> None:
    assert best(lone) == "main-0-s4"
    for number, value in ((1, 10.0), (2, 100.0), (4, 90.0)):
        measure(lone, number, value, half=6.0)
    assert best(lone) == "main-0-s4"


def test_a_fall_long_before_the_newest_snapshot_says_nothing_about_it(lone: MadeRun) -> None:
    for number, value in ((2, 100.0), (3, 20.0)):
        measure(lone, number, value)
    assert best(lone) == "main-0-s4"
    measure(lone, 4, 95.0, half=10.0)
    assert best(lone) == "main-0-s4"


def test_the_newest_measurement_of_a_snapshot_counts(lone: MadeRun) -> None:
    for number, value in ((2, 100.0), (4, 20.0), (4, 100.0)):
        measure(lone, number, value)
    assert best(lone) == "main-0-s4"
