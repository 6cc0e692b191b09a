"""The rows of the table: every peer's figures, and whether League's defaults are significantly below the best peer.

One training is one policy. So with several seeds the interval of a difference is Welch's over seeds. With one seed it
is that of the matches alone, and speaks of these two policies.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.peers import judge
from benchmarks.peers.cells import Cell, Figures, Place, keep, policy_of, read, stored
from benchmarks.peers.games import EXACT, GAMES, LADDER, RETURN, Game
from benchmarks.peers.level import Level, Rung, level, resampled_levels
from benchmarks.peers.peer_list import LEAGUE, PEERS
from benchmarks.report import Report, Row
from league.judge.matches.match_result import student_95

SEED = 20_260
REQUIRED = "not significantly below"
UNITS: Mapping[str, str] = {LADDER: "simulations", EXACT: "NashConv", RETURN: "return"}


@dataclass(frozen=True)
class Difference:
    """The defaults less the best peer, positive where they are better; levels as logarithms.

    low, high: of the 95 % interval; None where nothing tells it.
    """

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def met(self) -> bool | None:
        """False where the defaults are significantly below; None where they are below and no interval is known."""
        if self.high is None:
            return True if self.value >= 0 else None
        return self.high >= 0


def report_of(cells: Sequence[Cell], place: Place, *, plays: bool) -> Report:
    """The rows of all cells that are there, the matches between the defaults and each peer, and the verdicts.

    plays: whether matches that are not there are played.
    """
    report = Report()
    found = {cell: figures for cell in cells if (figures := stored(cell, place)) is not None}
    for cell, figures in found.items():
        _add_cell(report, cell, figures)
    for cell in found:
        _add_versus(report, cell, found, place, plays=plays)
    for core_seconds, name in dict.fromkeys((cell.core_seconds, cell.game) for cell in cells):
        report.rows.append(verdict_of(name, core_seconds, found))
    return report


def verdict_of(name: str, core_seconds: float, found: Mapping[Cell, Figures]) -> Row:
    """The row of a game and a budget: the defaults beside the best peer, over the seeds that both have."""
    game = GAMES[name]
    known = {
        peer: {cell.seed: figures for cell, figures in found.items() if _is(cell, name, core_seconds, peer)}
        for peer in (LEAGUE, *PEERS)
    }
    ours = known.pop(LEAGUE)
    seeds = {peer: sorted(set(ours) & set(theirs)) for peer, theirs in known.items()}
    rated = {
        peer: float(np.mean([value_of(game, known[peer][seed]) for seed in both]))
        for peer, both in seeds.items()
        if both
    }
    title = f"{name}, {core_seconds:g} core-seconds: the defaults"
    if not rated:
        return Row(f"{title} beside the best peer", None, UNITS[game.judge], REQUIRED, None)
    best = max(rated, key=lambda peer: rated[peer])
    both = seeds[best]
    gap = difference(game, [ours[seed] for seed in both], [known[best][seed] for seed in both])
    is_ratio = game.judge == LADDER
    shown = [math.exp(each) if is_ratio else each for each in (gap.value, gap.low, gap.high) if each is not None]
    interval = f" [{shown[1]:.3g}, {shown[2]:.3g}]" if len(shown) == 3 else ""
    words = "over" if is_ratio else "better than"
    text = f"{title} {words} the best peer ({best}), {len(both)} seed{'s' * (len(both) > 1)}{interval}"
    return Row(text, shown[0], "" if is_ratio else UNITS[game.judge], REQUIRED, gap.met)


def difference(game: Game, ours: Sequence[Figures], theirs: Sequence[Figures]) -> Difference:
    """The defaults less a peer, over equal seeds. ours, theirs: figures of a seed each."""
    values = [np.array([value_of(game, each) for each in side]) for side in (ours, theirs)]
    value = float(values[0].mean() - values[1].mean())
    if len(ours) > 1:
        return _welch(values[0], values[1])
    if game.judge == RETURN:
        return _welch(*(np.array(side[0]["returns"]) for side in (ours, theirs)))
    if game.judge == LADDER:
        draws = [resampled_levels(rungs_of(side[0]), seed=SEED + k) for k, side in enumerate((ours, theirs))]
        low, high = np.quantile(np.log(draws[0] / draws[1]), [0.025, 0.975])
        return Difference(value, float(low), float(high))
    return Difference(value)


def _welch(one: np.ndarray, other: np.ndarray) -> Difference:
    """The difference of two means.

    Source: Welch 1947, The generalization of Student's problem.
    """
    value = float(one.mean() - other.mean())
    parts = [side.var(ddof=1) / len(side) for side in (one, other)]
    total = sum(parts)
    if total == 0.0:
        return Difference(value, value, value)
    freedom = total**2 / sum(part**2 / (len(side) - 1) for part, side in zip(parts, (one, other), strict=True))
    wide = student_95(max(1, int(freedom))) * math.sqrt(total)
    return Difference(value, value - wide, value + wide)


def value_of(game: Game, figures: Figures) -> float:
    """The figure by which a policy counts, more being better: a level's logarithm, less NashConv, or mean return."""
    if game.judge == LADDER:
        return math.log(level(rungs_of(figures), seed=SEED).value)
    return -float(figures["nash_conv"]) if game.judge == EXACT else float(np.mean(figures["returns"]))


def rungs_of(figures: Figures) -> list[Rung]:
    """The rungs of a ladder in a cell's figures."""
    known = [(judge.simulations_of(name), scores) for name, scores in figures["groups"].items()]
    return [Rung(float(place), tuple(scores)) for place, scores in known if place is not None]


def line_of(cell: Cell, place: Place) -> str:
    """A cell's figures in words."""
    report = Report()
    _add_cell(report, cell, stored(cell, place) or {})
    return "; ".join(f"{row.name.rpartition(': ')[2]} {row.value:.5g}" for row in report.rows if row.value is not None)


def _add_cell(report: Report, cell: Cell, figures: Figures) -> None:
    game, title = GAMES[cell.game], f"{cell.game}, {cell.core_seconds:g} core-seconds, {cell.peer}, seed {cell.seed}"
    if game.judge == LADDER:
        found: Level = level(rungs_of(figures), seed=SEED)
        report.add(f"{title}: level [{found.low:.3g}, {found.high:.3g}]", found.value, "simulations")
        for opponent, scores in figures["groups"].items():
            report.add(f"{title}: score v {opponent}", float(np.mean(scores)), "")
    else:
        report.add(f"{title}: {UNITS[game.judge]}", abs(value_of(game, figures)), "")
    report.add(f"{title}: decisions", figures["decisions"], "")
    report.add(f"{title}: spent", figures["core_seconds"], "core-s")


def _add_versus(report: Report, cell: Cell, found: Mapping[Cell, Figures], place: Place, *, plays: bool) -> None:
    """The score of the defaults against a peer, with the same seed."""
    ours = Cell(cell.core_seconds, cell.game, cell.seed, LEAGUE)
    if cell.peer == LEAGUE or ours not in found or GAMES[cell.game].judge == RETURN:
        return
    path = place.results / "versus" / f"{cell.name}.json"
    if plays and not path.is_file():
        keep(path, {"groups": judge.versus(GAMES[cell.game], policy_of(ours, place), policy_of(cell, place))})
    if path.is_file():
        scores = read(path)["groups"]
        title = f"{cell.game}, {cell.core_seconds:g} core-seconds, seed {cell.seed}"
        report.add(f"{title}: score of the defaults v {cell.peer}", float(np.mean(scores)), "")


def _is(cell: Cell, name: str, core_seconds: float, peer: str) -> bool:
    return (cell.game, cell.core_seconds, cell.peer) == (name, core_seconds, peer)
