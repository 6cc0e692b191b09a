"""Tasks in processes: each is done once, a dead process is replaced, and none outlives the context."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from multiprocessing import forkserver
from pathlib import Path

import pytest

from league.errors import LeagueError
from league.processes import task_processes
from league.processes.task_processes import TaskProcesses
from league.processes.tasks import TasksFailed

pytestmark = pytest.mark.xdist_group("task processes")  # they share the server


def doubling(folder: Path) -> Callable[[int, Callable[[], bool]], int]:
    """Doubles numbers. 13 kills the process once; 14 always does; 15 cannot be done; 16 never ends."""

    def do(task: int, sign_of_life: Callable[[], bool]) -> int:
        sign_of_life()
        first = folder / f"{task}"
        if task == 14 or (task == 13 and not first.exists()):
            first.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if task == 15:
            raise LeagueError("15 is too much.")
        if task == 16:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            first.touch()
            time.sleep(600.0)
        return 2 * task

    return do


def saying(name: str) -> Callable[[int, Callable[[], bool]], str]:
    """Answers with a variable of the environment."""
    return lambda task, sign_of_life: os.environ.get(name, "")


def done(tasks: list[int], players: TaskProcesses[int, int]) -> list[int]:
    answers: list[int] = []
    while tasks or players.num_busy:
        while tasks and players.has_room:
            players.give(tasks.pop())
        answers += players.wait()
    return sorted(answers)


def test_every_task_is_done_once_although_a_process_dies(tmp_path: Path) -> None:
    with TaskProcesses[int, int](doubling, tmp_path, jobs=2) as players:
        assert done([1, 2, 13, 3], players) == [2, 4, 6, 26]


def test_a_task_over_which_processes_die_and_one_that_is_refused_end_the_work(tmp_path: Path) -> None:
    with TaskProcesses[int, int](doubling, tmp_path, jobs=1, name_of="number {}".format) as players:
        with pytest.raises(TasksFailed, match=r"3 processes that did number 14 .* with SIGKILL"):
            done([14], players)
        with pytest.raises(TasksFailed, match="15 is too much"):
            done([15], players)


def test_whoever_gives_tasks_may_take_back_those_of_dead_processes(tmp_path: Path) -> None:
    taken: list[tuple[int, int, str]] = []

    def lost(task: int, pid: int, how: str) -> bool:
        taken.append((task, pid, how))
        return False

    with TaskProcesses[int, int](doubling, tmp_path, jobs=1, lost=lost) as players:
        pid = players.next_pid()
        assert done([14], players) == []
        assert taken == [(14, pid, "SIGKILL")]


def test_a_process_that_does_not_leave_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_processes, "LEAVE_S", 0.3)
    with TaskProcesses[int, int](doubling, tmp_path, jobs=1) as players:
        players.give(16)
        process = players._workers[0].process
        while not (tmp_path / "16").exists():
            players.wait()
        assert players.tasks == [16]
    assert process.exitcode == -signal.SIGKILL


def test_a_process_has_the_environment_of_its_parent_and_starts_by_itself_where_no_server_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def said() -> list[str]:
        answers: list[str] = []
        with TaskProcesses[int, str](saying, "WORD_OF_THE_TESTS", jobs=1) as players:
            players.give(1)
            while not answers:
                answers += players.wait()
        return answers

    def refuse(*_: object) -> None:
        raise EOFError

    for word in ("one", "two"):  # the server is older than either
        monkeypatch.setenv("WORD_OF_THE_TESTS", word)
        assert said() == [word]
    monkeypatch.setattr(forkserver, "connect_to_new_process", refuse)
    assert said() == ["two"]
