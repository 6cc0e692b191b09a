"""Schedules of pipeline stages: their order of tasks and their idle fraction. Pure arithmetic.

Shape letters: S stages, M microbatches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from league.agents.learner.pipeline_config import LOOPED_SCHEDULES


@dataclass(frozen=True)
class Task:
    """One piece of work of one stage: the forward or the backward pass of a microbatch."""

    backward: bool
    microbatch: int


def tasks_of(schedule: str, *, stage: int, num_stages: int, num_microbatches: int) -> tuple[Task, ...]:
    """The tasks, in order, of a stage that has its own worker.

    Args:
      schedule: "gpipe": all forward passes, then all backward passes; "1f1b": S - stage forward passes, then one
        backward for one forward pass, so that at most S - stage microbatches are in memory.
    Raises:
      ValueError: the schedule is neither of these.
    """
    forwards = [Task(backward=False, microbatch=index) for index in range(num_microbatches)]
    backwards = [Task(backward=True, microbatch=index) for index in range(num_microbatches)]
    if schedule == "gpipe":
        return (*forwards, *backwards)
    if schedule != "1f1b":
        raise ValueError(f"schedule {schedule!r} has no order for one stage per worker; use gpipe or 1f1b")
    ahead = min(num_microbatches, num_stages - stage)
    tasks = forwards[:ahead]
    for index, backward in enumerate(backwards):
        tasks.append(backward)
        if ahead + index < num_microbatches:
            tasks.append(forwards[ahead + index])
    return tuple(tasks)


def ideal_bubble(schedule: str, *, num_stages: int, num_microbatches: int, stages_per_worker: int = 1) -> float:
    """Idle fraction of a worker's time, in [0, 1), if all stages take equally long.

    (W - 1) / (v M + W - 1) for W workers of v stages each; with one stage each (S - 1) / (M + S - 1).

    Source: Narayanan et al. 2021, Efficient large-scale language model training on GPU clusters, section 2.2.
    """
    rounds = stages_per_worker if schedule in LOOPED_SCHEDULES else 1
    idle = num_stages // rounds - 1
    return idle / (rounds * num_microbatches + idle)


def makespan(schedule: str, *, forward_s: Sequence[float], backward_s: Sequence[float], num_microbatches: int) -> float:
    """Seconds from the start of the first task to the end of the last, with one worker per stage.

    Args:
      forward_s, backward_s: [S] seconds of each stage for one microbatch.
    Raises:
      ValueError: the schedule has no order for one stage per worker, or its tasks deadlock.
    """
    num_stages = len(forward_s)
    waiting = [
        list(tasks_of(schedule, stage=stage, num_stages=num_stages, num_microbatches=num_microbatches))
        for stage in range(num_stages)
    ]
    ended: dict[tuple[int, Task], float] = {}
    free = [0.0] * num_stages
    while any(waiting):
        moved = False
        for stage, tasks in enumerate(waiting):
            while tasks:
                ready = _ready_at(tasks[0], stage, num_stages, ended)
                if ready is None:
                    break
                task = tasks.pop(0)
                free[stage] = max(free[stage], ready) + (backward_s if task.backward else forward_s)[stage]
                ended[stage, task] = free[stage]
                moved = True
        if not moved:
            raise ValueError(f"schedule {schedule!r}: the stages wait for one another, {waiting}")
    return max(free)


def _ready_at(task: Task, stage: int, num_stages: int, ended: dict[tuple[int, Task], float]) -> float | None:
    """The time at which a task's inputs are ready; None if they are not ready yet."""
    if not task.backward:
        return ended.get((stage - 1, task)) if stage else 0.0
    if stage == num_stages - 1:
        return ended.get((stage, Task(backward=False, microbatch=task.microbatch)))
    return ended.get((stage + 1, task))
