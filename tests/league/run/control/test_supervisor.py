"""The supervisor's rules, with a process and a clock that the test moves."""

from __future__ import annotations

import errno
import itertools
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from league.errors import DiskFull
from league.run.control.supervisor import (
    LONG_LIFE_S,
    LONGEST_PAUSE_S,
    MAX_QUICK_CRASHES,
    ROOM_BYTES,
    USER_ERROR,
    Supervisor,
    pause_after,
)
from league.store.lock import this_process
from league.store.run_folder import RunFolder, RunStatus
from league.store.supervision import Supervision, read_supervision, write_supervision

FIRST, AGAIN = ("train", "c.yaml"), ("resume", "run")


class FakeChild:
    """A process that ends with `code` after `life_s` of the fake clock, or with 0 when it is told to stop."""

    def __init__(self, clock: FakeClock, code: int, life_s: float) -> None:
        self._clock, self._code, self._end = clock, code, clock.now + life_s
        self.signals: list[int] = []

    def poll(self) -> int | None:
        if signal.SIGTERM in self.signals:
            return 0
        return self._code if self._clock.now >= self._end else None

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


class FakeClock:
    """Seconds that pass only by sleeping; `at` runs a call when a time is reached."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.at: dict[float, Callable[[], None]] = {}

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        for moment in [moment for moment in self.at if moment <= self.now]:
            self.at.pop(moment)()


class World:
    """A supervisor over a list of (exit code, seconds lived) of the lives to come."""

    def __init__(self, path: Path, lives: Sequence[tuple[int, float]], **options: Any) -> None:
        self.clock = FakeClock()
        self.folder = RunFolder(path)
        self.folder.make_logs_folder()
        self.started: list[tuple[float, tuple[str, ...]]] = []
        self.children: list[FakeChild] = []
        self.trains = True
        self.phase = "running"
        self.free = 1 << 40
        self._lives = list(lives)
        self.supervisor = Supervisor(
            self.folder,
            first=FIRST,
            again=AGAIN,
            popen=self._start,  # type: ignore[arg-type]  # a stand-in for a process
            space=lambda path: (self.free, 1 << 40),
            wall_time=lambda: self.clock.now,
            monotonic=lambda: self.clock.now,
            sleep=self.clock.sleep,
            **options,
        )

    def _start(self, arguments: Sequence[str]) -> FakeChild:
        self.started.append((self.clock.now, tuple(arguments)))
        if self.trains:
            self.folder.config_path.write_text("env: {id: x}")
            beat = RunStatus(this_process(), self.phase, 0.0, self.clock.now + 0.01, 1, trained_s=1.0)
            self.folder.write_status(beat)
        self.children.append(FakeChild(self.clock, *self._lives.pop(0)))
        return self.children[-1]

    @property
    def record(self) -> Supervision:
        record = read_supervision(self.folder)
        assert record is not None
        return record


def test_a_run_that_ends_by_itself_is_not_started_again(tmp_path: Path) -> None:
    world = World(tmp_path, [(0, 5.0)])
    assert world.supervisor.run() == 0
    assert [arguments for _, arguments in world.started] == [FIRST]
    assert (world.record.restarts, world.record.gave_up) == (0, "")


def test_on_a_full_disk_it_waits_for_space_however_long_and_starts_the_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, [(2, 5.0), (2, 5.0), (0, 5.0)])

    def fill() -> None:
        world.free, world.trains = 1 << 20, False

    def write(folder: RunFolder, record: Supervision) -> None:
        if world.free < ROOM_BYTES:
            raise DiskFull(folder.supervisor_path)
        write_supervision(folder, record)

    monkeypatch.setattr("league.run.control.supervisor.write_supervision", write)
    world.clock.at = {4.0: fill, 5_000.0: lambda: setattr(world, "free", 1 << 40), 5_008.0: fill}
    world.clock.at[9_000.0] = lambda: setattr(world, "free", 1 << 40)
    assert world.supervisor.run() == 0
    starts = [moment for moment, _ in world.started]
    assert len(starts) == 3 and 5_000.0 < starts[1] < 5_010.0 and 9_000.0 < starts[2] < 9_010.0
    assert world.record.last_crash == "exit code 2, as the disk was full" and world.record.gave_up == ""
    assert world.record.restarts == 2


def test_a_machine_without_room_for_a_process_at_the_moment_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, [(0, 5.0)])
    start, refusals = world.supervisor._popen, [OSError(errno.EAGAIN, "no room"), OSError(errno.ENOMEM, "no memory")]

    def start_later(arguments: Sequence[str]) -> Any:
        if refusals:
            raise refusals.pop(0)
        return start(arguments)

    monkeypatch.setattr(world.supervisor, "_popen", start_later)
    assert world.supervisor.run() == 0
    assert len(world.started) == 1 and world.record.restarts == 2
    assert world.record.last_crash == "it could not be started: no memory"


def test_a_crash_is_followed_by_a_resume_and_growing_pauses(tmp_path: Path) -> None:
    world = World(tmp_path, [(-9, 5.0), (1, 5.0), (-6, 5.0), (0, 5.0)])
    assert world.supervisor.run() == 0
    assert [arguments for _, arguments in world.started] == [FIRST, AGAIN, AGAIN, AGAIN]
    starts = [moment for moment, _ in world.started]
    pauses = [later - earlier - 5.0 for earlier, later in itertools.pairwise(starts)]
    assert pauses == pytest.approx([1.0, 2.0, 4.0], abs=0.5)
    assert (world.record.restarts, world.record.last_crash) == (3, "signal 6")


def test_settings_are_given_until_the_run_trains_and_not_after_a_crash(tmp_path: Path) -> None:
    """Until then they may not be in the journal; after it they would undo what somebody has set since."""
    world = World(tmp_path, [(1, 5.0), (1, 5.0), (0, 5.0)], settings=("-s", "learner.gamma=0.9"))
    world.folder.config_path.write_text("env: {id: x}")
    world.trains = False
    world.clock.at = {5.5: lambda: setattr(world, "trains", True)}
    assert world.supervisor.run() == 0
    assert [arguments for _, arguments in world.started] == [
        (*AGAIN, "-s", "learner.gamma=0.9"),
        (*AGAIN, "-s", "learner.gamma=0.9"),
        AGAIN,
    ]


def test_a_clock_that_went_back_makes_no_refusal_of_a_crash(tmp_path: Path) -> None:
    world = World(tmp_path, [(2, 5.0), (0, 5.0)])
    world.folder.config_path.write_text("env: {id: x}")
    world.folder.write_status(RunStatus(this_process(), "failed", 0.0, world.clock.now + 3600.0, 1, trained_s=1.0))
    assert world.supervisor.run() == 0
    assert (world.record.restarts, world.record.gave_up) == (1, "")


def test_pauses_double_up_to_a_minute() -> None:
    assert [pause_after(n) for n in (1, 2, 3, 4)] == [1.0, 2.0, 4.0, 8.0]
    assert pause_after(50) == LONGEST_PAUSE_S


def test_crashes_in_a_row_are_given_up(tmp_path: Path) -> None:
    world = World(tmp_path, [(-9, 1.0)] * 50)
    assert world.supervisor.run() != 0
    assert len(world.started) == MAX_QUICK_CRASHES
    assert f"{MAX_QUICK_CRASHES} times in a row" in world.record.gave_up


def test_a_long_life_ends_the_row(tmp_path: Path) -> None:
    lives = [(-9, 1.0)] * (MAX_QUICK_CRASHES - 1) + [(-9, LONG_LIFE_S + 1)] + [(-9, 1.0)] * 3 + [(0, 1.0)]
    world = World(tmp_path, lives)
    assert world.supervisor.run() == 0
    assert world.record.restarts == len(lives) - 1


def test_a_refusal_to_start_is_final(tmp_path: Path) -> None:
    world = World(tmp_path, [(USER_ERROR, 1.0)] * 3)
    world.trains = False
    assert world.supervisor.run() == USER_ERROR
    assert len(world.started) == 1
    assert "refused" in world.record.gave_up


def test_the_same_exit_code_after_training_began_is_a_crash(tmp_path: Path) -> None:
    world = World(tmp_path, [(USER_ERROR, 1.0), (0, 1.0)])
    assert world.supervisor.run() == 0
    assert len(world.started) == 2


@pytest.mark.parametrize("code", [USER_ERROR, 1, -9])
def test_a_failure_after_the_run_has_ended_in_order_is_no_crash(code: int, tmp_path: Path) -> None:
    world = World(tmp_path, [(code, 5.0)] * 2)
    world.phase = "stopped"
    assert world.supervisor.run() == 0
    assert len(world.started) == 1
    assert (world.record.last_crash, world.record.gave_up) == ("", "")


def test_without_restart_a_crash_is_final(tmp_path: Path) -> None:
    world = World(tmp_path, [(-9, 1.0)] * 3, restart=False)
    assert world.supervisor.run() != 0
    assert len(world.started) == 1


def test_a_stop_is_passed_on_and_ends_it(tmp_path: Path) -> None:
    world = World(tmp_path, [(-9, 100.0), (0, 1.0)])
    world.clock.at[3.0] = world.supervisor.ask_to_stop
    assert world.supervisor.run() == 0
    assert world.children[0].signals == [signal.SIGTERM]
    assert len(world.started) == 1
    assert world.record.stopping


def test_a_stop_during_a_pause_starts_nothing_more(tmp_path: Path) -> None:
    world = World(tmp_path, [(-9, 1.0), (0, 100.0)])
    world.clock.at[1.5] = world.supervisor.ask_to_stop
    assert world.supervisor.run() == 0
    assert len(world.started) == 1


def test_a_long_console_log_is_moved_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.run.control.supervisor.CONSOLE_BYTES", 10)
    world = World(tmp_path, [(0, 200.0)])
    world.folder.console_log_path.write_text("line\n" * 10)
    assert world.supervisor.run() == 0
    assert world.folder.console_log_path.read_text() == ""
    assert (tmp_path / "logs" / "console.log.1").read_text() == "line\n" * 10
