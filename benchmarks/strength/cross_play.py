"""Games of teams in which self-play stays in a trap: the league against the newest weights only, exactly.

`python -m benchmarks.strength.cross_play --runs DIR --results DIR --json`. For each game and seed one run of
`configs/team_matrix.yaml` and one of the newest weights only, with the same budget. The figure is what a whole team
gains that changes all of its seats together, as a share of the largest gain there can be; 0 in an equilibrium of teams.
Finished runs in `--runs` are used again and interrupted ones resumed; figures in `--results` are not found again.

Both exports are found for both alike. "last" is the main agent's newest snapshot. "auto" is what is played where nobody
names an export: here the mixture over all snapshots of the run that loses least to exact replies of whole teams.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence

from benchmarks.report import Report
from benchmarks.strength.robustness import load_snapshot, main_snapshots
from benchmarks.strength.runs import (
    LATEST,
    LEAGUE,
    ROOT,
    Plan,
    add_plan_arguments,
    control_sections,
    core_budget,
    finished_run,
    measured,
    wall_limit,
)
from league.policies.auto_export import AUTO
from league.policies.exact.behaviours import members_of
from league.policies.exact.exports import ExportSearch, open_to_play
from league.policies.exact.team_game import team_exploitability
from league.policies.loading import OpenRun, load_from_run

CONFIG = ROOT / "configs" / "team_matrix.yaml"
GAMES: Mapping[str, Mapping[str, int]] = {"trap": {}, "random": {"seed": 1}}
"""Name -> options of team_matrix."""
SAVE_STEPS = 30_000
CORE_SECONDS = 60.0
REQUIRED = 0.5
"""Most of the newest-only's exploitability that the league's may be, over the seeds."""
LEAST = 0.02
"""Exploitability of the newest weights below which there is nothing to halve."""
EXPORTS = ("last", AUTO)


def measure(names: Sequence[str], plan: Plan) -> Report:
    """Train and judge every game, population and seed. names: of the games."""
    report = Report()
    latest = control_sections(save_steps=SAVE_STEPS, rest="lease_steps: 8, ratings: {final_leases: 10}")[LATEST]
    for name in names:
        found: dict[tuple[str, str], list[float]] = {}
        for population in plan.populations:
            for seed in plan.seeds:
                figures = _figures(name, population, seed, plan, latest)
                for export in EXPORTS:
                    found.setdefault((population, export), []).append(figures[export])
        for (population, export), values in found.items():
            text = f"{name}, {population}: {export}, median of {len(values)} seeds"
            report.add(text, statistics.median(values), "of range")
            report.add(f"{name}, {population}: {export}, worst", max(values), "of range")
        for export in EXPORTS if len(plan.populations) == 2 else ():
            league, newest = (statistics.fmean(found[which, export]) for which in (LEAGUE, LATEST))
            if newest >= LEAST:
                report.add(f"{name}: {export}, league over newest only", league / newest, "ratio", at_most=REQUIRED)
    return report


def _figures(name: str, population: str, seed: int, plan: Plan, latest: str) -> dict[str, float]:
    """Team exploitability of every export of one run."""
    budget = CORE_SECONDS if plan.core_seconds is None else plan.core_seconds
    section = [f"league={latest}"] if population == LATEST else []
    settings = [f"seed={seed}", core_budget(budget), f"env.kwargs={dict(GAMES[name])}", *section]
    run_dir = plan.run_dir(name, population, seed)

    def find() -> dict[str, float]:
        finished_run(CONFIG, run_dir=run_dir, settings=settings, timeout_s=wall_limit(budget))
        return exploitabilities(open_to_play(run_dir, [AUTO], search=ExportSearch()))

    return plan.figures(run_dir, config=CONFIG, settings=settings, find=find)


def exploitabilities(run: OpenRun) -> dict[str, float]:
    """Export -> team exploitability of a finished run, as a share of the range of a team's returns."""
    low, high = run.spec.return_range or (-1.0, 1.0)
    scale = (high - low) / 2
    last = members_of(load_snapshot(run, main_snapshots(run)[-1]))
    exports = {"last": last, AUTO: members_of(load_from_run(run, AUTO))}
    return {name: team_exploitability(run.env, mixture) / scale for name, mixture in exports.items()}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the games that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.cross_play", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=[*GAMES])
    parser.add_argument("--core-seconds", type=float, help=f"budget of each run, by default {CORE_SECONDS:g}")
    add_plan_arguments(parser)
    parser.set_defaults(seeds=[0, 1, 2, 3, 4])
    options = parser.parse_args(arguments)
    return measured(options, lambda plan: measure(options.games, plan), populations=(LEAGUE, LATEST))


if __name__ == "__main__":
    sys.exit(main())
