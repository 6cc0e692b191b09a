"""Bounds that the shipped defaults are held to, from the figures of all games, seeds and budgets.

A comparison of two populations needs every seed of both. One that lacks a run is shown as far as it goes, but counts
as missing; a bound over several games of which one is missing is never met, though it may be broken.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.defaults.games import ALL, EXACT, Game
from benchmarks.defaults.judge import EXPORTS
from benchmarks.defaults.measure import HALF, LATEST, LEAGUE, TUNED, Job
from benchmarks.report import Report, Row

SEEDS = (0, 1, 2)
"""Training seeds that every bound needs."""
BUDGETS = (60.0, 300.0)
LONG_BUDGET = 1200.0
AUTO = "auto"
FLOOR = 0.01
"""Of uniform play's NashConv: below it both count as this much, since such rests are noise."""
NEWEST_ONLY = ("last", "average", "ema")
"""Exports of newest-only self-play: its network and averages of it. Mixtures by payoff, ratings or exact best
replies are the league's; rows of "every export on both sides" give them to the control as well."""
MEDIAN_RATIO, WORST_RATIO, CYCLIC_RATIO, TUNED_RATIO, WEAKER = 1.0, 1.15, 0.5, 1.15, 0.03

Figures = Mapping[Job, Mapping[str, float]]
Best = Callable[[Iterable[float]], float]


@dataclass(frozen=True)
class Compared:
    """A game's comparison of the league with another population.

    Fields:
      value: over the seeds that are there; None without one. is_complete: whether every seed is.
    """

    game: str
    value: float | None
    is_complete: bool


@dataclass(frozen=True)
class Comparison:
    """The figures of one budget. uniform: game -> figures of uniform play."""

    core_seconds: float
    figures: Figures
    uniform: Mapping[str, Mapping[str, float]]

    def ratio(
        self,
        game: str,
        controls: Sequence[str],
        *,
        floor: float = FLOOR,
        exports: Sequence[str] = EXPORTS,
        newest_only: Sequence[str] = NEWEST_ONLY,
    ) -> Compared:
        """NashConv of the league over that of the best control, each by its least exploitable export.

        Args:
          floor: see `FLOOR`. exports: those of the league that count. newest_only: those of that control.
        """
        scale = self.uniform.get(game, {}).get("NashConv")
        league, league_is_whole = self.best(game, LEAGUE, "NashConv", min, exports=exports)
        others = [
            self.best(game, control, "NashConv", min, exports=newest_only if control == LATEST else EXPORTS)
            for control in controls
        ]
        known = [value for value, _ in others if value is not None]
        is_complete = league_is_whole and all(is_whole for _, is_whole in others)
        if league is None or scale is None or not known:
            return Compared(game, None, is_complete=False)
        least = max(floor * scale, 1e-12)
        return Compared(game, max(league, least) / max(min(known), least), is_complete)

    def deficit(self, game: str, controls: Sequence[str]) -> Compared:
        """The most that a control scores above the league against a bot, each by its strongest export."""
        gaps, is_complete = [], True
        for bot in ALL[game].bots:
            league, league_is_whole = self.best(game, LEAGUE, f"v {bot}", max)
            others = [self.best(game, control, f"v {bot}", max) for control in controls]
            known = [value for value, _ in others if value is not None]
            is_complete &= league_is_whole and all(is_whole for _, is_whole in others)
            if league is not None and known:
                gaps.append(max(known) - league)
        return Compared(game, max(gaps, default=None), is_complete)

    def best(
        self, game: str, population: str, figure: str, best: Best, *, exports: Sequence[str] = EXPORTS
    ) -> tuple[float | None, bool]:
        """The best export's median over the seeds, and whether every seed is there."""
        runs = [self.figures.get(Job(self.core_seconds, game, population, seed), {}) for seed in SEEDS]
        medians = []
        for export in exports:
            values = [run[f"{export} {figure}"] for run in runs if f"{export} {figure}" in run]
            if values:
                medians.append(statistics.median(values))
        return (best(medians) if medians else None), all(runs)


def add_rows(
    report: Report,
    figures: Figures,
    uniform: Mapping[str, Mapping[str, float]],
    games: Mapping[str, Game],
    *,
    budgets: Sequence[float],
) -> None:
    """Add every bound over these games to the report, for each budget."""
    for core_seconds in budgets:
        found = Comparison(core_seconds, figures, uniform)
        words = f"{core_seconds:g} core-seconds: "
        exact = [name for name in games_of(core_seconds, games) if games[name].judge == EXACT]
        perfect = [name for name in games_of(core_seconds, games) if games[name].has_perfect_information]
        controls = {name: controls_of(game, core_seconds) for name, game in games.items()}
        ratios = [found.ratio(name, controls[name]) for name in exact]
        exported = [found.ratio(name, controls[name], exports=(AUTO,)) for name in exact]
        alike = [found.ratio(name, controls[name], newest_only=EXPORTS) for name in exact]
        for each, as_exported, like in zip(ratios, exported, alike, strict=True):
            report.add(f"{words}{each.game}: league / best control", each.value, "ratio")
            report.add(f"{words}{each.game}: league's auto / best control", as_exported.value, "ratio")
            report.add(f"{words}{each.game}: league / best control, every export on both sides", like.value, "ratio")
        cyclic = [found.ratio(name, controls[name], floor=0.0) for name in exact if games[name].is_cyclic]
        weaker = [found.deficit(name, controls[name]) for name in perfect]
        tuned = [found.ratio(name, (TUNED,)) for name in exact if games[name].tuned]
        behind = [found.deficit(name, (TUNED,)) for name in perfect if games[name].tuned]
        rows: tuple[tuple[str, list[Compared], Best, float], ...] = (
            ("league / best control, median of games", ratios, statistics.median, MEDIAN_RATIO),
            ("league / best control, worst of games", ratios, max, WORST_RATIO),
            ("league / best control, worst of cyclic games", cyclic, max, CYCLIC_RATIO),
            ("control's score - league's, worst of perfect information", weaker, max, WEAKER),
            ("league / tuned configuration, worst of games", tuned, max, TUNED_RATIO),
            ("tuned configuration's score - league's, worst of perfect information", behind, max, WEAKER),
        )
        report.rows += [
            bounded(words + name, each, summary, at_most=bound) for name, each, summary, bound in rows if each
        ]


def bounded(name: str, compared: Sequence[Compared], summary: Best, *, at_most: float) -> Row:
    """The row of a bound over several games; `met` is None where a run is missing and those there keep the bound."""
    known = [each.value for each in compared if each.value is not None]
    missing = [each.game for each in compared if not each.is_complete]
    value = summary(known) if known else None
    kept = None if value is None else value <= at_most
    words = f" (runs missing in {len(missing)} of {len(compared)} games)" if missing else ""
    return Row(name + words, value, "", f"<= {at_most:g}", None if missing and kept else kept)


def games_of(core_seconds: float, games: Mapping[str, Game]) -> list[str]:
    """The games among these that are trained for a budget."""
    return [name for name, game in games.items() if core_seconds != LONG_BUDGET or game.is_long]


def controls_of(game: Game, core_seconds: float) -> tuple[str, ...]:
    """The controls of a game at a budget: half of the past for the longest alone."""
    return (LATEST, HALF) if game.is_long and core_seconds == LONG_BUDGET else (LATEST,)
