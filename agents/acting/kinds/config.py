"""Options of the built-in kinds of acting, without torch, so that a configuration is checked without loading it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from league.agents.acting.search.config import SearchConfig


@dataclass(frozen=True)
class SampleConfig:
    """Options of `sample`: none."""


ACTING_OPTIONS: Mapping[str, type] = {"sample": SampleConfig, "search": SearchConfig}
"""Name of a registered kind of acting -> the record of its options."""

DEFAULT_ACTING, SEARCH = "sample", "search"
