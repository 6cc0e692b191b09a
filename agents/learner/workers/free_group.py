"""An updater over replicas on clocks of their own: each takes the next batch when it is idle.

Shape letter: P parameters of the whole network.
"""

from __future__ import annotations

import dataclasses
import logging
import math
import shutil
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.learner.algorithms.loss_stats import COLUMNS, LossStats
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import Ahead
from league.agents.learner.errors import StageDiedError, StageError, StageHungError
from league.agents.learner.replicas.free_replicas import FreeReplicas, make_free_mode
from league.agents.learner.replicas.server_rules import part_bounds
from league.agents.learner.step.updater import GroupReport, UpdateInputs, UpdateResult
from league.agents.learner.workers.free_worker import memory_of
from league.agents.learner.workers.row_memory import RowMemory
from league.agents.learner.workers.worker import (
    Answer,
    Describe,
    Description,
    GradientAnswer,
    Gradients,
    Load,
    Rejoin,
    Request,
    Save,
    Update,
    Updated,
    WorkerSetup,
)
from league.agents.learner.workers.worker_group import WorkerGroup, WorkerGroupLauncher
from league.agents.restart_state import TEACHER, WEIGHTS, Arrays, is_vector, weights_alone, weights_of_size
from league.agents.unroll.device_unrolls import AnyRows
from league.agents.unroll.unroll import Unrolls, concatenate
from league.agents.weights import Layout

logger = logging.getLogger(__name__)

MAX_FAILURES = 3
"""Losses of one member in a row after which the group gives up: a permanent cause will not go away by itself."""

LOOK_S = 0.2
"""Longest wait for an answer until deadlines are looked at."""

STARTING, LOADING, IDLE, BUSY, ASKED = "starting", "loading", "idle", "busy", "asked"
"""States of a member: it starts, takes over the consensus, does nothing, learns, or answers another request."""


@dataclasses.dataclass
class _Member:
    """One replica or shard. since: seconds of the clock when it began what it does. answer: to what it was asked."""

    doing: str = IDLE
    since: float = 0.0
    failures: int = 0
    answer: Answer = None


@dataclasses.dataclass
class _Batches:
    """Batches on their way through a group.

    Fields:
      held: of replicas (by rank) that begin together, once all of them have one. finished: and not yet returned.
      lost: sentences about members that were lost since the last return.
    """

    held: list[tuple[int, Update]] = dataclasses.field(default_factory=list)
    finished: list[Updated] = dataclasses.field(default_factory=list)
    lost: list[str] = dataclasses.field(default_factory=list)

    def take(self) -> UpdateResult:
        """All that has finished or was lost since the last call."""
        finished, self.finished = self.finished, []
        lost, self.lost = self.lost, []
        return merged(finished, lost=tuple(lost))


@dataclasses.dataclass
class _Saved:
    """The last restart state, from which a member that returns begins. teacher: None without one."""

    arrays: Arrays = dataclasses.field(default_factory=dict)
    teacher: NDArray[np.generic] | None = None

    def take(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """Keep a state that is loaded."""
        self.teacher = saved.get(TEACHER, self.teacher)
        self.arrays = {name: array for name, array in saved.items() if name != TEACHER}


class FreeGroup:
    """Replicas that wait for nobody, and the shards of their parameter server if they have one.

    A lost member is started again while the others learn. A replica loses its batch and returns with the consensus. A
    shard returns with the newest weights of its slice and the moments of the last `save` or `load`.

    Args:
      setups: one for each rank, the replicas first.
      layout: of the whole network.
      config: settings; its `stage_timeout_s` is the deadline of every answer, `start_timeout_s` that of a start.
      launcher: starts the members.
      clock: seconds.
    Attributes:
      device_type: "cpu" or "cuda", where the replicas compute.
    """

    def __init__(
        self,
        setups: Sequence[WorkerSetup],
        layout: Layout,
        config: LearnerConfig,
        *,
        launcher: WorkerGroupLauncher,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._setups = setups
        self._layout = layout
        self._config = config
        self._launcher = launcher
        self._clock = clock
        shards = len(setups) - self._replicas
        self._bounds = part_bounds(layout.size, shards) if shards > 0 else []
        self._workers: WorkerGroup | None = None
        self._members: list[_Member] = []
        self._idle: deque[int] = deque()
        self._batches = _Batches()
        self._saved = _Saved()
        self._newest = np.zeros(layout.size, np.float32)
        self._gradient = np.zeros(0, np.float32)
        self.device_type = "cpu"

    def start(self) -> None:
        """Start the members with the weights that they are built with.

        Raises:
          StageError: one did not come up.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="learner-free-"))
        setups = [dataclasses.replace(setup, folder=str(self._folder)) for setup in self._setups]
        self._workers = self._launcher(setups)
        memory = memory_of(str(self._folder), self._config, size=self._layout.size)
        self._consensus = make_free_mode(self._config.pipeline.update_mode, FreeReplicas(memory, member=-1))
        self._rows = [RowMemory(self._folder / f"rows-{rank}") for rank in range(self._replicas)]
        self._members = [_Member() for _ in setups]
        try:
            timeout_s = self._config.pipeline.start_timeout_s
            answers = self._workers.call([Describe()] * len(setups), timeout_s=timeout_s)
        except StageError:
            self.close()
            raise
        self.device_type = cast(Description, answers[0]).device_type
        self.load(weights_alone(self.weights()))

    @property
    def _replicas(self) -> int:
        """Members that learn; the others are shards."""
        return self._config.pipeline.replicas

    @property
    def num_ready(self) -> int:
        """Replicas that learn or wait for a batch: all but those that are being started again."""
        return sum(member.doing not in (STARTING, LOADING) for member in self._members[: self._replicas])

    def update(self, blocks: Iterable[AnyRows], inputs: UpdateInputs, *, ahead: Ahead | None = None) -> UpdateResult:
        """Hand a batch to an idle replica, once there is one; returns the sums over all that have finished since.

        That is nothing in the first calls. Nothing is copied ahead.

        Raises:
          StageError: a member was lost several times in a row.
        """
        rows = _joined(blocks)
        self._look(timeout_s=0.0)
        while not self._idle:
            self._look(timeout_s=LOOK_S)
        rank = self._idle.popleft()
        inputs = dataclasses.replace(inputs, microbatches_per_block=self._config.microbatches)
        self._batches.held.append((rank, Update(self._rows[rank].put(rows), inputs, gives_weights=False)))
        if not self._config.pipeline.waits_for_all or not self._idle:
            self._hand_out()
        return self._batches.take()

    def gradients(self, blocks: Iterable[AnyRows], inputs: UpdateInputs) -> LossStats:
        """The summed gradient of a batch in the first replica, without a step; read it with `gradient_vector`."""
        answer = cast(GradientAnswer, self._ask(0, Gradients(_joined(blocks), inputs)))
        self._gradient = answer.vector
        return answer.stats

    def gradient_vector(self) -> NDArray[np.float32]:
        """float32 [P], the result of the last `gradients`."""
        return self._gradient

    def weights(self) -> NDArray[np.float32]:
        """As in the protocol of `Updater`: the consensus as it is now. No replica is asked."""
        if self._workers is None:
            raise StageDiedError("the workers are not running")
        consensus = self._consensus.publish(torch.from_numpy(self._newest))
        self._newest = consensus.numpy().copy()
        return self._newest.copy()

    def save(self) -> Arrays:
        """As in the protocol of `Updater`; decisions of batches in hand are not in it."""
        if self._bounds:
            parts = [cast(Arrays, self._ask(rank, Save())) for rank in range(self._replicas, len(self._setups))]
            saved = dict(parts[0])
            for name in filter(is_vector, parts[0]):
                saved[name] = np.concatenate([part[name] for part in parts])
        else:
            saved = cast(Arrays, self._ask(self._first_idle(), Save()))
        saved[WEIGHTS] = self.weights()
        self._saved.arrays = saved
        return dict(saved)

    def load(self, saved: Mapping[str, NDArray[np.generic]]) -> None:
        """As in the protocol of `Updater`, once the replicas have finished; what they finish is not counted.

        Raises:
          ValueError: the arrays are for a network of another size.
        """
        weights_of_size(saved, self._layout.size)
        if self._workers is None:
            self.start()
        self._batches.held = []
        while any(member.doing != IDLE for member in self._members):
            self._look(timeout_s=LOOK_S)
        self._batches.finished = []
        self._saved.take(saved)
        for rank in (*range(self._replicas, len(self._setups)), *range(self._replicas)):  # shards listen first
            self._ask(rank, Load(self._part(rank, self._saved.arrays)))
        self._idle = deque(range(self._replicas))

    def close(self) -> None:
        """End the members; may be called twice."""
        if self._workers is not None:
            self._workers.kill()
            self._workers = None
            for rows in self._rows:
                rows.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _hand_out(self) -> None:
        """Let the replicas with a batch begin."""
        for rank, request in self._batches.held:
            self._send(rank, request, BUSY)
        self._batches.held = []

    def _send(self, rank: int, request: Request, doing: str) -> None:
        assert self._workers is not None
        member = self._members[rank]
        member.doing, member.since = doing, self._clock()
        self._workers.send(rank, request)

    def _ask(self, rank: int, request: Request) -> Answer:
        """The answer of a member, once it has finished what it does; again where it is lost meanwhile."""
        member = self._members[rank]
        while True:
            while member.doing != IDLE or any(rank == holder for holder, _ in self._batches.held):
                self._hand_out()
                self._look(timeout_s=LOOK_S)
            if rank in self._idle:
                self._idle.remove(rank)
            self._send(rank, request, ASKED)
            while member.doing == ASKED:
                self._look(timeout_s=LOOK_S)
            if member.doing == IDLE:
                return member.answer

    def _first_idle(self) -> int:
        """The replica that is idle first."""
        self._hand_out()
        while not self._idle:
            self._look(timeout_s=LOOK_S)
        return self._idle[0]

    def _look(self, *, timeout_s: float) -> None:
        """Take the answers that have come, waiting for the first; then restart members whose deadline has passed.

        Raises:
          StageError: a member was lost several times in a row.
        """
        if self._workers is None:
            raise StageDiedError("the workers are not running")
        for rank, answer in self._workers.receive(timeout_s=timeout_s):
            if isinstance(answer, StageError):
                self._lose(rank, answer)
            else:
                self._take(rank, answer)
        pipeline = self._config.pipeline
        for rank, member in enumerate(self._members):
            limit_s = pipeline.start_timeout_s if member.doing == STARTING else pipeline.stage_timeout_s
            if member.doing != IDLE and self._clock() - member.since > limit_s:
                self._lose(rank, StageHungError(f"no answer from worker {rank} within {limit_s:g} s"))

    def _take(self, rank: int, answer: Answer) -> None:
        """Take a member's answer, and let it do what comes next."""
        member = self._members[rank]
        if member.doing == STARTING:
            newest: Arrays = {**self._saved.arrays, WEIGHTS: self.weights()}
            self._send(rank, Rejoin(self._part(rank, newest)), LOADING)
            return
        if isinstance(answer, Updated):
            member.failures = 0
            self._batches.finished.append(answer)
            if answer.tally.lost_shards:
                self._look_after(answer.tally.lost_shards)
            else:
                for shard in self._members[self._replicas :]:
                    shard.failures = 0
        member.answer, member.doing = answer, IDLE
        if rank < self._replicas:
            self._idle.append(rank)

    def _look_after(self, shards: Sequence[int]) -> None:
        """Ask shards that a replica misses whether they are alive; the answer of a dead one is an error."""
        for shard in shards:
            if self._members[self._replicas + shard].doing == IDLE:
                self._send(self._replicas + shard, Describe(), ASKED)

    def _lose(self, rank: int, error: StageError) -> None:
        """Start a lost member again, while the others learn.

        Raises:
          StageError: it was lost several times in a row.
        """
        member = self._members[rank]
        member.failures += 1
        if member.failures >= MAX_FAILURES:
            self.close()
            raise error
        if rank < self._replicas:
            batch = " and its batch with it" if member.doing == BUSY else ""
            self._batches.lost.append(f"replica {rank} was lost{batch}: {error}")
        else:
            shard = rank - self._replicas
            self._batches.lost.append(
                f"shard {shard} was lost and is rebuilt from the newest weights, its moments from the last checkpoint: "
                f"{error}"
            )
        logger.warning(self._batches.lost[-1])
        if rank in self._idle:
            self._idle.remove(rank)
        assert self._workers is not None
        self._workers.restart(rank)
        self._send(rank, Describe(), STARTING)

    def _part(self, rank: int, saved: Mapping[str, NDArray[np.generic]]) -> Arrays:
        """The arrays that a member loads: a replica everything and the teacher, a shard its slice."""
        if rank < self._replicas:
            teacher = self._saved.teacher
            return dict(saved) if teacher is None else {**saved, TEACHER: teacher}
        start, stop = self._bounds[rank - self._replicas]
        return {
            name: array[start:stop].copy() if is_vector(name) and array.size else array for name, array in saved.items()
        }


def merged(finished: Sequence[Updated], *, lost: tuple[str, ...] = ()) -> UpdateResult:
    """One result of all batches that have finished.

    Sums are added; the norm is the mean of those that are finite, and not finite where there is none.
    """
    results = [update.result for update in finished]
    norms = [result.gradient_norm for result in results]
    finite = [norm for norm in norms if math.isfinite(norm)]
    sums = {name: math.fsum(getattr(result.stats, name) for result in results) for name in COLUMNS}
    lags = tuple(lag for update in finished for lag in update.tally.lags)
    return UpdateResult(
        stats=LossStats(**sums),
        gradient_norm=sum(finite) / len(finite) if finite else (math.nan if norms else 0.0),
        optimizer_steps=sum(result.optimizer_steps for result in results),
        skipped_replicas=sum(result.skipped_replicas for result in results),
        bytes_sent=sum(result.bytes_sent for result in results),
        group=GroupReport(len(finished), lags, sum(update.tally.dropped for update in finished), lost),
    )


def _joined(blocks: Iterable[AnyRows]) -> Unrolls:
    """The rows of all blocks."""
    parts = list(blocks)
    kept = [part for part in parts if isinstance(part, Unrolls)]
    assert len(kept) == len(parts), "rows on one device for workers that have devices of their own"
    return concatenate(kept)
