"""Tasks on Ray: each is done, whatever becomes of the process that does it; a tournament there ends as elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from league.errors import LeagueError
from league.hosts.on_ray import tasks as ray_tasks
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.tasks import RayTasks
from league.judge.tournaments.batches import Where
from league.judge.tournaments.records import TournamentConfig
from league.judge.tournaments.run_tournament import play_tournament
from league.processes.tasks import TasksFailed

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

Task, Answer = TypeVar("Task"), TypeVar("Answer")
DEADLINE_S = 120.0


def made(folder: str) -> Callable[[str, Callable[[], bool]], str]:
    """Does tasks called "die" and "hang" as they say, the first time; refuses "refuse"; else answers the task."""

    def do(task: str, sign_of_life: Callable[[], bool]) -> str:
        marker = Path(folder) / task
        first = not marker.exists()
        marker.touch()
        if task == "refuse":
            raise LeagueError("this one cannot be done.")
        if first and task == "die":
            os._exit(1)
        if first and task == "hang":
            time.sleep(DEADLINE_S)
        return task

    return do


def test_tasks_of_processes_that_die_or_hang_are_given_out_again(
    ray_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ray_tasks, "ASK_EVERY_S", 0.2)
    monkeypatch.setattr(ray_tasks, "MAX_SILENCE_S", 1.0)
    tasks: RayTasks[str, str] = RayTasks("local", made, str(tmp_path), max_processes=1, cluster=ray_cluster)
    due, done = ["one", "die", "hang", "two"], list[str]()
    deadline = time.monotonic() + DEADLINE_S
    with tasks:
        while due or tasks.num_busy:
            if due and tasks.has_room:
                tasks.give(due.pop(0))
            done += tasks.wait()
            assert time.monotonic() < deadline
        assert done == ["one", "die", "hang", "two"]
        tasks.give("refuse")
        with pytest.raises(TasksFailed, match=r"^this one cannot be done\.$"):
            while time.monotonic() < deadline:
                tasks.wait()


def test_a_tournament_on_ray_ends_with_the_same_files(
    ray_cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class OnShared(RayTasks[Task, Answer]):
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options, cluster=ray_cluster)

    monkeypatch.setattr(ray_tasks, "RayTasks", OnShared)
    config = TournamentConfig(
        ("bot:random", "bot:tactical"), env_id="tic_tac_toe", games=12, batch_games=4, record=True
    )
    here = play_tournament(tmp_path / "here", config, where=Where(jobs=1))
    assert play_tournament(tmp_path / "ray", config, where=Where(jobs=1, ray="local")) == here
    for name in ("report.json", "standings.csv", "report.html", "games.pgn"):
        assert (tmp_path / "ray" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
