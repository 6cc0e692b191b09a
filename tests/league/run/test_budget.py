"""When a command ends and how much of the budget is spent, with a clock that the test turns."""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec
import pytest

from league.config.run_config import BudgetConfig
from league.run import budget as meter_module
from league.run.budget import (
    DEFAULT_HORIZON_STEPS,
    LOOK_EVERY_S,
    ClockFile,
    Limits,
    Meter,
    Spent,
    budget_spent,
    cpu_seconds,
    fraction_spent,
)

NO_LIMITS = Limits()


def test_limits_count_from_where_the_command_began() -> None:
    begun = Spent(100.0, 200.0, 3_000)
    assert not Limits(seconds=10).reached(Spent(109.9, 900.0, 9_000), begun=begun)
    assert Limits(seconds=10).reached(Spent(110.0, 200.0, 3_000), begun=begun)
    assert Limits(core_seconds=5).reached(Spent(100.0, 205.0, 3_000), begun=begun)
    assert Limits(env_steps=50).reached(Spent(100.0, 200.0, 3_050), begun=begun)
    assert not Limits(env_steps=50).reached(Spent(100.0, 200.0, 3_049), begun=begun)
    assert not NO_LIMITS.reached(Spent(1e9, 1e9, 10**12), begun=begun)


@pytest.mark.parametrize(
    ("budget", "spent", "fraction"),
    [
        (BudgetConfig(seconds=100), Spent(25.0, 999.0, 999), 0.25),
        (BudgetConfig(core_seconds=100), Spent(25.0, 40.0, 999), 0.4),
        (BudgetConfig(seconds=100, core_seconds=100), Spent(25.0, 40.0, 999), 0.4),
        (BudgetConfig(env_steps=1000), Spent(25.0, 40.0, 100), 0.1),
        (BudgetConfig(seconds=100, env_steps=1000), Spent(25.0, 40.0, 900), 0.25),
        (BudgetConfig(), Spent(25.0, 40.0, DEFAULT_HORIZON_STEPS // 2), 0.5),
        (BudgetConfig(seconds=100), Spent(250.0, 0.0, 0), 1.0),
    ],
)
def test_schedules_follow_the_budget(budget: BudgetConfig, spent: Spent, fraction: float) -> None:
    assert fraction_spent(budget, spent, limits=NO_LIMITS) == pytest.approx(fraction)


def test_a_command_limited_by_env_steps_reads_no_clock() -> None:
    budget, limits = BudgetConfig(seconds=100, env_steps=1_000), Limits(env_steps=10)
    fractions = {fraction_spent(budget, Spent(seconds, seconds, 500), limits=limits) for seconds in (0.0, 50.0, 1e6)}
    assert fractions == {0.5}
    assert not budget_spent(budget, Spent(1e6, 1e6, 999), limits=limits)
    assert budget_spent(budget, Spent(0.0, 0.0, 1_000), limits=limits)


def test_a_budget_is_spent_at_its_first_limit() -> None:
    budget = BudgetConfig(seconds=100, core_seconds=50)
    assert not budget_spent(budget, Spent(99.0, 49.0, 10**9), limits=NO_LIMITS)
    assert budget_spent(budget, Spent(100.0, 0.0, 0), limits=NO_LIMITS)
    assert budget_spent(budget, Spent(0.0, 50.0, 0), limits=NO_LIMITS)
    assert budget_spent(BudgetConfig(env_steps=10), Spent(0.0, 0.0, 10), limits=NO_LIMITS)
    assert not budget_spent(BudgetConfig(), Spent(1e9, 1e9, 10**12), limits=NO_LIMITS)


class Clock:
    """Seconds that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_time_before_the_start_is_not_counted_and_earlier_starts_are() -> None:
    clock = Clock()
    meter = Meter(Spent(30.0, 7.0, 5), monotonic=clock)
    clock.now += 500
    assert meter.read(env_steps=9) == Spent(30.0, 7.0, 9)
    meter.start()
    clock.now += 12.5
    spent = meter.read(env_steps=10)
    assert (spent.seconds, spent.env_steps) == (42.5, 10)
    assert meter.now() == clock.now


def test_a_pause_that_ends_before_training_starts_takes_no_time_from_it() -> None:
    clock = Clock()
    meter = Meter(Spent(), monotonic=clock)
    meter.hold(held=True)
    clock.now += 100.0
    meter.hold(held=False)
    meter.start()
    clock.now += 10.0
    meter.hold(held=True)
    clock.now += 5.0
    assert meter.read(env_steps=0).seconds == 10.0


def test_processor_time_of_this_process_and_those_below_it_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    meter = Meter(Spent(), monotonic=clock)
    meter.start()
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\ninput()"
    child = subprocess.Popen([sys.executable, "-c", burn], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    clock.now += LOOK_EVERY_S
    with_child = meter.read(env_steps=0).core_seconds
    assert with_child >= 0.25
    below = meter_module._family()
    monkeypatch.setattr(meter_module, "_family", lambda: below[:1])  # missed once, as when its parent has just ended
    clock.now += LOOK_EVERY_S
    meter.read(env_steps=0)
    monkeypatch.setattr(meter_module, "_family", lambda: below)
    clock.now += LOOK_EVERY_S
    assert meter.read(env_steps=0).core_seconds < with_child + 0.25  # and not counted twice
    monkeypatch.undo()
    child.communicate(b"\n")
    clock.now += LOOK_EVERY_S
    assert meter.read(env_steps=0).core_seconds >= with_child
    assert cpu_seconds(child.pid) == 0.0
    assert os.getpid() in meter._core
    assert child.pid not in meter._core  # nothing is kept of a process that is gone


def test_processor_time_of_this_process_never_falls() -> None:
    first = cpu_seconds(os.getpid())
    assert cpu_seconds(os.getpid()) >= first > 0.0


def test_the_clock_file_reads_back_what_it_wrote() -> None:
    clock = ClockFile(Spent(1.5, 2.5, 7), env_steps_target=900)
    assert ClockFile.decode(clock.encode()) == clock
    assert ClockFile.decode(ClockFile().encode()) == ClockFile()
    for broken in (b"", b"{", b'{"spent": 3}', b"[]"):
        with pytest.raises(msgspec.DecodeError):
            ClockFile.decode(broken)


def test_a_fast_machine_ends_by_time_although_the_steps_were_used_up_before() -> None:
    budget = BudgetConfig(seconds=180.0, env_steps=1_000)
    early, late = Spent(seconds=100.0, env_steps=5_000), Spent(seconds=180.0, env_steps=9_000)
    assert not budget_spent(budget, early, limits=Limits())
    assert budget_spent(budget, late, limits=Limits())
    assert budget_spent(budget, early, limits=Limits(env_steps=50))
