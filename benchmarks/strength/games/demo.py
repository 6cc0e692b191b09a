"""Strength of the best policy of the three-minute demo, against bots that it never trained with.

One run per training seed. The best snapshot by rating then plays the likeliest action of one forward pass, without
search, from random two-ply openings and from both seats.
"""

from __future__ import annotations

import statistics
from pathlib import Path

from benchmarks.report import Report
from benchmarks.strength.runs import LEAGUE, ROOT, START_UP_S, Plan, finished_run
from league.envs.protocol import EnvConfig
from league.judge.contenders.bots import bot_policy
from league.judge.matches.evaluation import EvalReport, evaluate_run
from league.judge.matches.match import Match
from league.judge.matches.report_table import report_lines
from league.policies.loading import open_run

POPULATIONS = (LEAGUE,)
CONFIG = ROOT / "configs" / "connect_four.yaml"
ENV = EnvConfig("connect_four")
BOTS = ("random", "tactical", "mcts:25", "mcts:100")
GATES = {"tactical": 0.80, "mcts:100": 0.45}
"""Bot -> least median score over the training seeds."""


def measure(plan: Plan) -> Report:
    """Train and evaluate each seed; collect the rows."""
    report = Report()
    scores: dict[str, list[float]] = {bot: [] for bot in BOTS}
    for seed in plan.seeds:
        run_dir = plan.run_dir("connect_four_demo", LEAGUE, seed)
        _train(run_dir, seed=seed, seconds=plan.seconds)
        env_steps = open_run(run_dir).state.totals.env_steps
        report.add(f"seed {seed}: env steps in {plan.seconds:g} s", env_steps, "steps")
        found = evaluate_run(
            run_dir, players=["best"], bots=BOTS, games=plan.games, seed=plan.evaluation_seed, greedy=True
        )
        _say(found)
        for bot in BOTS:
            score = found.row("best", bot).score
            scores[bot].append(score.value)
            report.add(f"seed {seed}: best v {bot}", score.value, "score")
    for bot in BOTS:
        middle = statistics.median(scores[bot])
        seeds = f"of {len(plan.seeds)} training seeds"
        report.add(f"best v {bot}, median {seeds}", middle, "score", at_least=GATES.get(bot))
        report.add(f"best v {bot}, worst {seeds}", min(scores[bot]), "score")
    for bot in BOTS:
        report.add(f"random play v {bot}", _chance(bot, plan), "score")
    return report


def _train(run_dir: Path, *, seed: int, seconds: float) -> None:
    settings = [f"seed={seed}", f"budget.seconds={seconds:g}", "evaluation.games=2", "evaluation.bots=[random]"]
    finished_run(CONFIG, run_dir=run_dir, settings=settings, timeout_s=seconds + START_UP_S)


def _chance(bot: str, plan: Plan) -> float:
    """Score of random play against a bot."""
    seed = plan.evaluation_seed
    players = [bot_policy("random", seed=seed + 1), bot_policy(bot, seed=seed)]
    return Match(ENV, players, seed=seed).play(plan.games).score().value


def _say(found: EvalReport) -> None:
    """The scores of one seed with their intervals, as soon as they are there."""
    print("\n".join(report_lines(found, width=None)))
    print(f"best is {found.players[0].reason}")
