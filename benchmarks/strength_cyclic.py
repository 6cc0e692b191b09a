"""Where a league has a mechanism: one-shot games that are cyclic in pure choices, exploitability exact.

Unequal-stakes rock, paper, scissors, the circle of nine choices and the disc game. For each seed one league of
`configs/rock_paper_scissors.yaml` and one naive run: the newest weights only, hardly any entropy, a constant step size.
Figures are NashConv as a share of the payoffs' range: 1 for a pure choice in rock, paper, scissors.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from exact_runs import ROOT, Exports, exports_of, train
from report import Report

from envs.protocol import EnvConfig
from league.eval.exploitability import payoff_range

CONFIG = ROOT / "configs" / "rock_paper_scissors.yaml"

GAMES: Mapping[str, EnvConfig] = {
    "unequal stakes": EnvConfig("rock_paper_scissors", {"stakes": [1, 2, 3]}),
    "circle of nine": EnvConfig("cyclic_game"),
    "disc": EnvConfig("disc_game"),
}

NAIVE_LEAGUE = (
    "{preset: self_play, population: {save_steps: 50000}, ratings: {share: 0.0, final_leases: 0}, lease_turns: 32}"
)
NAIVE_LEARNER = (
    "learner.entropy_cost=0.01",
    "learner.entropy_cost_end=0.01",
    "learner.learning_rate_end=5.0e-3",
)

MUST = 0.10
"""Share of the range that the league's mixture may leave to be won."""


def measure(*, games: Sequence[str], seeds: Sequence[int], core_seconds: float, folder: Path) -> Report:
    """Train league and naive run of every game with every seed; collect the rows."""
    report = Report()
    for game in games:
        env = GAMES[game]
        scale = payoff_range(env)
        for population, league in (("league", None), ("naive", NAIVE_LEAGUE)):
            runs = []
            for seed in seeds:
                run_dir = folder / f"{game.replace(' ', '-')}-{population}-{seed}"
                settings = [f"env.id={env.id}", f"env.kwargs={dict(env.kwargs)}"]
                settings += [] if league is None else NAIVE_LEARNER
                train(CONFIG, seed=seed, core_seconds=core_seconds, run_dir=run_dir, league=league, settings=settings)
                runs.append(exports_of(run_dir))
            _add(report, f"{game}, {population}", runs, scale=scale, gated=population == "league")
    return report


def _add(report: Report, name: str, runs: Sequence[Exports], *, scale: float, gated: bool) -> None:
    """The median over the seeds of every export; the mixture of a league has a bound, its worst seed too."""
    columns = [run.nash_convs() for run in runs]
    for export in columns[0]:
        values = [column[export] / scale for column in columns]
        bound = MUST if gated and export.startswith("mixture") else None
        seeds = f"of {len(runs)} training seeds"
        report.add(f"{name}: {export}, median {seeds}", statistics.median(values), "of range", at_most=bound)
        report.add(f"{name}: {export}, worst {seeds}", max(values), "of range")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", default=",".join(GAMES), help="comma-separated")
    parser.add_argument("--seeds", default="0,1,2", help="training seeds, comma-separated")
    parser.add_argument("--core-seconds", type=float, default=20.0, help="budget of each run")
    parser.add_argument("--runs", type=Path, help="keep the run folders here (default: a folder that is removed)")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    games = [name.strip() for name in options.games.split(",")]
    unknown = [name for name in games if name not in GAMES]
    if unknown:
        parser.error(f"unknown games {', '.join(unknown)}; there are {', '.join(GAMES)}")
    with tempfile.TemporaryDirectory(prefix="league-strength-") as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = measure(
            games=games,
            seeds=[int(seed) for seed in options.seeds.split(",")],
            core_seconds=options.core_seconds,
            folder=folder,
        )
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
