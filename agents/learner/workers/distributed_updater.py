"""An updater distributed over workers: replicas, stages, or both. Callers see whole weights.

Shape letters: P parameters of the whole network.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.algorithms.loss_stats import LossStats
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Ahead
from league.agents.learner.errors import ReplicaLostError, StageDiedError, StageError, StageHungError
from league.agents.learner.step.updater import UpdateInputs, UpdateResult
from league.agents.learner.workers.worker import (
    Answer,
    Describe,
    Description,
    GiveWeights,
    GradientAnswer,
    Gradients,
    Load,
    PeersLost,
    Request,
    Save,
    Update,
    Updated,
    WorkerSetup,
)
from league.agents.learner.workers.worker_group import SETTLE_S, WorkerGroup, WorkerGroupLauncher
from league.agents.restart_state import Arrays, is_averaged, is_vector, optimizer_steps_in, weights_of_size
from league.agents.unroll.device_unrolls import AnyRows
from league.agents.unroll.unroll import Unrolls, concatenate
from league.agents.weights import Layout


class UpdaterGroup:
    """Workers that together hold the weights and the optimizer.

    Args:
      setups: one for each rank.
      layout: of the whole network.
      config: settings; its `stage_timeout_s` is the deadline of every answer, `start_timeout_s` that of the start.
      launcher: starts the workers.
    """

    def __init__(
        self, setups: Sequence[WorkerSetup], layout: Layout, config: LearnerConfig, *, launcher: WorkerGroupLauncher
    ) -> None:
        self._setups = setups
        self._layout = layout
        self._config = config
        self._launcher = launcher
        self._workers: WorkerGroup | None = None
        self._places: list[list[tuple[slice, slice]]] = []
        self._needs_obs: list[bool] = []
        self._device_type = "cpu"
        self._replicas_differ = False
        self._unshared: list[float] = []
        self._gradient = np.zeros(0, np.float32)
        self._weights: NDArray[np.float32] | None = None

    def start(self) -> None:
        """Start the workers.

        Raises:
          StageError: one did not come up.
        """
        self._workers = self._launcher(self._setups)
        try:
            timeout_s = self._config.pipeline.start_timeout_s
            answers = self._workers.call([Describe()] * len(self._setups), timeout_s=timeout_s)
        except StageError:
            self.close()
            raise
        workers = [cast(Description, answer) for answer in answers]
        self._places = [_places(worker.layout, self._layout) for worker in workers]
        self._needs_obs = [worker.needs_obs for worker in workers]
        self._device_type = workers[0].device_type
        self._replicas_differ = workers[0].replicas_differ

    @property
    def device_type(self) -> str:
        """ "cpu" or "cuda", where the workers compute."""
        return self._device_type

    def update(self, blocks: Iterable[AnyRows], inputs: UpdateInputs, *, ahead: Ahead | None = None) -> UpdateResult:
        """As in the protocol of `Updater`; work starts when all rows have arrived, and nothing is copied ahead."""
        rows_per_worker, workers = self._rows_per_worker(blocks, inputs), self._config.pipeline.pipeline_workers
        requests = [Update(rows, own, gives_weights=rank < workers) for rank, (rows, own) in enumerate(rows_per_worker)]
        self._weights = None
        answers = [cast(Updated, answer) for answer in self._call(requests)]
        self._unshared = [answer.result.unshared for answer in answers[::workers]]
        self._weights = self._assemble([answer.weights for answer in answers if answer.weights is not None])
        results = [answer.result for answer in answers]
        errors = [result.row_errors for result in results if result.row_errors is not None]
        return dataclasses.replace(
            results[0],
            row_errors=np.concatenate(errors) if errors else None,
            bytes_sent=sum(result.bytes_sent for result in results),
        )

    def gradients(self, blocks: Iterable[AnyRows], inputs: UpdateInputs) -> LossStats:
        """The summed gradient over all workers, without a step; read it with `gradient_vector`."""
        requests = [Gradients(rows, inputs) for rows, inputs in self._rows_per_worker(blocks, inputs)]
        answers = [cast(GradientAnswer, answer) for answer in self._call(requests)]
        self._gradient = self._assemble([answer.vector for answer in answers])
        return answers[0].stats

    def gradient_vector(self) -> NDArray[np.float32]:
        """float32 [P], the result of the last `gradients`."""
        return self._gradient

    def weights(self) -> NDArray[np.float32]:
        """As in the protocol of `Updater`; the workers sent them with the last update."""
        if self._weights is None:
            answers = self._ask_first_replica(GiveWeights())
            self._weights = self._assemble([cast("NDArray[np.float32]", answer) for answer in answers])
        return self._weights.copy()

    def save(self) -> Arrays:
        """As in the protocol of `Updater`; the means over replicas of what differs between them."""
        if not self._replicas_differ:
            return self._joined(self._ask_first_replica(Save()))
        workers = self._config.pipeline.pipeline_workers
        answers = self._call([Save(averaged_only=rank >= workers) for rank in range(len(self._setups))])
        return _mean([self._joined(answers[at : at + workers]) for at in range(0, len(answers), workers)])

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """As in the protocol of `Updater`; restarts lost workers.

        Raises:
          ValueError: the arrays are for a network of another size.
        """
        weights_of_size(saved, self._layout.size)
        if self._workers is None:
            self.start()
        requests = []
        for places in self._places:
            own = {
                name: np.concatenate([array[whole] for whole, _ in places]) if is_vector(name) and array.size else array
                for name, array in saved.items()
            }
            requests.append(Load(own))
        self._weights = None
        self._call(requests)

    def close(self) -> None:
        """End the workers; may be called twice."""
        if self._workers is not None:
            self._workers.kill()
            self._workers = None

    def _call(self, requests: Sequence[Request | None]) -> list[Answer]:
        """Answers of the workers that get a request; if one is lost, end the others too, because they wait for it.

        Raises:
          ReplicaLostError: replicas were whole, and the error holds their weights. StageError: none was.
        """
        if self._workers is None:
            raise StageDiedError("the workers are not running")
        timeout_s = self._config.pipeline.stage_timeout_s
        asked = {rank: request for rank, request in enumerate(requests) if request is not None}
        answers = ask(self._workers, asked, timeout_s=timeout_s)
        error = loss_in(answers, list(asked), timeout_s=timeout_s)
        if error is None:
            return [cast(Answer, answers.get(rank)) for rank in range(len(requests))]
        lost = [rank for rank in asked if isinstance(answers.get(rank, error), StageError)]
        replicas, workers = self._config.pipeline.replicas, self._config.pipeline.pipeline_workers
        found = surviving_replicas(
            self._workers, lost, replicas=replicas, pipeline_workers=workers, timeout_s=timeout_s
        )
        self.close()
        if not found:
            raise error
        lost_steps = sum(steps for replica, steps in enumerate(self._unshared) if replica not in found)
        saved = _mean([self._joined(parts) for parts in found.values()])
        raise ReplicaLostError(str(error), saved, lost_steps=int(lost_steps)) from error

    def _ask_first_replica(self, request: Request) -> list[Answer]:
        workers = self._config.pipeline.pipeline_workers
        silent = len(self._setups) - workers
        return self._call([*([request] * workers), *([None] * silent)])[:workers]

    def _rows_per_worker(self, blocks: Iterable[AnyRows], inputs: UpdateInputs) -> list[tuple[Unrolls, UpdateInputs]]:
        """The inputs of each worker: the rows of its replica, with observations only if its blocks need them."""
        parts = list(blocks)
        kept = [part for part in parts if isinstance(part, Unrolls)]
        assert len(kept) == len(parts), "rows on one device for workers that have devices of their own"
        rows = concatenate(kept)
        replicas, microbatches = self._config.pipeline.replicas, self._config.microbatches
        if rows.num_rows % (replicas * microbatches):
            raise ValueError(
                f"{rows.num_rows} rows do not cut into {microbatches} equal microbatches "
                f"for each of {replicas} replicas"
            )
        num_rows = rows.num_rows // replicas
        inputs = dataclasses.replace(inputs, microbatches_per_block=microbatches)
        shares = [rows.rows(index * num_rows, (index + 1) * num_rows) for index in range(replicas)]
        given = [shares[rank // self._config.pipeline.pipeline_workers] for rank in range(len(self._setups))]
        return [
            (rows if needs_obs else dataclasses.replace(rows, obs={}), inputs)
            for rows, needs_obs in zip(given, self._needs_obs, strict=True)
        ]

    def _joined(self, answers: Sequence[Answer]) -> Arrays:
        """The arrays of one replica from those of its workers."""
        parts = [cast(Arrays, answer) for answer in answers]
        saved = dict(parts[0])
        for name in filter(is_vector, parts[0]):
            vectors = [cast("NDArray[np.float32]", part[name]) for part in parts]
            saved[name] = self._assemble(vectors) if vectors[0].size else vectors[0]
        return saved

    def _assemble(self, vectors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
        """Assemble float32 [P] from the parameters of the first replica's workers."""
        whole = np.zeros(self._layout.size, np.float32)
        for places, vector in zip(self._places, vectors, strict=False):
            for there, here in places:
                whole[there] = vector[here]
        return whole


def _mean(replicas: Sequence[Arrays]) -> Arrays:
    """The arrays of the first replica, with the means over all of those that are averaged; equal ones stay equal."""
    first, saved = replicas[0], dict(replicas[0])
    for name in filter(is_averaged, first):
        stacked = np.stack([arrays[name] for arrays in replicas])
        saved[name] = stacked.mean(axis=0, dtype=np.float64).astype(first[name].dtype)
    return saved


def _places(part: Layout, whole: Layout) -> list[tuple[slice, slice]]:
    """For each parameter of a worker: its slice of the whole vector and its slice of the worker's vector."""
    ends = np.cumsum(whole.sizes)
    starts = {name: (int(end) - size, int(end)) for name, size, end in zip(whole.names, whole.sizes, ends, strict=True)}
    places, offset = [], 0
    for name, size in zip(part.names, part.sizes, strict=True):
        places.append((slice(*starts[name]), slice(offset, offset + size)))
        offset += size
    return places


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
