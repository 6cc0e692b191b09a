"""Survivors of a lockstep group that has lost a worker: whole replicas whose weights are the newest.

Shape letters: R replicas, W workers of one replica's pipeline. Rank = replica * W + place in the pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from league.agents.learner.errors import StageDiedError, StageError, StageHungError
from league.agents.learner.workers.worker import Answer, PeersLost, Request, Save
from league.agents.learner.workers.worker_group import SETTLE_S, WorkerGroup
from league.agents.restart_state import Arrays, optimizer_steps_in

GRACE_S = 2.0
"""Seconds after a deadline in which the peers of a hung worker notice it too: they began to wait a little later."""

Answers = dict[int, Answer | StageError]
"""Answers by rank; the error of a worker that is lost; nothing of one that did not answer."""


def ask(
    workers: WorkerGroup,
    requests: Mapping[int, Request],
    *,
    timeout_s: float,
    clock: Callable[[], float] = time.monotonic,
) -> Answers:
    """Send requests by rank and wait for the answers; once one is lost, only as long as others still answer."""
    for rank, request in requests.items():
        workers.send(rank, request)
    answers: Answers = {}
    deadline = clock() + timeout_s
    while len(answers) < len(requests):
        is_lost = any(isinstance(answer, StageError | PeersLost) for answer in answers.values())
        came = workers.receive(timeout_s=SETTLE_S if is_lost else max(deadline + GRACE_S - clock(), 0.0))
        if not came:
            break
        answers.update(came)
    return answers


def loss_in(answers: Answers, ranks: Sequence[int], *, timeout_s: float) -> StageError | None:
    """The fate of the worker that was lost first, as far as it is known; None if all have answered."""
    errors = [answer for answer in answers.values() if isinstance(answer, StageError)]
    if errors:
        return next((error for error in errors if "ended" in str(error)), errors[0])
    silent = ", ".join(str(rank) for rank in ranks if rank not in answers)
    if silent:
        return StageHungError(f"no answer from worker {silent} within {timeout_s:g} s")
    peers = [answer.text for answer in answers.values() if isinstance(answer, PeersLost)]
    return StageDiedError(peers[0]) if peers else None


def surviving_replicas(
    workers: WorkerGroup, lost: Sequence[int], *, replicas: int, pipeline_workers: int, timeout_s: float
) -> dict[int, list[Arrays]]:
    """The arrays of the workers of each whole replica that has made the most steps, by its number.

    Args:
      lost: ranks that are not asked any more.
    """
    every = {
        replica: range(replica * pipeline_workers, (replica + 1) * pipeline_workers) for replica in range(replicas)
    }
    whole = {replica: ranks for replica, ranks in every.items() if not set(ranks) & set(lost)}
    saved = ask(workers, {rank: Save() for ranks in whole.values() for rank in ranks}, timeout_s=timeout_s)
    found: dict[int, list[Arrays]] = {}
    for replica, ranks in whole.items():
        parts = [saved[rank] for rank in ranks if isinstance(saved.get(rank), dict)]
        if len(parts) == pipeline_workers and len({optimizer_steps_in(part) for part in parts}) == 1:  # type: ignore[arg-type]  # dictionaries, see above
            found[replica] = parts  # type: ignore[assignment]  # as above
    newest = max((optimizer_steps_in(parts[0]) for parts in found.values()), default=0)
    return {replica: parts for replica, parts in found.items() if optimizer_steps_in(parts[0]) == newest}
