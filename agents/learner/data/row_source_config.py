"""The registry of row sources, and the options of the built-in ones, checked without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FifoConfig:
    """Options of `fifo`: it has none."""


ROW_SOURCES: Mapping[str, str] = {"fifo": "league.agents.learner.data.feeder:fifo"}
"""Name of `learner.row_source` -> "module:attribute" of a builder of a `row_source.RowSource`."""

ROW_SOURCE_OPTIONS: Mapping[str, type] = {"fifo": FifoConfig}
"""Name of a registered row source -> the record of its options."""
