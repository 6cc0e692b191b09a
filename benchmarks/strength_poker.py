"""How exploitable poker policies are after a fixed budget, exactly: a league against two controls, exported alike.

For each seed and population one run of `configs/kuhn.yaml` or `configs/leduc.yaml` through `league train`, at equal
processor seconds and networks. Populations: the one of the configuration ("league"), the newest weights only ("latest")
and half of the games against the uniform past ("half past"). Exports: the last policy of the main agent, the uniform
mixture over the second half of its snapshots, and the Nash mixture over all snapshots of the run. NashConv is computed
from the whole game tree, and so are the payoffs that the Nash mixture is solved from: all populations get the same
export, free of sampling noise.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from exact_runs import ROOT, Exports, exports_of, train
from report import Report

CONTROLS = {
    "latest": "{{preset: self_play, population: {{save_steps: {save_steps}}}, {rest}}}",
    "half past": (
        "{{preset: window, population: {{save_steps: {save_steps}, window: 1000000,"
        " play_against_latest_model_ratio: 0.5}}, {rest}}}"
    ),
}
"""Population -> the `league` section that takes the place of the configuration's."""

REST = "ratings: {share: 0.0, final_leases: 0}, lease_turns: 64"
SNAPSHOTS = 40
"""About as many snapshots a control makes."""


@dataclass(frozen=True)
class Game:
    """A gated game.

    Fields:
      config: its YAML file. core_seconds: the budget.
      speed: env steps a core-second, roughly, from which the controls' snapshots are spaced.
      last_median, last_worst, best_median: bounds of the league's NashConv; None for no bound.
      factor, margin: the league's best export may be this factor of the better control's, or that much above it.
    """

    config: Path
    core_seconds: float
    speed: float
    last_median: float
    last_worst: float | None
    best_median: float
    factor: float
    margin: float


GAMES: Mapping[str, Game] = {
    "kuhn": Game(ROOT / "configs" / "kuhn.yaml", 60.0, 3e5, 0.10, 0.15, 0.08, factor=1.25, margin=0.02),
    "leduc": Game(ROOT / "configs" / "leduc.yaml", 1800.0, 2.5e5, 0.8, None, 0.7, factor=1.10, margin=0.0),
}


def measure(
    game: Game, *, seeds: Sequence[int], populations: Sequence[str], core_seconds: float | None, folder: Path
) -> Report:
    """Train every population with every seed; collect the rows. core_seconds: None for the game's own budget."""
    report = Report()
    budget = game.core_seconds if core_seconds is None else core_seconds
    found: dict[str, list[Exports]] = {population: [] for population in populations}
    for seed in seeds:
        for population in populations:
            run_dir = folder / f"{game.config.stem}-{population.replace(' ', '-')}-{seed}"
            train(
                game.config, seed=seed, core_seconds=budget, run_dir=run_dir, league=_section(game, population, budget)
            )
            exports = exports_of(run_dir)
            found[population].append(exports)
            _add_seed(report, f"{population}, seed {seed}", exports)
    for population, runs in found.items():
        _add_summary(report, population, runs, game=game if population == "league" else None)
    controls = [_median_best(runs) for population, runs in found.items() if population != "league"]
    if controls and "league" in found:
        control = min(controls)
        allowed = max(game.factor * control, control + game.margin)
        report.add("best control, best export, median", control, "NashConv")
        report.add(
            "league, best export, median, v best control", _median_best(found["league"]), "NashConv", at_most=allowed
        )
    return report


def _section(game: Game, population: str, budget: float) -> str | None:
    if population == "league":
        return None
    return CONTROLS[population].format(save_steps=max(int(budget * game.speed / SNAPSHOTS), 1), rest=REST)


def _add_seed(report: Report, name: str, exports: Exports) -> None:
    report.add(f"{name}: env steps", exports.env_steps, "steps")
    for export, value in exports.nash_convs().items():
        report.add(f"{name}: {export}", value, "NashConv")


def _add_summary(report: Report, population: str, runs: Sequence[Exports], *, game: Game | None) -> None:
    """Median and worst over the seeds; `game` gives the bounds."""
    last = [run.last for run in runs]
    best = [run.best for run in runs]
    seeds = f"of {len(runs)} training seeds"
    bound = game.last_median if game else None
    report.add(f"{population}: last, median {seeds}", statistics.median(last), "NashConv", at_most=bound)
    bound = game.last_worst if game else None
    report.add(f"{population}: last, worst {seeds}", max(last), "NashConv", at_most=bound)
    bound = game.best_median if game else None
    report.add(f"{population}: best export, median {seeds}", statistics.median(best), "NashConv", at_most=bound)
    report.add(f"{population}: best export, worst {seeds}", max(best), "NashConv")


def _median_best(runs: Sequence[Exports]) -> float:
    return statistics.median(run.best for run in runs)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", choices=sorted(GAMES), default="kuhn")
    parser.add_argument("--seeds", default="0,1,2", help="training seeds, comma-separated")
    parser.add_argument("--populations", default="league,latest,half past", help="comma-separated")
    parser.add_argument("--core-seconds", type=float, help="budget of each run (default: the game's)")
    parser.add_argument("--runs", type=Path, help="keep the run folders here (default: a folder that is removed)")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    populations = [name.strip() for name in options.populations.split(",")]
    unknown = [name for name in populations if name not in ("league", *CONTROLS)]
    if unknown:
        parser.error(f"unknown populations {', '.join(unknown)}; there are league, {', '.join(CONTROLS)}")
    with tempfile.TemporaryDirectory(prefix="league-strength-") as temporary:
        folder = options.runs or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        report = measure(
            GAMES[options.game],
            seeds=[int(seed) for seed in options.seeds.split(",")],
            populations=populations,
            core_seconds=options.core_seconds,
            folder=folder,
        )
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
