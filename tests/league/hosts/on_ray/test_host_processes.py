"""Threads of a learner host: pushes that wait for room hold up neither one another nor what else it is asked."""

from __future__ import annotations

import ast
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray

from league.hosts import on_ray
from league.hosts.on_ray.cluster import Cluster
from league.hosts.on_ray.host_processes import ACTORS, CREDITS, PROGRESS, LearnerHostProcess
from league.hosts.on_ray.ray_actors import actor_class, kill_actor
from league.hosts.on_ray.replay_rows import ReplayHandles

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

DEADLINE_S = 30.0
CHUNK = bytes(200_000)
"""Large enough to travel by the object store, as real chunks do."""


class FullLearnerHost(LearnerHostProcess):
    """Has room for no chunk until `reconfigure`; its progress is the number of pushes that wait."""

    def __init__(self) -> None:
        self._room = threading.Event()
        self._waiting = threading.Semaphore(0)
        self._host: Any = SimpleNamespace(push=self._wait, progress=self._all_wait, reconfigure=self._make_room)
        self._replays = ReplayHandles(0)
        self._newest: Any = SimpleNamespace(answer=lambda player, answer, have: answer)

    def _wait(self, player: str, chunk: bytes, *, sender: str) -> int:
        self._waiting.release()
        assert self._room.wait(DEADLINE_S)
        return len(chunk)

    def _all_wait(self) -> int:
        return sum(self._waiting.acquire(timeout=DEADLINE_S) for _ in range(1 + CREDITS))

    def _make_room(self, task: object) -> None:
        self._room.set()


def test_pushes_wait_beside_each_other_and_hold_up_neither_progress_nor_directives(ray_cluster: Cluster) -> None:
    learner = actor_class(FullLearnerHost, **{ACTORS: 1 + CREDITS, PROGRESS: 1}).options(num_cpus=0).remote()
    try:
        pushes = [learner.push.remote("main-0", CHUNK, have=-1, sender="actor-0") for _ in range(1 + CREDITS)]
        assert ray.get(learner.progress.remote(budget_fraction=0.0), timeout=DEADLINE_S) == 1 + CREDITS
        ray.get(learner.reconfigure.remote(None), timeout=DEADLINE_S)
        assert ray.get(pushes, timeout=DEADLINE_S) == [len(CHUNK)] * (1 + CREDITS)
    finally:
        kill_actor(learner, 0, through_ray=True, by_kernel=False)


def test_every_mark_of_ray_is_on_the_innermost_function_where_ray_looks_for_it() -> None:
    marked = [
        [ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list]
        for path in Path(on_ray.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and "ray.method" in ast.unparse(node).partition("def ")[0]
    ]
    assert ["logs_its_errors", "ray.method"] in marked
    assert {decorators[-1] for decorators in marked} == {"ray.method"}
