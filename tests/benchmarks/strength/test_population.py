"""The table of chosen populations: its studies, and what counts as within noise."""

from __future__ import annotations

import pytest

from benchmarks.report import Report
from benchmarks.strength.population import ALWAYS, CASES, MEASURED, NEVER, add_rows, noise_of, study_of
from league.config.auto.rules_league import CHOICE


@pytest.mark.parametrize("name", CASES)
def test_the_arms_differ_in_the_choice_alone(name: str) -> None:
    study = study_of(CASES[name], [0, 1])
    assert [arm.settings for arm in study.arms] == [{CHOICE: arm} for arm in (MEASURED, ALWAYS, NEVER)]
    assert [*study.problems()] == []


def test_noise_is_twice_the_standard_error_and_at_least_what_matters() -> None:
    assert noise_of([0.1], least=0.05) == 0.05
    assert noise_of([0.1, 0.1], least=0.05) == 0.05
    assert noise_of([0.0, 0.4], least=0.05) == pytest.approx(0.4)


@pytest.mark.parametrize(("name", "fails"), [("trap", True), ("kuhn", False)])
def test_measured_is_held_to_always_where_opponents_help_and_to_never_elsewhere(name: str, fails: bool) -> None:
    values = {MEASURED: {0: -1.0, 1: -1.0}, ALWAYS: {0: -0.1, 1: -0.1}, NEVER: {0: -1.0, 1: -1.0}}
    report = Report()
    add_rows(report, name, CASES[name], values)
    assert bool(report.failed) is fails
