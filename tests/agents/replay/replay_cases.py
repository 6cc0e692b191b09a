"""Rows that are told apart by their rewards, and tables of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from league.agents.learner.data.row_source_config import ReplayConfig
from league.agents.replay.replay_table import RateLimiter, ReplayTable
from league.agents.replay.row_bytes import RowLayout
from league.agents.replay.row_files import MappedRows, memory_of
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from tests.agents.learner.learner_cases import BOARD_GAME

SPEC = UnrollSpec(BOARD_GAME, 3, core_size=2)
LAYOUT = RowLayout(SPEC)


def rows_of(*marks: int) -> Unrolls:
    """One row for each mark, which is the reward of all of its decisions."""
    rows = synthetic_unrolls(SPEC, rows=len(marks), seed=sum(marks) + 1)
    return dataclasses.replace(rows, rewards=np.repeat(np.float32(marks)[:, None], 3, axis=1))


def marks_of(unrolls: Unrolls) -> NDArray[np.int64]:
    """The marks of rows."""
    assert (unrolls.rewards == unrolls.rewards[:, :1]).all()
    return unrolls.rewards[:, 0].astype(np.int64)


def table_of(
    *,
    file: Path | None = None,
    generation: int = 0,
    seed: int = 0,
    limiter: RateLimiter | None = None,
    **options: object,
) -> ReplayTable:
    """A table, in memory or in a file, that nobody limits."""
    config = ReplayConfig(**{"capacity": 8, "min_rows": 1, **options})  # type: ignore[arg-type]
    memory = (
        memory_of(LAYOUT, config.capacity)
        if file is None
        else MappedRows(file, LAYOUT, config.capacity, generation=generation)
    )
    return ReplayTable(LAYOUT, memory, config, limiter or RateLimiter(1.0, 1, 1e9), np.random.default_rng(seed))


def held(table: ReplayTable) -> set[int]:
    """The marks of all rows that a table holds."""
    slots = np.flatnonzero(table._serials)
    return set(marks_of(LAYOUT.unrolls(table._memory.rows.take(slots, axis=0))).tolist())
