"""Tic-tac-toe, which is solved: the rate at which a perfect player beats a policy.

The likeliest action of one forward pass plays from the empty board, from both seats, against a player that chooses at
random among its best moves: without an error nobody loses. Random openings are left out, since some of them are lost
already.
"""

from __future__ import annotations

import statistics

from benchmarks.report import Report
from benchmarks.strength.runs import LEAGUE, ROOT, Plan, core_budget, finished_run, wall_limit
from league.config.loading import load_config
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.policies.loading import load_from_run, open_run

POPULATIONS = (LEAGUE,)
CONFIG = ROOT / "configs" / "tic_tac_toe.yaml"
EXPORTS = ("best", "main-0")
GAMES = 200
REQUIRED = 0.98


def measure(plan: Plan) -> Report:
    """Train and evaluate each seed; collect the rows."""
    report = Report()
    budget = plan.core_seconds or load_config(CONFIG).budget.core_seconds
    assert budget is not None, f"{CONFIG} has no budget of processor time"
    kept: dict[str, list[float]] = {export: [] for export in EXPORTS}
    for seed in plan.seeds:
        run_dir = plan.run_dir("tic_tac_toe", LEAGUE, seed)
        settings = [f"seed={seed}", core_budget(budget), "evaluation.bots=[]"]
        finished_run(CONFIG, run_dir=run_dir, settings=settings, timeout_s=wall_limit(budget))
        run = open_run(run_dir)
        for export in EXPORTS:
            players = [
                load_from_run(run, export).as_seat_policy(greedy=True),
                bot_policy("minimax", seed=plan.evaluation_seed),
            ]
            result = Match(run.env, players, seed=plan.evaluation_seed, opening_plies=0).play(GAMES)
            losses = result.counts()[2]
            kept[export].append(1.0 - losses / result.games)
            report.add(f"seed {seed}: {export} not lost to a perfect player", kept[export][-1], "of games")
    for export, shares in kept.items():
        bound = REQUIRED if export == "best" else None
        seeds = f"of {len(shares)} training seeds"
        report.add(f"{export} not lost, median {seeds}", statistics.median(shares), "of games", at_least=bound)
        report.add(f"{export} not lost, worst {seeds}", min(shares), "of games", at_least=bound)
    return report
