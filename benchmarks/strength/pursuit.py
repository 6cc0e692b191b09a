"""A game of teams whose seats move: fresh exploiting teams against newest-only play, the defaults and `cross_play`.

`python -m benchmarks.strength.pursuit --runs DIR --results DIR --json`. For each seed three runs of
`configs/pursuit.yaml` with equal budgets of processor time. Then a team of fresh players trains against nothing but an
export of the run, `league exploit` with a fifth of that budget, and plays it. Its score above a half is its gain.
Finished runs in `--runs` are used again and interrupted ones resumed; figures in `--results` are not found again.

Both exports are attacked in all arms alike: "last", the main agent's newest snapshot, and "auto", which is played where
nobody names an export. The bound is on "auto".
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.report import Report
from benchmarks.strength.exploiters import BUDGET_SHARE, attack
from benchmarks.strength.runs import (
    CROSS_PLAY,
    LATEST,
    LEAGUE,
    ROOT,
    Plan,
    add_plan_arguments,
    core_budget,
    finished_run,
    wall_limit,
)

CONFIG = ROOT / "configs" / "pursuit.yaml"
SECTIONS: Mapping[str, tuple[str, ...]] = {
    LATEST: ("league.preset=self_play",),
    LEAGUE: (),
    CROSS_PLAY: ("league={preset: cross_play, population: {main_exploiters: 1}}",),
}
"""Arm -> its settings beside the configuration: newest weights only, the defaults, and one counter."""
CORE_SECONDS = 120.0
EXPORTS = ("auto", "last")
REQUIRED = 0.5
"""Most of newest-only's gain for an exploiter that cross_play's may be, over the seeds."""
LEAST = 0.02
"""Gain against the newest weights below which there is nothing to halve."""


def measure(plan: Plan, exports: Sequence[str]) -> Report:
    """Train and attack every arm and seed."""
    report = Report()
    found = {arm: [_figures(plan, arm, seed, exports) for seed in plan.seeds] for arm in plan.populations}
    for arm, figures in found.items():
        for export in exports:
            for seed, figure in zip(plan.seeds, figures, strict=True):
                low, high = (figure[f"{export}, {end}"] for end in ("low", "high"))
                report.add(f"{arm}: {export}, seed {seed} [{low:.3f}, {high:.3f}]", figure[export], "score")
            scores = [figure[export] for figure in figures]
            report.add(f"{arm}: {export}, median of {len(scores)} seeds", statistics.median(scores), "score")
    for arm in (arm for arm in found if arm != LATEST and LATEST in found):
        for export in exports:
            ours, newest = (statistics.fmean(max(one[export] - 0.5, 0.0) for one in found[a]) for a in (arm, LATEST))
            bound = REQUIRED if (arm, export) == (CROSS_PLAY, exports[0]) else None
            text = f"{export}: an exploiter's gain, {arm} over newest only"
            report.add(text, ours / newest if newest >= LEAST else None, "ratio", at_most=bound)
    return report


def _figures(plan: Plan, arm: str, seed: int, exports: Sequence[str]) -> dict[str, float]:
    """The score of a fresh exploiting team against each export of one run, with its interval."""
    budget = CORE_SECONDS if plan.core_seconds is None else plan.core_seconds
    settings = [f"seed={seed}", core_budget(budget), *SECTIONS[arm]]
    run_dir = plan.run_dir("pursuit", arm, seed)
    attack_seconds = BUDGET_SHARE * budget
    own = [f"exploiter.core_seconds={attack_seconds:g}", f"exports={'+'.join(exports)}"]

    def find() -> dict[str, float]:
        finished_run(CONFIG, run_dir=run_dir, settings=settings, timeout_s=wall_limit(budget))
        figures = {}
        for export in exports:
            score = attack(
                run_dir,
                player=export,
                path=run_dir.with_name(f"{run_dir.name}-attack-{export}"),
                core_seconds=attack_seconds,
                games=plan.games,
                seed=plan.evaluation_seed,
                settings=[f"seed={seed}"],
            )
            figures.update({export: score["value"], f"{export}, low": score["low"], f"{export}, high": score["high"]})
            print(f"{run_dir.name}: {score['value']:.3f} for an exploiter of {export}", flush=True)
        return figures

    return plan.figures(run_dir, config=CONFIG, settings=[*settings, *own], find=find)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the arms and seeds that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.pursuit", description=__doc__)
    parser.add_argument("--arms", nargs="+", choices=SECTIONS, default=[*SECTIONS])
    parser.add_argument("--exports", nargs="+", choices=EXPORTS, default=[*EXPORTS])
    parser.add_argument("--core-seconds", type=float, help=f"budget of each run, by default {CORE_SECONDS:g}")
    parser.add_argument("--games", type=int, default=1000, help="of each match, by default 1000")
    add_plan_arguments(parser)
    parser.set_defaults(seeds=[0, 1, 2, 3, 4])
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as passing:
        plan = Plan(
            seeds=tuple(options.seeds),
            populations=tuple(options.arms),
            core_seconds=options.core_seconds,
            seconds=0.0,
            games=options.games,
            evaluation_seed=48_001,
            folder=(options.runs or Path(passing)).absolute(),
            results=options.results,
        )
        report = measure(plan, options.exports)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
