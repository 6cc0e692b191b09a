"""The lineage of snapshots as a graph over trained steps, one lane for each player, small enough to be read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from league.core.metagame.lineage import Lineage, LineageNode
from league.core.metagame.ratings import RatingRow
from league.see.reports.figures.extent import Extent, page_of, spread
from league.wording import counted

LANES, MAX_LANES = 16, 40
"""Players shown by default and at most."""
MAX_NODES = 400
"""Snapshots shown at most, shared evenly by the lanes."""
OUTSIDE = "from outside"


class GraphNode(msgspec.Struct, frozen=True):
    """A snapshot.

    Fields:
      snapshot, player, role, reason, trained_steps: as in its manifest. lane: index of its player among the lanes.
      league_steps: trained steps of the whole league when it came, as far as its snapshots show.
      kind: "first", "trained", "reset", "transplant" or "outside", how it came from its parent. donor: player whose
        weights were copied, where one was.
      parent: snapshot that its weights descend from. link: index of its nearest ancestor that is shown, None without
        one; skipped: ancestors in between.
      elo: its rating, None where it has none.
      changes: PBT values that differ from the parent's, as (name, before, after).
      gate_opponents: how many the gate judged.
      hardest: opponent that was beaten least, with its win rate; None where no gate asked.
    """

    snapshot: str
    player: str
    role: str
    reason: str
    trained_steps: int
    league_steps: int
    lane: int
    kind: str
    donor: str | None
    parent: str | None
    link: int | None
    skipped: int
    elo: float | None
    changes: tuple[tuple[str, float | None, float | None], ...]
    gate_opponents: int
    hardest: tuple[str, float] | None


class LineageGraph(msgspec.Struct, frozen=True):
    """The graph of some players' snapshots.

    Fields:
      lanes: players, in the order of their first snapshots. nodes: oldest first; a node comes after its ancestors.
      players, snapshots: which of them are shown. past: sentences on forks and rewinds.
    """

    lanes: tuple[str, ...]
    nodes: tuple[GraphNode, ...]
    players: Extent
    snapshots: Extent
    past: tuple[str, ...]


def lineage_graph(
    lineage: Lineage, ratings: Iterable[RatingRow], *, offset: int = 0, limit: int = LANES
) -> LineageGraph:
    """The graph of some players.

    Of a lane with too many snapshots the first, the last, resets, transplants and parents of other lanes stay; evenly
    spread ones of the others fill it up.
    """
    by_lane: dict[str, list[LineageNode]] = {}
    for node in lineage.descents:
        by_lane.setdefault(node.player or OUTSIDE, []).append(node)
    lanes, players = page_of(list(by_lane), what="players", offset=offset, limit=limit, most=MAX_LANES)
    known = {node.snapshot: node for node in lineage.descents}
    branching = {
        parent
        for node in lineage.descents
        if (parent := node.parent) is not None and parent in known and known[parent].player != node.player
    }
    share = max(MAX_NODES // max(len(lanes), 1), 2)
    kept = {node.snapshot for lane in lanes for node in _thinned(by_lane[lane], branching, share)}
    elo = {row.policy: row.elo for row in ratings if row.games}
    shown = [node for node in lineage.descents if node.snapshot in kept]
    index = {node.snapshot: number for number, node in enumerate(shown)}
    lane_of = {lane: number for number, lane in enumerate(lanes)}
    league_steps, nodes = _league_steps(lineage), []
    for node in shown:
        link, skipped = _nearest(node, known, index)
        lane, steps = lane_of[node.player or OUTSIDE], league_steps[node.snapshot]
        nodes.append(_node(node, lane, steps, link, skipped, elo.get(node.snapshot)))
    in_lanes = sum(len(by_lane[lane]) for lane in lanes)
    snapshots = Extent("snapshots", in_lanes, 0, len(nodes))
    return LineageGraph(tuple(lanes), tuple(nodes), players, snapshots, _past(lineage))


def _thinned(nodes: Sequence[LineageNode], branching: set[str], most: int) -> list[LineageNode]:
    """At most `most` nodes of a lane, those that tell something before those that continue a line."""
    if len(nodes) <= most:
        return list(nodes)
    telling = [n for n, node in enumerate(nodes) if node.kind != "trained" or node.snapshot in branching]
    ends = {0, len(nodes) - 1}
    chosen = ends | {telling[place] for place in spread(len(telling), max(most - len(ends), 1))}
    others = [n for n in range(len(nodes)) if n not in chosen]
    room = most - len(chosen)
    if room > 0:
        chosen |= {others[place] for place in spread(len(others), room)}
    return [nodes[n] for n in sorted(chosen)]


def _league_steps(lineage: Lineage) -> dict[str, int]:
    """Snapshot -> trained steps of the newest snapshots of all players when it came; they never fall."""
    newest: dict[str, int] = {}
    total, found = 0, {}
    for node in lineage.descents:
        if node.player:
            total += max(node.trained_steps - newest.get(node.player, 0), 0)
            newest[node.player] = max(node.trained_steps, newest.get(node.player, 0))
        found[node.snapshot] = total
    return found


def _nearest(node: LineageNode, known: dict[str, LineageNode], index: dict[str, int]) -> tuple[int | None, int]:
    """Index of the nearest ancestor that is shown, and the number of those between; None and 0 without one."""
    parent, skipped = node.parent, 0
    while parent is not None and parent in known:
        if parent in index:
            return index[parent], skipped
        parent, skipped = known[parent].parent, skipped + 1
    return None, 0


def _node(
    node: LineageNode, lane: int, league_steps: int, link: int | None, skipped: int, elo: float | None
) -> GraphNode:
    hardest = node.evidence[0] if node.evidence else None
    return GraphNode(
        snapshot=node.snapshot,
        player=node.player,
        role=node.role,
        reason=node.reason,
        trained_steps=node.trained_steps,
        league_steps=league_steps,
        lane=lane,
        kind=node.kind,
        donor=node.donor,
        parent=node.parent,
        link=link,
        skipped=skipped,
        elo=elo,
        changes=node.changes,
        gate_opponents=node.gate_opponents,
        hardest=None if hardest is None else (hardest.opponent, hardest.mean),
    )


def _past(lineage: Lineage) -> tuple[str, ...]:
    forks = [
        f"taken over from {fork.run} at event {fork.event}, with {counted(fork.after, 'snapshot')}"
        for fork in lineage.forks
    ]
    rewinds = [f"taken back to event {back.event}, with {counted(back.after, 'snapshot')}" for back in lineage.rewinds]
    return (*forks, *rewinds)
