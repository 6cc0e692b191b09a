"""Replay: its tree, its rows in a mapped file, and a learner that samples beside one that does not.

Shape letters: B rows of a batch.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.lineage.replay_on_ray import PLAYER, RUN, source_on_ray
from benchmarks.report import Report
from league.agents.learner.algorithms.objective import Loss
from league.agents.learner.algorithms.vtrace import VTraceObjective
from league.agents.learner.build import build_learner
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import RowSource, SourcePlace, make_row_source
from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.nets.config import NetworkConfig
from league.agents.replay.priority_tree import PriorityTree
from league.agents.replay.replay_table import RateLimiter, ReplayTable
from league.agents.replay.row_bytes import RowLayout
from league.agents.replay.row_files import MappedRows
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of

SLOTS, BATCH, STEPS = 1 << 20, 512, 16
FILE_ROWS = 1 << 17
CHUNK_ROWS = 128
DEADLINE_S = 60.0
ROUNDS = 7
"""Of each figure, whose median is taken: others use the machine too."""
ENV = EnvConfig("connect_four")
GAME = spec_of(ENV)
SPEC = UnrollSpec(GAME, STEPS)


class Replayed(VTraceObjective):
    """V-trace that also learns from old rows, its errors the rewards: the same work for both sources of rows."""

    needs_fresh = False

    def loss(self, output: Any, batch: Any, loss_weights: Any) -> Loss:
        """As in the protocol."""
        return dataclasses.replace(super().loss(output, batch, loss_weights), row_errors=batch.rewards.abs().sum(1))


def report(folder: Path) -> Report:
    """The rows of this part, in core-seconds of one thread."""
    prepare_process()
    made = Report()
    _file(made, folder)  # first: memory that others have given back to the allocator would be used and not be seen
    _tree(made)
    _learner(made)
    return made


def _tree(made: Report) -> None:
    rng = np.random.default_rng(0)
    tree = PriorityTree(SLOTS)
    tree.set(np.arange(SLOTS), rng.random(SLOTS))
    points, weights = rng.random(BATCH), rng.random(BATCH)
    drawn = tree.draw(points)
    sample_s = _core_seconds(lambda: tree.draw(points), calls=100)
    update_s = _core_seconds(lambda: tree.set(drawn, weights), calls=100)
    made.add("sum tree of 2^20: sample 512 rows", 1e3 * sample_s, "ms")
    made.add("sum tree of 2^20: update 512 rows", 1e3 * update_s, "ms")
    made.add("sum tree of 2^20: sample and update 512 rows", 1e3 * (sample_s + update_s), "ms", at_most=0.8)


def _file(made: Report, folder: Path) -> None:
    """Rows in a mapped file."""
    before = _anonymous_bytes()
    layout = RowLayout(SPEC)
    options = ReplayConfig(capacity=FILE_ROWS, min_rows=1)
    memory = MappedRows(folder / "rows", layout, FILE_ROWS, generation=0)
    table = ReplayTable(layout, memory, options, RateLimiter(1.0, 1, 1e12), np.random.default_rng(1))
    chunk = synthetic_unrolls(SPEC, rows=CHUNK_ROWS, seed=1)
    for _ in range(FILE_ROWS // CHUNK_ROWS):
        table.insert(chunk)
    insert_s = _core_seconds(lambda: table.insert(chunk), calls=100) / CHUNK_ROWS
    slots = np.random.default_rng(2).integers(0, FILE_ROWS, (64, BATCH))
    numbers = iter(range(1 << 60))
    gather_s = _core_seconds(lambda: layout.unrolls(memory.rows.take(slots[next(numbers) % 64], axis=0)), calls=64)
    sample_s = _core_seconds(lambda: table.sample(BATCH), calls=64)
    encoded = Lz4Codec().encode(chunk, ChunkHeader(run="r", player="p", version_min=0, version_max=10))
    decode_s = _core_seconds(lambda: Lz4Codec().decode(encoded), calls=50) / CHUNK_ROWS
    own_bytes = 8 * (2 * FILE_ROWS + FILE_ROWS)  # tree and serials
    grown = _anonymous_bytes() - before - own_bytes
    made.add("bytes of a row of Connect Four, 16 decisions", float(layout.row_bytes), "B")
    made.add("rows into a mapped file, with their checksums", 1.0 / insert_s, "rows/core-s", at_least=250e3)
    made.add("random gather of 512 rows from a mapped file", BATCH / gather_s, "rows/core-s", at_least=500e3)
    made.add("samples of 512 rows with priorities and weights", BATCH / sample_s, "rows/core-s")
    made.add("rows decoded from chunks", 1.0 / decode_s, "rows/core-s")
    made.add("anonymous memory of a replay over a mapped file", grown / 2**20, "MiB", at_most=64.0)


def _learner(made: Report) -> None:
    """All learn from batches of 128 rows, one batch pushed for each update: a list of rows, or a replay here or on Ray.

    Counted are the core-seconds of the learner's process; a replay host decodes, stores and samples in its own.
    """
    name = f"{Replayed.__module__}:{Replayed.__qualname__}"
    config = LearnerConfig(unroll_length=STEPS, batch_rows=CHUNK_ROWS, algorithm=name, precision="float32")
    replaying = dataclasses.replace(
        config, row_source={"kind": "replay", "capacity": 1 << 14, "min_rows": 1, "samples_per_insert": 1.0}
    )
    rows = synthetic_unrolls(SPEC, rows=CHUNK_ROWS, seed=1)
    codec = Lz4Codec()
    chunk = codec.open(codec.encode(rows, ChunkHeader(run=RUN, player=PLAYER, version_min=0, version_max=10)))
    place = SourcePlace[Unrolls](lambda rows: rows, chunk_rows=CHUNK_ROWS, threads=0)
    with source_on_ray(ENV, SPEC, replaying) as on_ray:
        steps = {
            "fifo": _step(config, make_row_source(SPEC, config, place), rows),
            "replay": _step(replaying, make_row_source(SPEC, replaying, place), rows),
            "host": _step(replaying, on_ray, chunk),
        }
        taken: dict[str, list[float]] = {kind: [] for kind in steps}
        for _ in range(2 * ROUNDS):  # side by side, so that all have the same machine
            for kind, timed in steps.items():
                taken[kind].append(_once(timed, calls=20))
    rates = {kind: 1.0 / float(np.median(seconds)) for kind, seconds in taken.items()}
    made.add("learner with fifo, batches of 128 rows", rates["fifo"], "updates/core-s")
    made.add("learner with replay, batches of 128 rows", rates["replay"], "updates/core-s")
    made.add("learner with replay over learner with fifo", rates["replay"] / rates["fifo"], "x", at_least=0.85)
    made.add("learner through a replay host on Ray", rates["host"], "updates/core-s")
    made.add("through a replay host on Ray over fifo", rates["host"] / rates["fifo"], "x", at_least=0.70)


def _step(config: LearnerConfig, source: RowSource[Any], chunk: Any) -> Callable[[], None]:
    """One push of a batch and one update of a learner of its own; the first has been made."""
    learner = build_learner(GAME, NetworkConfig(hidden=(128, 128)), config, seed=0, dtype=torch.float32)

    def step() -> None:
        source.push(chunk, num_rows=CHUNK_ROWS, timeout_s=DEADLINE_S)
        with source.batch(timeout_s=DEADLINE_S) as blocks:
            learner.update_stream(blocks, budget_fraction=0.0, fresh_steps=blocks.fresh_steps)
            source.learnt(learner.row_errors)

    source.push(chunk, num_rows=CHUNK_ROWS, timeout_s=DEADLINE_S)
    step()
    return step


def _core_seconds(call: Callable[[], object], *, calls: int) -> float:
    """Median over the rounds of the core-seconds of one call."""
    return float(np.median([_once(call, calls=calls) for _ in range(ROUNDS)]))


def _once(call: Callable[[], object], *, calls: int) -> float:
    start = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - start) / calls


def _anonymous_bytes() -> int:
    """Resident memory of this process that is of no file: the pages that every mapping names as anonymous."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    return 1024 * sum(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
