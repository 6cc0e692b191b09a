"""Strength: ratings of snapshots over training, and yardsticks that never change."""

from __future__ import annotations

import msgspec

from league.see.page.runs.expected_probe import expected_probe
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.ratings_over_time import PLAYERS, RatingsOverTime, ratings_over_time
from league.see.reports.figures.yardsticks import YARDSTICKS, YardstickFigures, yardsticks


class StrengthQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the strength.

    Fields:
      offset, limit: which of the players, the one with the best snapshot first. first: first of the fixed opponents.
    """

    offset: int = 0
    limit: int = PLAYERS
    first: int = 0


class StrengthSection(msgspec.Struct, frozen=True):
    """The strength.

    Fields:
      ratings: None until they are computed. error: why they are not, else empty.
      expected: where nothing was measured yet, when the first probe comes.
    """

    ratings: RatingsOverTime | None
    yardsticks: YardstickFigures
    error: str
    expected: str


def read(run: OpenedRun, query: StrengthQuery) -> StrengthSection:
    """The strength of a run."""
    computed = run.ratings
    found = computed.value
    ratings = None if found is None else ratings_over_time(run.state, found, offset=query.offset, limit=query.limit)
    return StrengthSection(
        ratings, yardsticks(run.state, offset=query.first, limit=YARDSTICKS), computed.error, expected_probe(run)
    )
