"""The lineage: snapshots over trained steps with their parents, resets and transplants."""

from __future__ import annotations

import msgspec

from league.see.page.runs.lineage_follower import lineage_computed
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.lineage_graph import LANES, LineageGraph, lineage_graph
from league.see.reports.figures.opponent_mix import OpponentMix, opponent_mix


class LineageQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the lineage.

    Fields:
      offset, limit: which of the players. player: whose opponents to show; empty for the first one.
    """

    offset: int = 0
    limit: int = LANES
    player: str = ""


class LineageView(msgspec.Struct, frozen=True):
    """The lineage. graph, mix: None until the journal is read. error: why it cannot be, else empty."""

    graph: LineageGraph | None
    mix: OpponentMix | None
    error: str


def read(run: OpenedRun, query: LineageQuery) -> LineageView:
    """The lineage of a run."""
    computed = lineage_computed(run)
    if computed.value is None:
        return LineageView(None, None, computed.error)
    graph = lineage_graph(computed.value, run.ratings.value or (), offset=query.offset, limit=query.limit)
    player = query.player if query.player in run.state.players else next(iter(run.state.players), "")
    return LineageView(graph, opponent_mix(computed.value, player) if player else None, computed.error)
