"""The learner host that decodes, learns and answers at the same time: rows stream into the learner as they come.

All learners live on one thread, which alternates between directives and updates. A chunk goes to the row source of its
player, which holds back whoever pushes. What others may read (the newest weights and counts) is one immutable record
per player, replaced after each update.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from league.agents.learner.data.feeder import GPU_DECODERS
from league.agents.learner.data.remote_rows import RemoteRows
from league.agents.learner.data.row_source import RowSource, SourcePlace
from league.agents.learner.errors import FeederClosedError, FeederTimeoutError
from league.agents.learner.learner import Learner, UpdateReport
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.codec import ChunkError, Lz4Codec, OpenChunk
from league.agents.weights import Weights
from league.envs.registry import spec_of
from league.hosts.learners.in_step import InStep
from league.hosts.learners.learner_host import (
    LearnersStoppedError,
    Newest,
    UnknownPlayer,
    Workers,
    check_address,
    decoded,
    newest_of,
    player_learner,
    player_source,
    progress_of,
)
from league.hosts.learners.requests import Answer, Request
from league.hosts.protocol import CheckpointTaken, InstallPlayer, LearnerProgress, Reconfigure
from league.hosts.setup import HostSetup

logger = logging.getLogger(__name__)

PATIENCE_S = 0.5
"""Longest wait for the next block of a batch that was begun; then it is begun again when all of it is there."""

WAKE_S = 5.0
"""Longest sleep of the learners' thread."""
PUBLISH_FRACTION = 0.1
"""Most of the time that copying weights for actors may take: those of a large network are not copied after each update.
"""


@dataclass
class _Held:
    """A player between two resets.

    Fields:
      newest: its weights are those published last; the rest is that of the last update.
      in_step: its actor hosts, where they wait for their update.
      first_version: chunks of older weights are those of its past self and are dropped.
      whole: a batch was begun too early: wait for all of its rows. generation: of its weights.
      asked: whether an actor has asked since weights were published. due_at: time before which none are.
    """

    learner: Learner
    source: RowSource[OpenChunk]
    newest: Newest
    in_step: InStep
    first_version: int = 0
    whole: bool = False
    asked: bool = True
    due_at: float = 0.0
    generation: int = 0


class AsyncLearnerHost:
    """Learners by player; every method but `start` and `close` may be called from any thread.

    Args:
      setup: what to build.
      dtype: compute type of the forward passes. patience_s: see `PATIENCE_S`.
      workers_of: of the learner of a player, where it is cut into stages or replicas.
      clock: seconds, for the share of time that copying weights takes.
      pushes_each: chunks of one actor host that wait here when it waits itself, with an idle core.
      spare_cores: cores that are idle in any case. rows_of: of a player and generation, in the hosts that keep them.
    """

    def __init__(
        self,
        setup: HostSetup,
        *,
        dtype: torch.dtype,
        workers_of: Callable[[str], Workers] = lambda player: Workers(),
        clock: Callable[[], float] = time.perf_counter,
        patience_s: float = PATIENCE_S,
        pushes_each: int = 1,
        spare_cores: int = 0,
        rows_of: Callable[[str, int], tuple[RemoteRows, ...]] = lambda player, generation: (),
    ) -> None:
        self.budget_fraction = 0.0
        self._setup = setup
        self._dtype = dtype
        self._workers_of = workers_of
        self._clock = clock
        self._patience_s = patience_s
        self._pushes_each = pushes_each
        self._spare_cores = spare_cores
        self._rows_of = rows_of
        self._request_deadline_s = setup.learner.pipeline.start_timeout_s + setup.learner.pipeline.stage_timeout_s
        self._spec = spec_of(setup.env)
        self._codec = Lz4Codec()
        self._changed = threading.Condition()
        self._requests: deque[Request[Any]] = deque()
        self._held: dict[str, _Held] = {}
        self._next_player: deque[str] = deque()
        self._refused: Counter[str] = Counter()
        self._closed = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="learners", daemon=True)

    def start(self) -> None:
        """Start the learners' thread."""
        self._thread.start()

    def install(self, task: InstallPlayer) -> None:
        self._request(lambda: self._install(task))

    def push(self, player: str, chunk: bytes, *, sender: str = "") -> Weights:
        """As in the protocol; returns when there is room for the chunk or, with `wait_for_update`, as by `InStep.wait`.

        Raises:
          ChunkError: also where it has too many rows.
          FeederFullError: no room within `setup.deadlines.credit_s`.
        """
        opened = self._codec.open(chunk)
        header, num_rows = opened.header, opened.num_rows
        check_address(header, run=self._setup.run, player=player)
        while True:
            held = self._get(player)
            if not 1 <= num_rows <= held.source.capacity:
                raise ChunkError(f"a chunk of {num_rows} rows does not fit a ring of {held.source.capacity}")
            held.asked = True
            if header.version_max < held.first_version:
                return held.newest.weights
            until = time.monotonic() + self._setup.deadlines.credit_s
            try:
                with self._changed if self._setup.wait_for_update else contextlib.nullcontext():
                    held.source.push(opened, num_rows=num_rows, timeout_s=self._setup.deadlines.credit_s)
                    if self._setup.wait_for_update:
                        held.in_step.wait(num_rows, sender=sender, until=until)
            except FeederClosedError:
                if self._get(player) is held:
                    raise
                continue  # reset meanwhile
            return self._get(player).newest.weights

    def leave(self, player: str, *, sender: str) -> None:
        """Tell those who wait for their update that an actor host plays for this player no more."""
        held = self._held.get(player)
        if held is not None:
            held.in_step.leave(sender)

    def published(self, player: str) -> Weights:
        held = self._get(player)
        held.asked = True
        return held.newest.weights

    def newest(self, player: str) -> Newest:
        """As in the protocol; waits for an update in hand where weights are behind."""
        held = self._get(player)
        if held.newest.weights.version == held.learner.version:
            return held.newest
        return self._request(lambda: self._refreshed(player))

    def progress(self) -> list[LearnerProgress]:
        """As in the protocol.

        Raises:
          LearnerError: learning has failed.
        """
        self._raise_if_over()
        with self._changed:
            everyone = list(self._held.items())
        return [self._progress_of(player, held) for player, held in everyone]

    def reset(self, player: str, weights: Weights) -> None:
        self._request(lambda: self._reset(player, weights))

    def reconfigure(self, task: Reconfigure) -> None:

        def change() -> None:
            if task.player in self._held:
                self._held[task.player].learner.reconfigure(task.learner)

        self._request(change)

    def checkpoint(self, player: str) -> CheckpointTaken:
        return self._request(lambda: self._checkpoint(player))

    def close(self) -> None:
        """End the thread and release every learner; may be called twice."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(self._request_deadline_s)
        if self._thread.is_alive():
            logger.warning("the learners have not ended after %g s; nobody waits for them", self._request_deadline_s)

    def _request(self, request: Callable[[], Answer]) -> Answer:
        """Have the learners' thread do it. Raises TimeoutError where it is late; what is not begun then is not done."""
        asked = Request(request)
        with self._changed:
            self._raise_if_over()
            self._requests.append(asked)
            self._changed.notify_all()
        return asked.result(self._request_deadline_s)

    def _serve(self) -> None:
        """The life of the learners' thread."""
        prepare_process()  # the number of threads that a sum may use is each thread's own setting
        try:
            while (work := self._next()) is not None:
                work()
        except Exception as error:  # the boundary of this thread: raised again in every caller's
            logger.exception("learning has failed")
            with self._changed:
                self._error = error
        finally:
            with self._changed:
                self._closed, requests = True, list(self._requests)
                self._requests.clear()
            for request in requests:
                request.refuse(self._stopped())
            for player in list(self._held):
                self._drop(player)

    def _next(self) -> Callable[[], None] | None:
        """The next task: directives come first; None at the end."""
        with self._changed:
            while not self._closed:
                if self._requests:
                    return self._requests.popleft().carry_out
                player = self._ready()
                if player is not None:
                    return lambda: self._learn(player)
                self._changed.wait(timeout=WAKE_S)
        return None

    def _ready(self) -> str | None:
        """The next player with a whole batch, else the next whose first rows have arrived."""
        ready = {player: self._held[player].source.rows_ready for player in self._next_player}
        rows = {player: self._setup.of(player).learner.batch_rows for player in ready}
        block = {player: rows[player] // self._setup.of(player).learner.microbatches for player in ready}
        whole = (player for player in ready if ready[player] >= rows[player])
        begun = (player for player in ready if ready[player] >= block[player] and not self._held[player].whole)
        return next(whole, None) or next(begun, None)

    def _learn(self, player: str) -> None:
        held = self._held[player]
        self._next_player.remove(player)
        self._next_player.append(player)
        try:
            with held.source.batch(timeout_s=self._patience_s) as blocks:
                report = held.learner.update_stream(
                    blocks,
                    budget_fraction=self.budget_fraction,
                    threads=self._threads_of_use(player),
                    ahead=blocks.ahead,
                    fresh_steps=blocks.fresh_steps,
                )
                held.source.learnt(held.learner.row_errors)
        except FeederTimeoutError:
            held.whole = True  # nothing was changed, and the rows that came are still there
            return
        except FeederClosedError:
            if self._closed:
                return
            raise
        held.whole = False
        if self._setup.wait_for_update or (held.asked and self._clock() >= held.due_at):
            self._publish(player, held, report)
        else:
            weights = held.newest.weights
            held.newest = Newest(weights, progress_of(player, held.learner), report, held.learner.skipped_updates)
        held.in_step.learnt()

    def _threads_of_use(self, player: str) -> int:
        """Threads for the next update: one, one for each spare core, and one for each actor host that waits for room.

        A batch in parts costs more in total than in one piece, so that it is cut only where cores would be idle.
        """
        config = self._setup.of(player).learner
        with self._changed:
            waiting = sum(held.source.waiting for held in self._held.values()) // self._pushes_each
        most = min(config.pipeline.threads, 1 + self._spare_cores + waiting)
        return next(number for number in range(most, 0, -1) if config.batch_rows % number == 0)

    def _publish(self, player: str, held: _Held, report: UpdateReport | None) -> None:
        begun, held.asked = self._clock(), False
        held.newest = newest_of(player, held.learner, report)
        ended = self._clock()
        held.due_at = ended + (ended - begun) * (1.0 / PUBLISH_FRACTION - 1.0)

    def _refreshed(self, player: str) -> Newest:
        held = self._get(player)
        if held.newest.weights.version != held.learner.version:
            self._publish(player, held, held.newest.update)
        return held.newest

    def _install(self, task: InstallPlayer) -> None:
        self._drop(task.player)
        workers = self._workers_of(task.player)
        learner = player_learner(task, self._setup, self._spec, dtype=self._dtype, workers=workers)
        self._hold(task.player, learner, first_version=0, generation=task.generation)

    def _reset(self, player: str, weights: Weights) -> None:
        held = self._get(player)
        held.learner.reset(weights)
        self._hold(player, held.learner, first_version=held.learner.version, generation=held.generation + 1)
        self._release(player, held)

    def _checkpoint(self, player: str) -> CheckpointTaken:
        learner = self._get(player).learner
        return CheckpointTaken(progress=progress_of(player, learner), saved=learner.save())

    def _hold(self, player: str, learner: Learner, *, first_version: int, generation: int) -> None:
        has_gpu = torch.cuda.is_available()
        own = self._setup.of(player)
        place: SourcePlace[OpenChunk] = SourcePlace(
            lambda chunk: decoded(chunk, own),
            threads=GPU_DECODERS if has_gpu and not self._setup.wait_for_update else 1,
            changed=self._changed,
            pinned=has_gpu,
            generation=generation,
            hosts=self._rows_of(player, generation),
        )
        source = player_source(player, self._setup, self._spec, place)
        in_step = InStep(self._changed, batch_rows=own.learner.batch_rows)
        with self._changed:
            newest = newest_of(player, learner, None)
            self._held[player] = _Held(learner, source, newest, in_step, first_version, generation=generation)
            if player not in self._next_player:
                self._next_player.append(player)

    def _drop(self, player: str) -> None:
        with self._changed:
            held = self._held.pop(player, None)
            if held is not None:
                self._next_player.remove(player)
        if held is not None:
            self._release(player, held)
            held.learner.close()

    def _release(self, player: str, held: _Held) -> None:
        """End what holds the rows of a player; its learner stays."""
        held.source.close()
        held.in_step.close()
        self._count_refused(player, held.source)

    def _progress_of(self, player: str, held: _Held) -> LearnerProgress:
        newest = held.newest
        return LearnerProgress(newest.progress, newest.update, newest.skipped, self._count_refused(player, held.source))

    def _count_refused(self, player: str, source: RowSource[OpenChunk]) -> int:
        """Chunks of a player that were refused so far; those that are new are logged."""
        new = source.report()
        if new.refused:
            logger.warning("%d chunks of %s were refused: %s", new.refused, player, new.reason)
        with self._changed:
            self._refused[player] += new.refused
            return self._refused[player]

    def _get(self, player: str) -> _Held:
        self._raise_if_over()
        held = self._held.get(player)
        if held is None:
            raise UnknownPlayer(f"player {player} is not held by this learner host")
        return held

    def _raise_if_over(self) -> None:
        if self._closed or self._error is not None:
            raise self._stopped()

    def _stopped(self) -> LearnersStoppedError:
        reason = "the learner host is closed" if self._error is None else f"learning has failed: {self._error}"
        stopped = LearnersStoppedError(reason)
        stopped.__cause__ = self._error
        return stopped
