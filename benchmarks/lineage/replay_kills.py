"""Thirty SIGKILLs of replay hosts under load: rows that are lost, damaged or there twice, and how long who waited.

Rows differ in their rewards. Each of several threads pushes chunk after chunk, so that its rows in a host have
their marks in the order of their serials. A missing row was evicted only if the thread's older ones are missing too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import ray
from numpy.typing import NDArray

from benchmarks.report import Report
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.nets.config import NetworkConfig
from league.agents.replay.row_bytes import RowLayout, checksums_of, computed_checksums, serials_of
from league.agents.replay.row_files import MappedRows
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from league.config.run_config import RuntimeConfig
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    InstallPlayer,
    LearnerProgress,
    PlayerInstalled,
)
from league.hosts.protocol import (
    Report as Event,
)
from league.hosts.setup import HostSetup

KILLS, HOSTS, SEED = 30, 2, 1
ENV = EnvConfig("tic_tac_toe")
RUN, PLAYER = "kills", "main-0"
STEPS, CHUNK, THREADS = 4, 64, 4
MARKS = 1 << 22
"""Of one thread; all of them are whole numbers of a float32."""
OPTIONS: dict[str, object] = {"capacity": 1 << 13, "min_rows": 64, "samples_per_insert": 2.0, "storage": "file"}
"""Few rows, so that most are evicted between two kills."""
UPDATES_BETWEEN = 5
DEADLINE_S = 120.0


@dataclass
class Pushes:
    """Pushes of several threads.

    Fields:
      acknowledged: marks of the rows whose push was answered. failed: pushes that were not. longest_s: of any.
    """

    runtime: RayRuntime
    acknowledged: list[int] = field(default_factory=list)
    failed: int = 0
    longest_s: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """A context in which they are made."""
        threads = [threading.Thread(target=self._push_all, args=(number * MARKS,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._over.set()
            for thread in threads:
                thread.join()

    def _push_all(self, mark: int) -> None:
        rows, codec = synthetic_unrolls(UnrollSpec(spec_of(ENV), STEPS), rows=CHUNK, seed=0), Lz4Codec()
        while not self._over.is_set():
            marks = np.arange(mark, mark + CHUNK)
            mark += CHUNK
            marked = dataclasses.replace(
                rows,
                rewards=np.repeat(marks.astype(np.float32)[:, None], STEPS, axis=1),
                versions=np.zeros((CHUNK, STEPS), np.int32),
            )
            chunk = codec.encode(marked, ChunkHeader(run=RUN, player=PLAYER, version_min=0, version_max=0))
            begun = time.monotonic()
            try:
                handle = self.runtime._roster.learner_handles()[PLAYER]
                ray.get(handle.push.remote(PLAYER, chunk, have=-1, sender="benchmark"))
                self.acknowledged.extend(marks.tolist())
            except ray.exceptions.RayError:
                self.failed += 1
            self.longest_s = max(self.longest_s, time.monotonic() - begun)


@dataclass
class Watch:
    """Reports of the runtime. version: of the learner; longest_s: between two reports with different versions."""

    runtime: RayRuntime
    version: int = -1
    longest_s: float = 0.0
    _changed_at: float = field(default_factory=time.monotonic)

    def until(self, condition: Callable[[Event], bool]) -> None:
        """Poll until a report fits. Raises TimeoutError."""
        end = time.monotonic() + DEADLINE_S
        while time.monotonic() < end:
            found = [condition(event) for event in self._polled()]
            if any(found):
                return
        raise TimeoutError(f"it did not come within {DEADLINE_S:g} s")

    def _polled(self) -> tuple[Event, ...]:
        events = tuple(self.runtime.poll(0.2, budget_fraction=0.0))
        for event in events:
            if isinstance(event, LearnerProgress) and event.progress.version != self.version:
                now = time.monotonic()
                self.longest_s = max(self.longest_s, now - self._changed_at) if self.version >= 0 else 0.0
                self.version, self._changed_at = event.progress.version, now
        return events


def replay_kills(folder: Path) -> Report:
    """The rows of this part."""
    report, kills, rng = Report(), KILLS, np.random.default_rng(SEED)
    setup = _setup(folder / "rows")
    settings = RuntimeConfig(
        kind="ray", address="local", actor_hosts=1, learner_hosts=1, replay_hosts=HOSTS, object_store_mb=80
    )
    with contextlib.closing(RayRuntime(setup, settings, players=(PLAYER,))) as runtime:
        watch = Watch(runtime)
        runtime.start()
        watch.until(lambda event: isinstance(event, HostStarted) and event.kind == "learner_host")
        runtime.submit(InstallPlayer(PLAYER))
        watch.until(lambda event: isinstance(event, PlayerInstalled))
        pushes = Pushes(runtime)
        with pushes.running():
            watch.until(lambda _: watch.version >= UPDATES_BETWEEN)
            for _ in range(kills):
                _kill(watch, f"replay-{rng.integers(HOSTS)}")
                print(f"version {watch.version}, {len(pushes.acknowledged)} rows acknowledged", flush=True)
    _add(report, kills, pushes, watch, _found(setup, folder / "rows"), push_s=setup.deadlines.push_s)
    return report


def _kill(watch: Watch, name: str) -> None:
    """Kill a host, and wait until another is in its place and the learner has made some updates."""
    (pid,) = (worker.pid for worker in watch.runtime.workers() if worker.name == name)
    os.kill(pid, signal.SIGKILL)
    watch.until(lambda event: isinstance(event, HostLost) and event.host == name)
    watch.until(lambda event: isinstance(event, HostStarted) and event.host == name)
    version = watch.version
    watch.until(lambda _: watch.version >= version + UPDATES_BETWEEN)


@dataclass(frozen=True)
class Found:
    """The rows of one host's file: serials and marks uint64, int64 [R], in the order of the serials; damaged: others.

    is_full: whether rows have been evicted.
    """

    serials: NDArray[np.uint64]
    marks: NDArray[np.int64]
    damaged: int
    is_full: bool

    def oldest(self, thread: int) -> int:
        """Mark of a thread's oldest row that is kept, 0 where none has been evicted; beyond all if none is kept."""
        own = self.marks[self.marks // MARKS == thread]
        return (int(own[0]) if own.size else (thread + 1) * MARKS) if self.is_full else 0

    @property
    def disorder(self) -> int:
        """Neighbours of one thread whose later row has the earlier mark."""
        each = (self.marks[self.marks // MARKS == thread] for thread in range(THREADS))
        return sum(int(np.count_nonzero(np.diff(own) <= 0)) for own in each)


def _found(setup: HostSetup, folder: Path) -> list[Found]:
    layout = RowLayout(UnrollSpec(spec_of(ENV), STEPS))
    capacity, found = ReplayConfig(**OPTIONS).share(HOSTS).capacity, []  # type: ignore[arg-type]
    for place in range(HOSTS):
        memory = MappedRows(folder / PLAYER / f"replay-{place}" / "rows", layout, capacity, generation=0)
        kept = memory.rows[np.flatnonzero(checksums_of(memory.rows))]
        whole = kept[computed_checksums(kept) == checksums_of(kept)]
        serials = serials_of(whole)
        order = np.argsort(serials)
        marks = layout.unrolls(whole).rewards[:, 0].astype(np.int64)
        found.append(Found(serials[order], marks[order], len(kept) - len(whole), int(serials.max()) > capacity))
        memory.close()
    return found


def _add(report: Report, kills: int, pushes: Pushes, watch: Watch, found: list[Found], *, push_s: float) -> None:
    there = Counter(mark for one in found for mark in one.marks.tolist())
    evicted_before = [max(one.oldest(thread) for one in found) for thread in range(THREADS)]
    missing = [mark for mark in pushes.acknowledged if mark not in there]
    lost = sum(mark >= evicted_before[mark // MARKS] for mark in missing)
    gaps = sum(int(np.count_nonzero(np.diff(one.serials) != 1)) for one in found)
    report.add("SIGKILLs of replay hosts under load", kills, "", at_least=1)
    report.add("rows acknowledged", len(pushes.acknowledged), "rows", at_least=1)
    report.add("of these in a file at the end", len(pushes.acknowledged) - len(missing), "rows", at_least=1)
    report.add("of these evicted", len(missing) - lost, "rows")
    report.add("acknowledged rows lost", lost, "rows", at_most=0)
    report.add("gaps in the serials of a file", gaps, "gaps", at_most=0)
    report.add("rows that are damaged", sum(one.damaged for one in found), "rows", at_most=0)
    report.add("rows that are there twice", there.total() - len(there), "rows", at_most=0)
    report.add("rows out of the order of their pushes", sum(one.disorder for one in found), "rows", at_most=0)
    report.add("pushes that were not acknowledged", pushes.failed, "")
    report.add("longest push", pushes.longest_s, "s", at_most=push_s)
    report.add("longest time between two reports of new weights", watch.longest_s, "s", at_most=DEADLINE_S)
    report.add("updates of the learner", watch.version, "", at_least=kills * UPDATES_BETWEEN)


def _setup(folder: Path) -> HostSetup:
    learner = LearnerConfig(
        unroll_length=STEPS,
        batch_rows=CHUNK,
        algorithm="dqn",
        row_source={"kind": "replay", **OPTIONS},
        precision="float32",
    )
    return HostSetup(
        run=RUN,
        env=ENV,
        network=NetworkConfig(hidden=(8,), head="q_values"),
        learner=learner,
        num_envs=6,
        chunk_rows=CHUNK,
        seed=0,
        rows=str(folder),
        replay_hosts=HOSTS,
    )
