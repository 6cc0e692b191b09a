"""The five games of Rudolph et al. 2026: exact exploitability of League's defaults after one budget, and of even play.

`python -m benchmarks.strength.published_games --runs DIR --results DIR --json`. Dark hex 3 x 3 and phantom tic-tac-toe,
classical and abrupt, are the built-in games; liar's dice is OpenSpiel's, with one die of six sides for each seat. Each
game and seed is one run with nothing but the game, the seed and the budget said. Exploitability is half of NashConv:
what a best reply earns, on average over both seats. Finished runs in `--runs` are used again and interrupted ones
resumed; figures in `--results` are not found again. `--seeds` without a number leaves the runs out.

The paper draws curves and prints no table, so that there is nothing of it to hold the runs against. The log of its
solver prints what best replies to even play gain in dark hex, in single precision, and the information states: these
are required here. Source: Rudolph et al. 2026, Reevaluating policy gradient methods for imperfect-information games
(arXiv 2502.08938); github.com/gabrfarina/exp-a-spiel, README.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Mapping, Sequence

from benchmarks.report import Report
from benchmarks.strength.runs import (
    Plan,
    add_plan_arguments,
    core_budget,
    finished_run,
    measured,
    stored_or_found,
    wall_limit,
)
from league.envs.protocol import EnvConfig
from league.policies.auto_export import AUTO
from league.policies.exact.behaviours import Mixture, PolicyFunction, members_of, uniform
from league.policies.exact.exploitability import nash_conv
from league.policies.exact.phantom_game import PhantomGame
from league.policies.exact.small_game import small_game
from league.policies.loading import load_from_run, open_run

GAMES: Mapping[str, EnvConfig] = {
    "phantom_tic_tac_toe": EnvConfig("phantom_tic_tac_toe"),
    "abrupt_phantom_tic_tac_toe": EnvConfig("phantom_tic_tac_toe", {"abrupt": True}),
    "dark_hex": EnvConfig("dark_hex"),
    "abrupt_dark_hex": EnvConfig("dark_hex", {"abrupt": True}),
    "liars_dice": EnvConfig("openspiel:liars_dice"),
}
PUBLISHED_STATES = {"dark_hex": 3_720_850 + 2_352_067}
PUBLISHED_EVEN = {"dark_hex": (1.166488 + 0.666318) / 2}
TOLERANCE = 5e-6
"""Between a published value in single precision and ours."""
CORE_SECONDS = 1800.0
MAX_CORE_SECONDS = 1200.0
"""Ten minutes on two cores."""
LIMIT_S = 600.0
"""Seconds of one pass over a game."""
EXPORTS = ("last", AUTO)


def exploitability(env: EnvConfig, policy: PolicyFunction | Mixture) -> float:
    """Half of NashConv."""
    return 0.5 * nash_conv(env, policy, limit_s=LIMIT_S)


def measure(names: Sequence[str], plan: Plan) -> Report:
    """Measure even play and train and judge every seed. names: of the games."""
    report = Report()
    for name in names:
        even = _even(name, plan)
        near = abs(even["exploitability"] - PUBLISHED_EVEN.get(name, even["exploitability"]))
        report.add(f"{name}: exploitability of even play", even["exploitability"], "points")
        if name in PUBLISHED_EVEN:
            report.add(f"{name}: even play, from what is published", near, "points", at_most=TOLERANCE)
            missing = abs(even["states"] - PUBLISHED_STATES[name])
            report.add(f"{name}: information states more or less than published", missing, "states", at_most=0)
        report.add(f"{name}: processor time of even play", even["core_seconds"], "core-s", at_most=MAX_CORE_SECONDS)
        for figure, unit in (("states", "states"), ("rows", "rows"), ("links", "links"), ("peak", "GiB")):
            report.add(f"{name}: {figure}", even.get(figure), unit)
        for seed in plan.seeds:
            for figure, value in _trained(name, seed, plan).items():
                bound = even["exploitability"] if figure in EXPORTS else None
                unit = "points" if figure in EXPORTS else figure
                report.add(f"{name}, seed {seed}: {figure}", value, unit, at_most=bound)
    return report


def _even(name: str, plan: Plan) -> dict[str, float]:
    """Exploitability of even play in a game, and the cost of finding it."""

    def find() -> dict[str, float]:
        begun = time.process_time()
        value = exploitability(GAMES[name], uniform)
        found = {"exploitability": value, "core_seconds": time.process_time() - begun}
        game = small_game(GAMES[name], limit_s=LIMIT_S)
        found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        if not isinstance(game, PhantomGame):
            return {**found, "states": float(len(game.states.seat))}
        return {**found, "states": float(game.num_states), "rows": game.form.num_rows, "links": game.form.num_links}

    folder = plan.results or plan.folder
    folder.mkdir(parents=True, exist_ok=True)
    return stored_or_found(folder / f"{name}-even.json", conditions={"game": name}, find=find)


def _trained(name: str, seed: int, plan: Plan) -> dict[str, float]:
    """Exploitability of the exports of one run of the defaults, and what it has played."""
    budget = CORE_SECONDS if plan.core_seconds is None else plan.core_seconds
    plan.folder.mkdir(parents=True, exist_ok=True)
    config = plan.folder / f"{name}.yaml"
    config.write_text(f"env: {{id: {GAMES[name].id!r}, kwargs: {dict(GAMES[name].kwargs)}}}\n".replace("True", "true"))
    settings = [f"seed={seed}", core_budget(budget)]
    run_dir = plan.run_dir(name, plan.populations[0], seed)

    def find() -> dict[str, float]:
        finished_run(config, run_dir=run_dir, settings=settings, timeout_s=wall_limit(budget))
        run = open_run(run_dir)
        found = {export: exploitability(run.env, members_of(load_from_run(run, export))) for export in EXPORTS}
        return {**found, "decisions": float(run.state.totals.decisions), "core-seconds": budget}

    return plan.figures(run_dir, config=config, settings=settings, find=find)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the games that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.published_games", description=__doc__)
    parser.add_argument("--games", nargs="+", choices=GAMES, default=[*GAMES])
    parser.add_argument("--core-seconds", type=float, help=f"budget of each run, by default {CORE_SECONDS:g}")
    add_plan_arguments(parser)
    parser.set_defaults(seeds=[0, 1])
    options = parser.parse_args(arguments)
    return measured(options, lambda plan: measure(options.games, plan))


if __name__ == "__main__":
    sys.exit(main())
