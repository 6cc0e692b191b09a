"""Tables of the shipped defaults, written into a page from stored figures; a run that is missing shows as such."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.defaults.games import ALL, EXACT, RETURN, Game
from benchmarks.defaults.judge import EXPORTS
from benchmarks.defaults.measure import HALF, LATEST, LEAGUE, TUNED, Job
from benchmarks.defaults.required import LONG_BUDGET, SEEDS, Figures, games_of
from league.store.storage import Storage

BEGIN, END = "<!-- defaults: begin -->", "<!-- defaults: end -->"
WORDS = {LEAGUE: "league", LATEST: "newest only", HALF: "half past", TUNED: "tuned configuration"}
MISSING = "not run"


def tables(
    figures: Figures,
    uniform: Mapping[str, Mapping[str, float]],
    games: Mapping[str, Game],
    *,
    budgets: Sequence[float],
    rules: str,
) -> str:
    """Markdown of one table of the games for each budget. rules: the digest that the figures were made with."""
    lines = [
        f"Rules `{rules}`.",
        f"Median over the seeds that were run; their number where it is not {len(SEEDS)}.",
        "",
    ]
    for core_seconds in budgets:
        lines += [f"{core_seconds:g} core-seconds:", "", *_table(core_seconds, figures, uniform, games), ""]
    return "\n".join(lines)


def write_into(readme: Path, text: str) -> None:
    """Put the tables between their two marks.

    Raises:
      SystemExit: the file has no such marks.
    """
    page = readme.read_text()
    before, found, rest = page.partition(BEGIN)
    _, closed, after = rest.partition(END)
    if not found or not closed:
        raise SystemExit(f"{readme} has no {BEGIN} ... {END}")
    Storage().atomic_write_bytes(readme, f"{before}{BEGIN}\n{text}\n{END}{after}".encode())


def _table(
    core_seconds: float, figures: Figures, uniform: Mapping[str, Mapping[str, float]], games: Mapping[str, Game]
) -> list[str]:
    rows = [
        f"| game | kinds | figure | population | {' | '.join(EXPORTS)} | uniform |",
        "|---" * (len(EXPORTS) + 5) + "|",
    ]
    for name in games_of(core_seconds, games):
        game = ALL[name]
        for figure in _figures(name):
            for population in _populations(name, core_seconds):
                cells = [_cell(name, core_seconds, population, figures, f"{export} {figure}") for export in EXPORTS]
                own = uniform.get(name, {}).get(figure)
                known = "" if own is None else f"{own:.3g}"
                rows.append(
                    f"| {name} | {', '.join(game.kinds)} | {figure} | {WORDS[population]} | {' | '.join(cells)} |"
                    f" {known} |"
                )
    return rows


def _figures(name: str) -> Sequence[str]:
    game = ALL[name]
    if game.judge == EXACT:
        return ("NashConv",)
    if game.judge == RETURN:
        return ("return",)
    return (*(f"v {bot}" for bot in game.bots), "v worst of own past", "v a fresh exploiter")


def _populations(name: str, core_seconds: float) -> list[str]:
    game = ALL[name]
    half = [HALF] if game.is_long and core_seconds == LONG_BUDGET else []
    return [LEAGUE, LATEST, *half, *([TUNED] if game.tuned is not None else [])]


def _cell(name: str, core_seconds: float, population: str, figures: Figures, figure: str) -> str:
    values = [figures.get(Job(core_seconds, name, population, seed), {}) for seed in SEEDS]
    known = [value[figure] for value in values if figure in value]
    if not known:
        return MISSING if not any(values) else ""
    seeds = "" if len(known) == len(SEEDS) else f" ({len(known)})"
    return f"{statistics.median(known):.3g}{seeds}"
