"""Exact exploitability of poker policies after a fixed budget: a league against two controls, exported alike.

For each seed and population one run of `configs/kuhn.yaml` or `configs/leduc.yaml` through `league train`, at equal
processor seconds and networks. Populations: the one of the configuration ("league"), the newest weights only ("latest")
and half of the games against the uniform past ("half past"). Exports: the last policy of the main agent; the uniform
mixture over the second half of its snapshots; the Nash mixture over all snapshots of the run. NashConv is computed from
the whole game tree, and so are the payoffs that the Nash mixture is solved from: all populations get the same export,
free of sampling noise.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.report import Report
from benchmarks.strength.games.exact_runs import Exports, exports_of, run_settings
from benchmarks.strength.runs import HALF, LATEST, LEAGUE, ROOT, Plan, control_sections, finished_run, wall_limit

POPULATIONS = (LEAGUE, LATEST, HALF)
REST = "ratings: {step_fraction: 0.0, final_leases: 0}, lease_steps: 64"
SNAPSHOTS = 40
"""About as many snapshots a control makes."""


@dataclass(frozen=True)
class Game:
    """A gated game.

    Fields:
      config: its YAML file. core_seconds: the budget.
      speed: env steps a core-second, roughly, from which the controls' snapshots are spaced.
      last_median, last_worst, best_median: bounds of the league's NashConv; None for no bound.
      last_target, best_target: what the medians should come to; reported, not held against.
      factor, margin: the league's best export may be this factor of the better control's, or that much above it.
    """

    config: Path
    core_seconds: float
    speed: float
    last_median: float
    last_worst: float | None
    best_median: float
    last_target: float
    best_target: float
    factor: float
    margin: float


GAMES: Mapping[str, Game] = {
    "kuhn": Game(ROOT / "configs" / "kuhn.yaml", 60.0, 3e5, 0.10, 0.15, 0.08, 0.05, 0.04, factor=1.25, margin=0.02),
    "leduc": Game(ROOT / "configs" / "leduc.yaml", 1800.0, 2.5e5, 0.8, None, 0.7, 0.4, 0.35, factor=1.10, margin=0.0),
}


def measure(name: str, plan: Plan) -> Report:
    """Train every population with every seed; collect the rows. name: of the game."""
    report, game = Report(), GAMES[name]
    budget = game.core_seconds if plan.core_seconds is None else plan.core_seconds
    found: dict[str, list[Exports]] = {population: [] for population in plan.populations}
    for seed in plan.seeds:
        for population in plan.populations:
            exports = _exports(plan, name, population, seed=seed, core_seconds=budget)
            found[population].append(exports)
            _add_seed(report, f"{population}, seed {seed}", exports)
    for population, runs in found.items():
        _add_summary(report, population, runs, game=game if population == LEAGUE else None)
    controls = [_median_best(runs) for population, runs in found.items() if population != LEAGUE]
    if controls and LEAGUE in found:
        control = min(controls)
        allowed = max(game.factor * control, control + game.margin)
        report.add("best control, best export, median", control, "NashConv")
        report.add(
            "league, best export, median, v best control", _median_best(found[LEAGUE]), "NashConv", at_most=allowed
        )
    return report


def _exports(plan: Plan, name: str, population: str, *, seed: int, core_seconds: float) -> Exports:
    """The exports of the run of a population and seed."""
    game, run_dir = GAMES[name], plan.run_dir(name, population, seed)
    section = _section(game, population, core_seconds)
    settings = run_settings(seed=seed, core_seconds=core_seconds, league=section)

    def find() -> dict[str, float]:
        finished_run(game.config, run_dir=run_dir, settings=settings, timeout_s=wall_limit(core_seconds))
        return asdict(exports_of(run_dir))

    return Exports(**plan.figures(run_dir, config=game.config, settings=settings, find=find))


def _section(game: Game, population: str, budget: float) -> str | None:
    """The `league` section that takes the place of the configuration's; None for none."""
    if population == LEAGUE:
        return None
    return control_sections(save_steps=max(int(budget * game.speed / SNAPSHOTS), 1), rest=REST)[population]


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
    target = f" (target {game.last_target:g})" if game else ""
    report.add(f"{population}: last, median {seeds}{target}", statistics.median(last), "NashConv", at_most=bound)
    bound = game.last_worst if game else None
    report.add(f"{population}: last, worst {seeds}", max(last), "NashConv", at_most=bound)
    bound = game.best_median if game else None
    target = f" (target {game.best_target:g})" if game else ""
    report.add(f"{population}: best export, median {seeds}{target}", statistics.median(best), "NashConv", at_most=bound)
    report.add(f"{population}: best export, worst {seeds}", max(best), "NashConv")


def _median_best(runs: Sequence[Exports]) -> float:
    return statistics.median(run.best for run in runs)
