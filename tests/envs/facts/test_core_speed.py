"""Costs of calls beside a fixed piece of work: a slow machine, a moment's delay, and what recurs."""

from __future__ import annotations

import itertools

import pytest

from league.envs.facts.core_speed import SPACING, STRETCHES, WORK_S, CallCosts, work_s

CALL_S = 10 * WORK_S


def usual(calls: list[float], paces: list[float]) -> float:
    steps = itertools.cycle(paces)
    costs = CallCosts(lambda: next(steps))
    for seconds in calls:
        costs.add(seconds)
    assert costs.total_s == pytest.approx(sum(calls))
    return costs.usual()


def test_a_core_at_its_usual_speed_tells_the_mean() -> None:
    assert usual([CALL_S, 3 * CALL_S] * 80, [WORK_S]) == pytest.approx(2 * CALL_S)
    assert usual([CALL_S], [WORK_S]) == pytest.approx(CALL_S)


def test_a_slow_core_makes_no_call_dearer() -> None:
    assert usual([1.7 * CALL_S] * 100, [1.7 * WORK_S]) == pytest.approx(CALL_S)


def test_a_core_that_is_slow_for_a_while_makes_no_call_dearer() -> None:
    now = [1.0]
    costs = CallCosts(lambda: now[0] * WORK_S)
    for call in range(400):
        now[0] = 1.9 if 100 <= call < 300 else 1.0
        costs.add(now[0] * CALL_S)
    assert costs.usual() == pytest.approx(CALL_S)


def test_first_calls_and_a_moment_s_delay_do_not_count_and_what_recurs_does() -> None:
    assert usual([900 * CALL_S, *[CALL_S] * 159], [WORK_S]) == pytest.approx(CALL_S)
    assert usual(([CALL_S] * 9 + [11 * CALL_S]) * 16, [WORK_S]) == pytest.approx(2 * CALL_S)


def test_the_work_is_done_once_for_so_much_time_of_the_calls() -> None:
    works = itertools.count()

    def pace() -> float:
        next(works)
        return WORK_S

    costs = CallCosts(pace)
    for _ in range(STRETCHES):
        for _ in range(int(SPACING)):
            costs.add(WORK_S)
    costs.usual()
    assert STRETCHES <= next(works) <= STRETCHES + 2


def test_no_call_has_no_cost() -> None:
    with pytest.raises(ValueError, match="no call"):
        CallCosts(lambda: WORK_S).usual()


def test_the_work_takes_time() -> None:
    assert 0.0 < work_s() < 1.0
