"""The rows of durability: every name loads, and a bad verdict fails its row."""

from __future__ import annotations

import importlib
import inspect
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmarks.durability import black_hole, kills, recovery, security, soak, struck, training_time
from benchmarks.durability.__main__ import ROWS
from benchmarks.report import Report
from league.config.loading import parse_config
from league.operate.chaos.plan import ACTOR, DAEMON, HEAD, LEARNER
from league.operate.chaos.prepare import targets_of
from league.operate.chaos.verdict import ChaosVerdict, Recovery
from league.run.operations.catalogue import OPERATIONS, complete
from tests.league.core.simulated_league import SimulatedLeague, three_roles

SOUND = ChaosVerdict(
    run="r",
    seed=1,
    seconds=1.0,
    strikes={"kill actor": 2},
    missed={},
    restarts=0,
    recoveries=(Recovery("kill actor", 2, 1.0, 2.0, 2.0),),
    leases_seen=5,
    leases=5,
    games=9,
    lost=(),
    doubled=(),
    off=(),
    problems=(),
    left=(),
    left_early=(),
    noticed=0,
    unnoticed=(),
)


@pytest.mark.parametrize("name", ROWS)
def test_every_name_is_a_function_of_its_own(name: str) -> None:
    module, _, function = ROWS[name].partition(":")
    found = inspect.signature(getattr(importlib.import_module(module), function))
    assert list(found.parameters) == ["report", "scale", "seed", "folder"]


@pytest.mark.parametrize("module", [black_hole, recovery, soak, training_time], ids=lambda module: module.__name__)
def test_the_settings_of_a_row_are_a_configuration_that_is_taken(module: Any) -> None:
    settings = yaml.safe_dump({**struck.SETTINGS, "runtime": module.RUNTIME})
    assert parse_config(settings, source=module.__name__).runtime.kind == module.RUNTIME["kind"]


@pytest.mark.parametrize(
    "change",
    [
        {"lost": ("x",)},
        {"doubled": ("x",)},
        {"off": ("x",)},
        {"problems": ("x",)},
        {"left": ("x",)},
        {"left_early": ("x",)},
        {"leases_seen": 0},
        {"failure": "x"},
        {"strikes": {"kill actor": 1}},
        {"recoveries": (Recovery("kill actor", 2, 1.0, 3.1, 3.1),)},
    ],
)
def test_each_fault_fails_the_rows_of_kills(change: dict[str, object]) -> None:
    for verdict, failed in ((SOUND, 0), (replace(SOUND, **change), 1)):  # type: ignore[arg-type]
        report = Report()
        kills.add_rows(report, verdict, number=2)
        assert len(report.failed) == failed


def test_every_kind_of_process_is_killed() -> None:
    config = parse_config(yaml.safe_dump(struck.SETTINGS), source="kills")
    assert set(targets_of(config)) >= {DAEMON, ACTOR, LEARNER, HEAD}


def test_a_soak_draws_every_operation_with_arguments_that_it_takes() -> None:
    league = SimulatedLeague(three_roles())
    league.confirm_directives()
    rng = random.Random(0)
    assert set(soak.OPERATIONS_DRAWN) == set(OPERATIONS)
    for name, draw in soak.OPERATIONS_DRAWN.items():
        for _ in range(20):
            arguments = draw(rng, league.state, [3, 9])
            assert arguments is not None
            complete(OPERATIONS[name], arguments)


def test_the_slope_of_memory_is_that_of_a_line_and_unknown_for_too_few_samples() -> None:
    rising = [(10.0 * number, 100.0 + 0.5 * number) for number in range(20)]
    assert soak.slope_per_hour(rising) == pytest.approx(180.0)
    assert soak.slope_per_hour([(t, 7.0) for t, _ in rising]) == pytest.approx(0.0)
    assert soak.slope_per_hour(rising[:2]) is None


def test_the_security_matrix_is_refused_and_one_that_lets_something_in_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "METHODS", ("GET", "POST"))
    monkeypatch.setattr(security, "PATHS", security.PATHS[::2])
    report = Report()
    security.rows(report, scale=1.0, seed=0, folder=tmp_path)
    cases, accepted = report.rows
    assert (accepted.value, accepted.met) == (0, True) and cases.value
    monkeypatch.setattr(security, "CONFIGS", ("env: {id: tic_tac_toe}",))
    assert [case for case, refused in security.input_cases(tmp_path / "again") if not refused] != []
