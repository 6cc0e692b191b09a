"""Runs compared: the choice of runs; `league.see.page.routes.compare` reads several of them at once."""

from __future__ import annotations

import msgspec

from league.see.page.runs.opened_run import OpenedRun


class CompareQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the comparison. runs: names of further runs, comma-separated."""

    runs: str = ""


class Compare(msgspec.Struct, frozen=True):
    """The run that others are compared with."""

    run: str


def read(run: OpenedRun, query: CompareQuery) -> Compare:
    """The run itself; the others are read by the page as they are chosen."""
    return Compare(run.id)
