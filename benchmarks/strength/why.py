"""The pictures of docs/why-a-league.md, drawn from the figures in benchmarks/results.

`python -m benchmarks.strength.why` writes them again. Every dot is one training seed; a bar marks the median.
"""

from __future__ import annotations

import html
import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.strength.runs import ROOT

RESULTS, PICTURES = ROOT / "benchmarks" / "results", ROOT / "docs" / "assets" / "why"
WIDTH, LEFT, RIGHT, TOP, ROW = 760, 290, 40, 64, 46
LEAGUE, LATEST = ("the league", "#2563eb"), ("newest weights only", "#d97706")
BOARDS = {
    "Connect Four": ("connect_four", "auto v mcts:100", ("5a2c7db5e4", "98452fdcfa", "ff1dc3a17e")),
    "Othello": ("othello", "auto v mcts:25", ("98452fdcfa",)),
    "tic-tac-toe": ("tic_tac_toe", "auto v mcts:100", ("98452fdcfa",)),
    "Breakthrough": ("breakthrough", "auto v mcts:100", ("98452fdcfa",)),
}
"""Label -> (game, figure, rules that made them) of benchmarks.defaults, after 300 core-seconds."""


@dataclass(frozen=True)
class Compared:
    """One line of a picture. league, latest: of each seed."""

    label: str
    league: Sequence[float]
    latest: Sequence[float]


def pictures() -> dict[str, str]:
    """Name of the file -> SVG."""
    teams = [
        Compared(label, *(_figures(f"cross_play/{game}-{which}-*.json", "auto") for which in ("league", "latest")))
        for game, label in (("trap", "a trap: two teams of two"), ("random", "a random table of returns"))
    ]
    attacked = [
        Compared("against the last policy", _exploiters("league", "exploiter"), _exploiters("latest", "exploiter")),
        Compared(
            "against the average of snapshots",
            _exploiters("league", "exploiter-of-half"),
            _exploiters("latest", "exploiter-of-half"),
        ),
    ]
    boards = [
        Compared(label, *(_board(game, which, figure, rules) for which in ("league", "latest")))
        for label, (game, figure, rules) in BOARDS.items()
    ]
    return {
        "teams.svg": _svg("What a whole other team gains, as a share of the range (less is better)", teams),
        "attacks.svg": _svg("Connect Four: score of a fresh exploiter (less is better)", attacked),
        "boards.svg": _svg("Boards: score against a search after 300 core-seconds (more is better)", boards),
    }


def _figures(pattern: str, figure: str) -> list[float]:
    found = [json.loads(path.read_text())["figures"][figure] for path in sorted(RESULTS.glob(pattern))]
    assert found, pattern
    return [float(value) for value in found]


def _exploiters(population: str, kind: str) -> list[float]:
    return _figures(f"c4-{population}-[0-9]-{kind}.json", "score")


def _board(game: str, population: str, figure: str, rules: Iterable[str]) -> list[float]:
    """Of every seed the figure by the first rules that have it."""
    by_seed: dict[str, float] = {}
    for digest in rules:
        for path in sorted((RESULTS / "defaults" / digest).glob(f"{game}-{population}-300-[0-9].json")):
            by_seed.setdefault(path.stem, float(json.loads(path.read_text())["figures"][figure]))
    return list(by_seed.values())


def _svg(title: str, rows: Sequence[Compared]) -> str:
    """Dots on an axis from 0 to 1, two lines for each row."""
    height = TOP + ROW * len(rows) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        f"<title>{html.escape(title)}</title>",
        f'<rect width="{WIDTH}" height="{height}" rx="8" fill="#fff"/>',
        _text(20, 28, title, size=15, weight="bold"),
    ]
    for place, (name, colour) in enumerate((LEAGUE, LATEST)):
        parts += [_dot(LEFT + 170 * place, 47, colour), _text(LEFT + 12 + 170 * place, 52, name, size=13)]
    for tick in range(6):
        x = _x(tick / 5)
        parts.append(f'<line x1="{x:g}" x2="{x:g}" y1="{TOP}" y2="{height - 36}" stroke="#e5e7eb"/>')
        parts.append(_text(x, height - 16, f"{tick / 5:g}", size=12, anchor="middle"))
    for number, row in enumerate(rows):
        y = TOP + ROW * number + ROW / 2
        parts.append(_text(LEFT - 16, y + 5, row.label, size=13, anchor="end"))
        for values, (_, colour), lift in ((row.league, LEAGUE, -8), (row.latest, LATEST, 8)):
            middle = _x(statistics.median(values))
            parts.append(f'<rect x="{middle - 1.5:.1f}" y="{y + lift - 8:g}" width="3" height="16" fill="{colour}"/>')
            parts += [_dot(_x(value), y + lift, colour) for value in values]
    return "\n".join([*parts, "</svg>", ""])


def _x(value: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * min(max(value, 0.0), 1.0)


def _dot(x: float, y: float, colour: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:g}" r="5" fill="{colour}" fill-opacity="0.55"/>'


def _text(x: float, y: float, text: str, *, size: int, anchor: str = "start", weight: str = "normal") -> str:
    style = f'font-size="{size}" text-anchor="{anchor}" font-weight="{weight}" fill="#1f2937"'
    return f'<text x="{x:g}" y="{y:g}" {style}>{html.escape(text)}</text>'


def write(folder: Path = PICTURES) -> None:
    """Write every picture."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pictures().items():
        (folder / name).write_text(text)


if __name__ == "__main__":
    write()
