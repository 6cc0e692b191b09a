"""Chunks of a record that is not an unroll: any table of fields travels, and none is taken for another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from league.agents.unroll.codec import ChunkError, ChunkHeader, Lz4Codec
from league.agents.unroll.field_table import ANY, FieldTable, table_line, table_lines
from league.agents.unroll.unroll import Unrolls, concatenate

HEADER = ChunkHeader("run", "player", 0, 3)


@dataclass(frozen=True, kw_only=True)
class Sightings(FieldTable[NDArray[Any]]):
    """A record of another author."""

    seen: Mapping[str, NDArray[Any]] = field(metadata=table_lines(f"R W+1 {ANY}"))
    notes: NDArray[Any] | None = field(default=None, metadata=table_line("R N", "int16"))
    versions: NDArray[Any] = field(metadata=table_line("R W", "int32"))

    @property
    def num_rows(self) -> int:
        return len(self.versions)


SIGHTINGS = Sightings(
    seen={"birds": np.arange(24, dtype=np.uint8).reshape(2, 4, 3)}, versions=np.arange(6, dtype=np.int32).reshape(2, 3)
)


def test_a_table_of_fields_travels() -> None:
    chunk = Lz4Codec().encode(concatenate([SIGHTINGS, SIGHTINGS]), HEADER)
    opened = Lz4Codec().open(chunk)
    back = opened.rows_of(Sightings)
    assert (opened.header, opened.num_rows, back.notes) == (HEADER, 4, None)
    assert np.array_equal(back.seen["birds"], np.tile(SIGHTINGS.seen["birds"], (2, 1, 1)))
    assert np.array_equal(back.versions, np.tile(SIGHTINGS.versions, (2, 1)))


def test_a_record_is_not_taken_for_another() -> None:
    with pytest.raises(ChunkError, match="a chunk of Sightings came where Unrolls are learnt from"):
        Lz4Codec().decode(Lz4Codec().encode(SIGHTINGS, HEADER))
    assert b'"record"' not in Lz4Codec().encode(empty_unrolls(), HEADER)  # those of old are as they were


def empty_unrolls() -> Unrolls:
    decisions = np.zeros((1, 2), np.float32)
    return Unrolls(
        obs={},
        resets=np.zeros((1, 3), np.bool_),
        actions=np.zeros((1, 2), np.int16),
        log_probs=decisions,
        rewards=decisions,
        discounts=decisions,
        valid=np.zeros((1, 2), np.bool_),
        versions=np.zeros((1, 2), np.int32),
        core=np.zeros((1, 0), np.float32),
    )


@pytest.mark.parametrize(
    "change",
    [
        {"versions": np.zeros((2, 3), np.int64)},
        {"versions": np.zeros((3, 3), np.int32)},
        {"versions": np.zeros((2, 4), np.int32)},
        {"versions": np.zeros(2, np.int32)},
        {"notes": np.zeros((1, 1), np.int16)},
        {"seen": {"birds": np.zeros((2, 0), np.uint8)}},
    ],
)
def test_extents_must_agree(change: dict[str, Any]) -> None:
    with pytest.raises(ChunkError, match="axes"):
        Lz4Codec().open(Lz4Codec().encode(replace(SIGHTINGS, **change), HEADER)).rows_of(Sightings)
