"""Opponents that one player met between its snapshots, as shares of its games."""

from __future__ import annotations

from collections import Counter

import msgspec

from league.core.metagame.lineage import Lineage
from league.see.reports.figures.extent import Extent, spread

MAX_OPPONENTS = 7
"""Opponents shown by name: with the others together they take eight colours."""
MAX_SPANS = 120
OTHERS = "others"
SELF = "itself"


class MixSpan(msgspec.Struct, frozen=True):
    """Games of the player from its previous snapshot to this one.

    Fields:
      snapshot, trained_steps: at its end. games: in it.
      shares: part of the games against each of the opponents shown, the others last; they sum to 1.
      scores: mean score against each, draws one half; None where none was met.
    """

    snapshot: str
    trained_steps: int
    games: int
    shares: tuple[float, ...]
    scores: tuple[float | None, ...]


class OpponentMix(msgspec.Struct, frozen=True):
    """The opponents of a player over its training.

    Fields:
      opponents: those met most, "itself" being self-play and "others" all the rest. spans: oldest first.
      snapshots: which of its snapshots are shown.
    """

    player: str
    opponents: tuple[str, ...]
    spans: tuple[MixSpan, ...]
    snapshots: Extent


def opponent_mix(lineage: Lineage, player: str) -> OpponentMix:
    """The mix of one player. Snapshots of one player count as one opponent, since each of them is met rarely."""
    nodes = [node for node in lineage.descents if node.player == player and node.opponent_mix]
    owners = {node.snapshot: node.player for node in lineage.descents}
    in_all: Counter[str] = Counter()
    spans: list[tuple[Counter[str], dict[str, float]]] = []
    for node in nodes:
        games: Counter[str] = Counter()
        scores: dict[str, float] = {}
        for met in node.opponent_mix:
            name = _group(met.opponent, player, owners)
            games[name] += met.games
            scores[name] = scores.get(name, 0.0) + met.score
        spans.append((games, scores))
        in_all.update(games)
    shown = tuple(name for name, _ in in_all.most_common(MAX_OPPONENTS))
    opponents = (*shown, OTHERS) if len(in_all) > len(shown) else shown
    chosen = spread(len(nodes), MAX_SPANS)
    listed = tuple(_span(nodes[n].snapshot, nodes[n].trained_steps, *spans[n], opponents=opponents) for n in chosen)
    return OpponentMix(player, opponents, listed, Extent("snapshots", len(nodes), 0, len(listed)))


def _group(opponent: str, player: str, owners: dict[str, str]) -> str:
    if opponent == player:
        return SELF
    owner = owners.get(opponent, "")
    if owner == player:
        return "its snapshots"
    return f"snapshots of {owner}" if owner else opponent


def _span(
    snapshot: str, steps: int, games: Counter[str], scores: dict[str, float], *, opponents: tuple[str, ...]
) -> MixSpan:
    total = sum(games.values())
    counts = [games[name] for name in opponents]
    sums = [scores.get(name, 0.0) for name in opponents]
    if opponents and opponents[-1] == OTHERS:
        counts[-1] = total - sum(counts[:-1])
        sums[-1] = sum(scores.values()) - sum(sums[:-1])
    shares = tuple(count / total for count in counts)
    means = tuple(score / count if count else None for score, count in zip(sums, counts, strict=True))
    return MixSpan(snapshot, steps, total, shares, means)
