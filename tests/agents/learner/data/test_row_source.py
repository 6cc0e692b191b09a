"""The contract of row sources: rows in and out, errors of rows back, an end; a stranger's source is one file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import pytest

from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.row_source import RowBlocks, RowSource, SourcePlace, make_row_source
from league.agents.learner.data.row_source_config import ROW_SOURCES
from league.agents.learner.data.source_counts import SourceReport
from league.agents.learner.errors import FeederClosedError, FeederError, FeederTimeoutError
from league.agents.learner.trial import try_row_source
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.plugin_options import OptionsError
from tests.agents.learner.learner_cases import BOARD_GAME

SPEC = UnrollSpec(BOARD_GAME, 5)
ROWS = 12
DEADLINE_S = 20.0
KINDS: dict[str, object] = {"fifo": "fifo", "replay": {"kind": "replay", "capacity": 64, "min_rows": 1}}
"""Registered sources, with options under which one batch in allows for one out."""


def config_of(kind: object, *, microbatches: int = 4) -> LearnerConfig:
    return LearnerConfig(unroll_length=5, batch_rows=ROWS, microbatches=microbatches, row_source=kind)  # type: ignore[arg-type]


@contextmanager
def made(kind: object, *, threads: int) -> Iterator[RowSource[Unrolls]]:
    place = SourcePlace[Unrolls](lambda rows: rows, chunk_rows=ROWS, threads=threads)
    source = make_row_source(SPEC, config_of(kind), place)
    yield source
    source.close()
    source.close()


@pytest.mark.parametrize("threads", [0, 1])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_rows_come_out_as_blocks_of_a_batch(kind: object, threads: int) -> None:
    rows = synthetic_unrolls(SPEC, rows=ROWS, seed=3)
    with made(kind, threads=threads) as source:
        assert source.rows_ready == 0 and source.waiting == 0 and source.capacity >= ROWS
        with pytest.raises(FeederTimeoutError), source.batch(timeout_s=0.0) as blocks:
            list(blocks)
        source.push(rows, num_rows=ROWS, timeout_s=DEADLINE_S)
        with source.batch(timeout_s=DEADLINE_S) as blocks:
            sizes, rewards = [], []
            for block in blocks:
                sizes.append(block.num_rows)
                rewards.extend(np.array(block.rewards))
            assert sizes == ([3, 3, 3, 3] if threads else [ROWS])
            known = {reward.tobytes() for reward in rows.rewards}
            assert {reward.tobytes() for reward in rewards} <= known
            source.learnt(np.ones(ROWS, np.float32))
        report = source.report()
        assert report.rows == ROWS and report.refused == 0
        assert source.report().rows == 0


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_closed_source_hands_out_and_takes_nothing(kind: object) -> None:
    with made(kind, threads=1) as source:
        source.close()
        with pytest.raises(FeederClosedError):
            source.push(synthetic_unrolls(SPEC, rows=1, seed=3), num_rows=1)
        with pytest.raises(FeederError):
            source.rows_ready  # noqa: B018


def test_every_registered_source_is_tested_here() -> None:
    assert KINDS.keys() == ROW_SOURCES.keys()


@dataclass(frozen=True)
class NewestConfig:
    keep: int = 2


class Newest:
    """A source of a stranger: the newest chunk again and again; it loses the others."""

    capacity, waiting = 100, 0

    def __init__(self, spec: UnrollSpec, config: LearnerConfig, place: SourcePlace[Unrolls], options: NewestConfig):
        self.rows, self.config, self.place, self.keep = None, config, place, options.keep

    @property
    def rows_ready(self) -> int:
        return 0 if self.rows is None else ROWS

    def push(self, chunk: Unrolls, *, num_rows: int, timeout_s: float = 0.0) -> None:
        self.rows = self.place.decode(chunk).rows(0, self.keep)  # type: ignore[assignment]

    @contextmanager
    def batch(self, *, timeout_s: float) -> Iterator[RowBlocks]:
        yield RowBlocks(iter([self.rows]))  # type: ignore[list-item]

    def learnt(self, row_errors: object) -> None:
        pass

    def report(self) -> SourceReport:
        return SourceReport()

    def close(self) -> None:
        pass


def test_a_source_of_ones_own_is_one_file_with_options_and_is_tried_before_a_run() -> None:
    name = f"{__name__}:Newest"
    try_row_source(BOARD_GAME, config_of({"kind": name, "keep": 3}))
    with pytest.raises(ValueError, match="a batch of 3 rows came as 2"):
        try_row_source(BOARD_GAME, config_of(name))
    with pytest.raises(OptionsError, match=r"learner\.row_source\.kep: unknown key"):
        make_row_source(SPEC, config_of({"kind": name, "kep": 1}), SourcePlace(lambda rows: rows))
    with pytest.raises(ValueError, match=r"unknown learner\.row_source 'fifi' \(did you mean 'fifo'\?\)"):
        make_row_source(SPEC, config_of("fifi"), SourcePlace(lambda rows: rows))
