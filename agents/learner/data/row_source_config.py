"""Options of the built-in row sources, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class FifoConfig:
    """Options of `fifo`: it has none."""


ROW_SOURCE_OPTIONS: Mapping[str, type] = {"fifo": FifoConfig}
"""Name of a registered row source -> the record of its options."""
