"""A pipeline in one process: a thread per stage (with a CUDA stream on a GPU) and queues in between.

Shape letters: S stages, M microbatches.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from league.agents.learner.algorithms.objective import BatchLoss, LossWeights, Objective
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Batch
from league.agents.learner.data.streams import mark, wait_for
from league.agents.learner.errors import StageHungError
from league.agents.learner.pipeline.schedules import tasks_of
from league.agents.learner.pipeline.stages import Stage, cut_network, even_cut
from league.agents.learner.step.backend import Placement, SingleBackend
from league.agents.nets.network import Network, NetworkOutput


class _Stopped(Exception):  # noqa: N818
    """Another stage failed, so this one gives up."""


@dataclass(frozen=True)
class _Parcel:
    """A message between stages: a microbatch with its features, or a gradient; `ready` on the sender's stream."""

    tensor: Tensor | None
    batch: Batch | None = None
    ready: torch.cuda.Event | None = None


@dataclass
class _Run:
    """One batch in the pipeline.

    Fields:
      forward, backward: [S] queues of inputs of each stage.
      losses: of the microbatches, in the order of their rows.
      beats: [S] tasks done; errors: raised by stages; ended: stages that have finished.
    """

    loss_weights: LossWeights
    forward: list[queue.SimpleQueue[_Parcel | None]]
    backward: list[queue.SimpleQueue[_Parcel | None]]
    beats: list[int]
    losses: list[BatchLoss] = field(default_factory=list)
    errors: list[BaseException] = field(default_factory=list)
    ended: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    stopped: bool = False
    started: torch.cuda.Event | None = None
    finished: dict[int, torch.cuda.Event] = field(default_factory=dict)

    def stop(self) -> None:
        """Make every stage give up before its next task; waiting stages give up at once."""
        self.stopped = True
        for box in (*self.forward, *self.backward):
            box.put(None)


class ThreadedPipelineBackend:
    """Stages that work in parallel on different microbatches.

    On CPU cores the stages compute in parallel; on one GPU the gain is the idle time of a single stage's kernels.
    """

    def __init__(self, network: Network, objective: Objective, config: LearnerConfig, placement: Placement) -> None:
        cut = config.pipeline.stage_cut or even_cut(len(network.blocks), config.pipeline.stages)
        self._stages = cut_network(network, cut)
        self._objective = objective
        self._config = config
        self._placement = placement
        self._whole = SingleBackend(network, objective, config, placement)
        self._jobs: list[queue.SimpleQueue[_Run | None]] = []
        self._threads: list[threading.Thread] = []

    def accumulate(self, microbatches: Iterable[Batch], loss_weights: LossWeights) -> BatchLoss:
        """As in the protocol.

        Raises:
          ValueError: there are not exactly `config.microbatches` microbatches.
          StageHungError: no stage finished a task for `pipeline.stage_timeout_s` seconds. Its thread may still run and
            add to the gradients of its parameters: replace them before the next batch. After any other error all
            stages have ended.
        """
        if not self._threads:
            self._start()
        run = _Run(
            loss_weights=loss_weights,
            forward=[queue.SimpleQueue() for _ in self._stages],
            backward=[queue.SimpleQueue() for _ in self._stages],
            beats=[0] * len(self._stages),
            started=mark(self._placement.device),
        )
        for jobs in self._jobs:
            jobs.put(run)
        try:
            self._feed(run, microbatches)
            self._wait(run)
        except BaseException as error:
            run.stop()
            limit = self._config.pipeline.stage_timeout_s
            stuck = self._end(timeout_s=0.0 if isinstance(error, StageHungError) else limit)
            if stuck and isinstance(error, Exception) and not isinstance(error, StageHungError):
                raise StageHungError(f"{stuck} did not end within {limit:g} s") from error
            raise
        for event in run.finished.values():
            torch.cuda.current_stream(self._placement.device).wait_event(event)
        return BatchLoss.of(run.losses, device=self._placement.device)

    def evaluate(self, microbatches: Sequence[Batch]) -> NetworkOutput | None:
        """As in the protocol; runs the stages one by one in the calling thread."""
        return self._whole.evaluate(microbatches)

    def close(self) -> None:
        """End the threads."""
        self._end(timeout_s=self._config.pipeline.stage_timeout_s)

    def _end(self, *, timeout_s: float) -> str:
        """End the threads; returns the names of those that still run after `timeout_s` seconds."""
        for jobs in self._jobs:
            jobs.put(None)
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))
        stuck = ", ".join(thread.name for thread in self._threads if thread.is_alive())
        if self._placement.device.type == "cuda" and not stuck:
            # The threads have ended, but their GPU work may still add to the gradients.
            torch.cuda.synchronize(self._placement.device)
        self._jobs, self._threads = [], []
        return stuck

    def _start(self) -> None:
        self._jobs = [queue.SimpleQueue() for _ in self._stages]
        self._threads = [
            threading.Thread(target=self._serve, args=(stage, jobs), name=f"stage-{stage.index}", daemon=True)
            for stage, jobs in zip(self._stages, self._jobs, strict=True)
        ]
        for thread in self._threads:
            thread.start()

    def _feed(self, run: _Run, microbatches: Iterable[Batch]) -> None:
        expected, count = self._config.microbatches, 0
        for count, batch in enumerate(microbatches, start=1):
            if count <= expected and not run.errors:
                run.forward[0].put(_Parcel(None, batch, mark(self._placement.device)))
        if count != expected and not run.errors:
            raise ValueError(f"the pipeline was given {count} microbatches, it is set up for {expected}")

    def _wait(self, run: _Run) -> None:
        """Wait until all stages finish or one fails; if no stage makes progress, one counts as hung."""
        limit, seen, since = self._config.pipeline.stage_timeout_s, list(run.beats), time.monotonic()
        through = 0
        while through < len(self._stages) and not run.errors:
            if run.ended.acquire(timeout=max(0.0, min(limit, since + limit - time.monotonic()))):
                through += 1
            if run.beats != seen:
                seen, since = list(run.beats), time.monotonic()
            elif through < len(self._stages) and time.monotonic() - since >= limit and not run.errors:
                tasks = 2 * self._config.microbatches
                behind = [
                    f"stage {index} did {beats} of {tasks} tasks" for index, beats in enumerate(seen) if beats < tasks
                ]
                raise StageHungError(f"no stage made progress for {limit:g} s: {', '.join(behind)}")
        if run.errors:
            raise run.errors[0]

    def _serve(self, stage: Stage, jobs: queue.SimpleQueue[_Run | None]) -> None:
        """The loop of a stage's thread: serves one run after the other."""
        cuda = self._placement.device.type == "cuda"
        stream = torch.cuda.Stream(self._placement.device) if cuda else None  # type: ignore[no-untyped-call]
        while (run := jobs.get()) is not None:
            try:
                with torch.cuda.stream(stream):
                    if stream is not None and run.started is not None:
                        stream.wait_event(run.started)
                    self._work(stage, run)
                    event = mark(self._placement.device)
                    if event is not None:
                        run.finished[stage.index] = event
            except _Stopped:
                pass
            except Exception as error:  # the boundary of this thread: the caller's thread raises it again
                run.errors.append(error)
                run.stop()
            run.ended.release()

    def _work(self, stage: Stage, run: _Run) -> None:
        tasks = tasks_of(
            self._config.pipeline.schedule,
            stage=stage.index,
            num_stages=len(self._stages),
            num_microbatches=self._config.microbatches,
        )
        held: dict[int, tuple[Tensor | None, Tensor]] = {}
        for task in tasks:
            if run.stopped:
                raise _Stopped
            if task.backward:
                self._backward(stage, run, *held.pop(task.microbatch))
            else:
                held[task.microbatch] = self._forward(stage, run)
            run.beats[stage.index] += 1

    def _forward(self, stage: Stage, run: _Run) -> tuple[Tensor | None, Tensor]:
        """Run a forward pass; returns the stage's input and its output: features, or the loss in the last stage."""
        parcel = self._take(run.forward[stage.index])
        assert parcel.batch is not None, "a forward parcel carries its microbatch"
        features = None if parcel.tensor is None else parcel.tensor.requires_grad_()
        with self._placement.autocast():
            result = stage.run(features, parcel.batch)
        if isinstance(result, NetworkOutput):
            loss = self._objective.loss(result, parcel.batch, run.loss_weights)
            run.losses.append(BatchLoss(loss.columns, loss.row_errors))
            return features, loss.total
        run.forward[stage.index + 1].put(_Parcel(result.detach(), parcel.batch, mark(self._placement.device)))
        return features, result

    def _backward(self, stage: Stage, run: _Run, features: Tensor | None, result: Tensor) -> None:
        gradient = None if stage.is_last else self._take(run.backward[stage.index]).tensor
        torch.autograd.backward(result, gradient)
        if features is not None:
            run.backward[stage.index - 1].put(_Parcel(features.grad, ready=mark(self._placement.device)))

    def _take(self, box: queue.SimpleQueue[_Parcel | None]) -> _Parcel:
        parcel = box.get()
        if parcel is None:
            raise _Stopped
        tensors = [] if parcel.batch is None else parcel.batch.tensors()
        read = tensors if parcel.tensor is None else [*tensors, parcel.tensor]
        wait_for(parcel.ready, self._placement.device, read=read)
        return parcel
