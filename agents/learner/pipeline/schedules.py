"""In which order the stages of a pipeline work on microbatches, and how much of the time they idle. Pure arithmetic.

Shape letters: S stages, M microbatches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.learner.config import LOOPED_SCHEDULES


@dataclass(frozen=True)
class Task:
    """One piece of work of one stage: the forward or the backward pass of a microbatch."""

    backward: bool
    microbatch: int


def tasks_of(schedule: str, *, stage: int, num_stages: int, num_microbatches: int) -> tuple[Task, ...]:
    """What a stage that has a worker to itself does, in order.

    Args:
      schedule: "gpipe": all forward passes, then all backward passes; "1f1b": S - stage forward passes, then one
        backward for one forward pass, so that at most S - stage microbatches are in memory.
    Raises:
      ValueError: another schedule.
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
    """Share of the time in which a worker idles when all stages take equally long, in [0, 1).

    (W - 1) / (v M + W - 1) for W workers of v stages each; with one stage each (S - 1) / (M + S - 1).

    Source: Narayanan et al. 2021, Efficient large-scale language model training on GPU clusters, section 2.2.
    """
    rounds = stages_per_worker if schedule in LOOPED_SCHEDULES else 1
    idle = num_stages // rounds - 1
    return idle / (rounds * num_microbatches + idle)


def makespan(schedule: str, *, forward_s: Sequence[float], backward_s: Sequence[float], num_microbatches: int) -> float:
    """Seconds from the first task to the end of the last, each stage on a worker of its own.

    Args:
      forward_s, backward_s: [S] seconds of each stage for one microbatch.
    Raises:
      ValueError: the schedule has no order for one stage per worker, or its tasks wait for one another for ever.
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
    """When what a task needs is there; None if it is not there yet."""
    if not task.backward:
        return ended.get((stage - 1, task)) if stage else 0.0
    if stage == num_stages - 1:
        return ended.get((stage, Task(backward=False, microbatch=task.microbatch)))
    return ended.get((stage + 1, task))
