"""Trains the policies of the zoo, one for each game, and exports them: `python -m benchmarks.strength.zoo`, `make zoo`.

Stopped and started again, it continues the run that was cut off, and keeps what is exported.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.report import Report
from benchmarks.strength.run_to_end import spend_budget
from benchmarks.strength.runs import START_UP_S, WALL_FACTOR
from league.config.contender_names import SHIPPED
from league.deploy.export.exporter import export_policy
from league.deploy.export.shelf import read_shelf, shelf_bytes

CORE_SECONDS = {
    "connect_four": 1_800.0,
    "othello": 3_600.0,
    "tic_tac_toe": 120.0,
    "leduc_poker": 600.0,
    "kuhn_poker": 120.0,
    "rock_paper_scissors": 60.0,
    "repeated_rock_paper_scissors": 300.0,
    "three_seat_rock_paper_scissors": 60.0,
    "cyclic_game": 120.0,
}
"""Game -> processor seconds of its run: within an hour of two cores each, about two hours of one core in all."""
MAX_BYTES = 8 << 20
"""Of all packages that come with the installation."""
LIMIT_S = 60.0
"""Longest time for the games of a card."""
BOTS = ("random", "tactical", "mcts:25", "mcts:100")


def make_one(game: str, *, core_seconds: float, runs: Path, shelf: Path) -> None:
    """Train a game, or continue its run, and put its policy onto the shelf; one that is there stays."""
    target, run = shelf / game, runs / game
    if (target / "manifest.json").is_file():
        return
    league = (sys.executable, "-m", "league")
    begin = ("train", game, "--run-dir", str(run), "-s", f"budget.core_seconds={core_seconds:g}", "--no-eval")
    command = ("resume", str(run), "--no-eval") if (run / "config.yaml").is_file() else begin
    timeout = WALL_FACTOR * core_seconds + START_UP_S
    spend_budget((*league, *command), run_dir=run, log=runs / f"{game}.log", timeout_s=timeout)
    export_policy(run, target, games=400, bots=BOTS, limit_s=LIMIT_S)


def main() -> None:
    """Make what is missing and print what the shelf holds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=list(CORE_SECONDS), default=list(CORE_SECONDS))
    parser.add_argument("--core-seconds", type=float, help="of each game, in the place of its own")
    parser.add_argument("--runs", type=Path, default=Path("runs/zoo"), help="folder of the training runs")
    parser.add_argument("--shelf", type=Path, default=SHIPPED, help="folder of the packages")
    arguments = parser.parse_args()
    arguments.runs.mkdir(parents=True, exist_ok=True)
    arguments.shelf.mkdir(parents=True, exist_ok=True)
    for game in arguments.games:
        core_seconds = arguments.core_seconds or CORE_SECONDS[game]
        make_one(game, core_seconds=core_seconds, runs=arguments.runs, shelf=arguments.shelf)
    shelf, report = read_shelf([arguments.shelf]), Report()
    for row in shelf.rows:
        for opponent, score in row.scores.items():
            report.add(f"{row.name} against {opponent}", score, "score")
    report.add("all packages", shelf_bytes(shelf.rows), "bytes", at_most=MAX_BYTES)
    report.print(sys.stdout, as_json=True)


if __name__ == "__main__":
    main()
