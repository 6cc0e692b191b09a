"""The table of the whole lineage: every algorithm under every update mode that makes sense, with equal core-seconds.

`python -m benchmarks.lineage.table --results DIR` measures the cells that are not in DIR yet. Each has a process
of its own. The table is printed as Markdown, with a JSON object last.
A call that was stopped continues where it was. With
the default budget of 90 core-seconds a cell and two seeds all of it takes less than six hours of a machine.
Breakout needs the extra `minatar`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from benchmarks.lineage.cell import MATCH_GAMES, Figures, measured
from benchmarks.lineage.systems import GAMES, MODES, Cell, cells
from league.agents.torch_runtime import prepare_process
from league.errors import ConfigError
from league.store.storage import Storage

CORE_SECONDS, SEEDS = 90.0, (0, 1)
LONGEST_S = 1_800.0
"""Wall-clock seconds after which a cell counts as hanging."""
BASELINE = ("vtrace", "one learner")
SPEEDS = ("plies_per_core_s", "decisions_per_core_s", "lag_updates", "row_bytes_per_decision")
REPLICAS = "replica_bytes_per_decision"
STRENGTHS: Mapping[str, tuple[str, ...]] = {
    "connect_four": ("critical_positions_kept", "score_tactical", "score_mcts:100"),
    "pendulum": ("mean_return",),
    "breakout": ("mean_return",),
    "kuhn_poker": ("nash_conv",),
}
"""Game -> its figures of strength; the first one is compared with that of V-trace."""


def missing(wanted: Iterable[Cell], folder: Path) -> list[Cell]:
    """Cells that have no file."""
    return [cell for cell in wanted if not file_of(cell, folder).is_file()]


def file_of(cell: Cell, folder: Path) -> Path:
    """Where the figures of a cell are kept."""
    return folder / f"{cell.name}.json"


def measure_one(cell: Cell, folder: Path, *, core_seconds: float, games: int) -> None:
    """Measure a cell, and leave its file when all of it is known: its figures, or why it makes no sense."""
    found: dict[str, object] = {"game": cell.game, "system": cell.system, "mode": cell.mode, "seed": cell.seed}
    try:
        found["figures"] = measured(cell, core_seconds=core_seconds, match_games=games)
        found["budget_core_seconds"] = core_seconds
    except ConfigError as error:
        found["refused"] = error.problems[0]
    folder.mkdir(parents=True, exist_ok=True)
    Storage().atomic_write_bytes(file_of(cell, folder), json.dumps(found, indent=1).encode())


def rows(wanted: Iterable[Cell], folder: Path) -> list[dict[str, object]]:
    """The known figures of these cells, over the seeds: means, and the strengths of every seed."""
    by_name: dict[tuple[str, str, str], list[Figures]] = {}
    for cell in wanted:
        if file_of(cell, folder).is_file():
            stored = json.loads(file_of(cell, folder).read_text())
            if "figures" in stored:
                by_name.setdefault((cell.game, cell.system, cell.mode), []).append(stored["figures"])
    table = []
    for (game, system, mode), figures in sorted(by_name.items(), key=_place):
        row: dict[str, object] = {"game": game, "system": system, "mode": mode, "seeds": len(figures)}
        row |= {name: statistics.fmean(one[name] for one in figures) for name in (*SPEEDS, REPLICAS)}
        row |= {name: [one[name] for one in figures] for name in STRENGTHS[game]}
        first = STRENGTHS[game][0]
        beside = by_name.get((game, *BASELINE))
        if beside:
            known = [statistics.fmean(one[first] for one in those) for those in (figures, beside)]
            row["beside_vtrace"] = known[0] - known[1]
        table.append(row)
    return table


def _place(item: tuple[tuple[str, str, str], object]) -> tuple[int, int, int]:
    """Where a row stands: by game, algorithm and mode, in the order of `systems`."""
    game, system, mode = item[0]
    return [*GAMES].index(game), [*GAMES[game].systems].index(system), [*MODES].index(mode)


def markdown(table: Sequence[Mapping[str, object]]) -> str:
    """The rows as one Markdown table for each game."""
    lines: list[str] = []
    for game, strengths in STRENGTHS.items():
        own = [row for row in table if row["game"] == game]
        if not own:
            continue
        titles = ("system", "mode", *SPEEDS, REPLICAS, *strengths, f"{strengths[0]} beside vtrace's")
        lines += [
            "",
            f"**{game}**",
            "",
            _line([title.replace("_", " ") for title in titles]),
            _line(["---"] * len(titles)),
        ]
        for row in own:
            numbers = [row.get(name) for name in (*SPEEDS, REPLICAS, *strengths, "beside_vtrace")]
            lines.append(_line([str(row["system"]), str(row["mode"]), *(_text(number) for number in numbers)]))
    return "\n".join(lines)


def _line(words: Sequence[str]) -> str:
    return f"| {' | '.join(words)} |"


def _text(number: object) -> str:
    if isinstance(number, list):
        return ", ".join(_text(one) for one in number)
    return "" if number is None else f"{float(number):,.0f}" if abs(float(number)) >= 100 else f"{float(number):.3g}"  # type: ignore[arg-type]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.lineage.table",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--results", type=Path, required=True, help="folder of the cells that are done")
    parser.add_argument("--games", nargs="+", choices=GAMES, default=list(GAMES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--core-seconds", type=float, default=CORE_SECONDS, help="of a cell")
    parser.add_argument("--match-games", type=int, default=MATCH_GAMES, help="of each match of a cell")
    parser.add_argument("--cell", help="measure this cell alone, in this process")
    parser.add_argument("--known", action="store_true", help="print what is known, and measure nothing")
    options = parser.parse_args(arguments)
    wanted, folder = list(cells(options.games, options.seeds)), options.results
    if options.cell is not None:
        (cell,) = [cell for cell in wanted if cell.name == options.cell]
        prepare_process()
        measure_one(cell, folder, core_seconds=options.core_seconds, games=options.match_games)
        return 0
    todo = [] if options.known else missing(wanted, folder)
    failed = [cell.name for cell in todo if not _measured_in_a_process(cell, options)]
    table = rows(wanted, folder)
    print(markdown(table))
    print(json.dumps({"rows": table, "failed": failed}))
    return 1 if failed else 0


def _measured_in_a_process(cell: Cell, options: argparse.Namespace) -> bool:
    """Measure a cell in a process of its own; returns False where it failed, which is printed."""
    words = ["--cell", cell.name, "--results", str(options.results), "--core-seconds", str(options.core_seconds)]
    words += ["--games", cell.game, "--seeds", str(cell.seed), "--match-games", str(options.match_games)]
    command = [sys.executable, "-m", "benchmarks.lineage.table", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        print(f"{cell.name}: no end after {LONGEST_S:g} s", flush=True)
        return False
    print(cell.name, "failed: " + done.stderr.strip()[-300:] if done.returncode else "done", flush=True)
    return not done.returncode


if __name__ == "__main__":
    sys.exit(main())
