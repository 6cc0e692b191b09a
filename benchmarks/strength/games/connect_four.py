"""Strength and exploitability of Connect Four policies after half an hour of processor time.

A league of `configs/connect_four_strong.yaml` against two controls at equal processor seconds and network: the newest
weights only ("latest"), and half of the games against the uniform past ("half past"). Exports: the last policy of the
main agent; the best snapshot by rating; the second half of the main agent's snapshots ("average", one drawn for each
game and seat); the mixture over snapshots that no other reliably beats.

Strength is measured with the likeliest action of one forward pass, without search: scores against bots from random
two-ply openings and both seats, and the share of critical positions whose result is kept. The gates are on "best", the
default of `load_policy`.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import Report
from benchmarks.strength.exploiters import Prey, add_comparison, exploiter_figures, more_is_worse
from benchmarks.strength.positions import Position, chance, keeps, moves_keep, stored_positions
from benchmarks.strength.robustness import against_past, load_snapshot, main_snapshots
from benchmarks.strength.runs import (
    HALF,
    LATEST,
    LEAGUE,
    ROOT,
    Plan,
    control_sections,
    core_budget,
    finished_run,
    wall_limit,
)
from league.envs.protocol import EnvConfig
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.loading import OpenRun, load_from_run, open_run

POPULATIONS = (LEAGUE, LATEST, HALF)
GAME = "c4"
"""In the names of run folders."""
CONFIG = ROOT / "configs" / "connect_four_strong.yaml"
ENV = EnvConfig("connect_four")
CORE_SECONDS = 1800.0
SAVE_STEPS = 12_000_000
"""Trained steps between two snapshots of a control: it makes about 40."""
REST = "ratings: {step_fraction: 0.0, final_leases: 40}, lease_steps: 96"

BOTS = ("tactical", "mcts:25", "mcts:100", "mcts:1000")
SLOW_BOTS = {"mcts:1000": 60}
"""Bot -> the most games of a match with it; only `GATED` meets it."""
KEEPS = "keeps the result"
GATES: Mapping[str, tuple[float, float]] = {"tactical": (0.92, 0.97), "mcts:100": (0.70, 0.85), KEEPS: (0.80, 0.84)}
"""Figure -> (bound, target) of the median over the league's seeds, for the export `GATED`."""
GATED = "best"
WORST_PAST_REQUIRED = 0.60
"""Against the worst snapshot of its own past; published for AlphaStar without opponents from the past: 0.46."""

WORST_PAST = "worst score against own past (first three quarters)"
WORST_EVER = "worst score against any own snapshot"


@dataclass(frozen=True)
class Evaluation:
    """Settings that are the same for every policy.

    Fields:
      positions: critical ones. games: of each match. seed: of openings, bots and sampled actions.
    """

    positions: Sequence[Position]
    games: int
    seed: int


def measure(plan: Plan) -> Report:
    """Train and evaluate every population with every seed; collect the rows."""
    report = Report()
    budget = CORE_SECONDS if plan.core_seconds is None else plan.core_seconds
    evaluation = Evaluation(stored_positions(), plan.games, plan.evaluation_seed)
    found: dict[str, list[dict[str, float]]] = {population: [] for population in plan.populations}
    for seed in plan.seeds:
        for population in plan.populations:
            figures = _figures(plan, population, evaluation, seed=seed, core_seconds=budget)
            for name, value in figures.items():
                report.add(f"{population}, seed {seed}: {name}", value, _unit(name))
            found[population].append(figures)
    for population, runs in found.items():
        _add_summary(report, population, runs, gated=population == LEAGUE)
    if LEAGUE in found and LATEST in found:
        add_comparison(report, league=found[LEAGUE], latest=found[LATEST])
    _add_references(report, evaluation)
    return report


def _figures(
    plan: Plan, population: str, evaluation: Evaluation, *, seed: int, core_seconds: float
) -> dict[str, float]:
    """All figures of a population and seed, from its run and those of its exploiters."""
    run_dir = plan.run_dir(GAME, population, seed)
    settings = [f"seed={seed}", core_budget(core_seconds), "evaluation.bots=[]"]
    if population != LEAGUE:
        settings.append(f"league={control_sections(save_steps=SAVE_STEPS, rest=REST)[population]}")

    def trained() -> OpenRun:
        finished_run(CONFIG, run_dir=run_dir, settings=settings, timeout_s=wall_limit(core_seconds))
        return open_run(run_dir)

    def find() -> dict[str, float]:
        run = trained()
        return strength(run, evaluation) | worst_cases(run, plan)

    figures = plan.figures(run_dir, config=CONFIG, settings=settings, find=find)
    prey = Prey(trained, run_dir, CONFIG, settings, seed, core_seconds)
    return figures | exploiter_figures(plan, prey)


def strength(run: OpenRun, evaluation: Evaluation) -> dict[str, float]:
    """Figure -> value, for every export: "best v tactical", "best keeps the result" and so on."""
    figures: dict[str, float] = {"env steps": float(run.state.totals.env_steps)}
    known: dict[tuple[tuple[str, ...], bool], dict[str, float]] = {}  # several exports may be the same policy
    for export, policy in exports(run, seed=evaluation.seed).items():
        same = tuple(member.name for _, member in policy.members), export == GATED
        if same not in known:
            bots = [bot for bot in BOTS if export == GATED or bot not in SLOW_BOTS]
            known[same] = _policy_figures(policy, bots, evaluation)
            print(f"{run.path.name}: {export} evaluated", flush=True)
        figures |= {f"{export} {name}": value for name, value in known[same].items()}
    return figures


def _policy_figures(
    policy: LoadedPolicy | LoadedMixture, bots: Sequence[str], evaluation: Evaluation
) -> dict[str, float]:
    """Scores against bots, and the share of critical positions kept."""
    figures = {}
    for bot in bots:
        games = min(evaluation.games, SLOW_BOTS.get(bot, evaluation.games))
        policies = [policy.as_seat_policy(greedy=True), bot_policy(bot, seed=evaluation.seed)]
        figures[f"v {bot}"] = Match(ENV, policies, seed=evaluation.seed).play(games).score().value
    figures[KEEPS] = keeps(policy, evaluation.positions)
    return figures


def exports(run: OpenRun, *, seed: int) -> dict[str, LoadedPolicy | LoadedMixture]:
    """The exports of a finished run."""
    return {
        "last": load_snapshot(run, main_snapshots(run)[-1]),
        "best": load_from_run(run, "best"),
        "second half": load_from_run(run, "average", seed=seed),
        "mixture": load_from_run(run, "mixture", seed=seed),
    }


def worst_cases(run: OpenRun, plan: Plan) -> dict[str, float]:
    """The lowest scores of the last policy against its own past; none where there is no past yet."""
    scores = against_past(run, games=plan.games, seed=plan.evaluation_seed)
    among = {WORST_PAST: [score for score in scores if score.early], WORST_EVER: scores}
    return {name: min(score.score for score in group) for name, group in among.items() if group}


def _add_summary(report: Report, population: str, runs: Sequence[Mapping[str, float]], *, gated: bool) -> None:
    """Median and worst over the seeds of every figure that all of them have."""
    seeds = f"of {len(runs)} training seeds"
    for name in runs[0]:
        values = [run[name] for run in runs if name in run]
        required, target = _bound(name) if gated else (None, None)
        words = "" if target is None else f" (target {target:g})"
        middle = statistics.median(values)
        report.add(f"{population}: {name}, median {seeds}{words}", middle, _unit(name), at_least=required)
        worst = max(values) if more_is_worse(name) else min(values)
        report.add(f"{population}: {name}, worst {seeds}", worst, _unit(name))


def _bound(name: str) -> tuple[float | None, float | None]:
    """The bound and the target of a figure of the league."""
    if name == WORST_PAST:
        return WORST_PAST_REQUIRED, None
    gates = {f"{GATED} {figure}" if figure == KEEPS else f"{GATED} v {figure}": gate for figure, gate in GATES.items()}
    return gates.get(name, (None, None))


def _add_references(report: Report, evaluation: Evaluation) -> None:
    """Add the figures of random play and of a searching player on the same scales."""
    report.add(f"random play {KEEPS}", chance(evaluation.positions), _unit(KEEPS))
    for bot in ("tactical", "mcts:100"):
        share = moves_keep(bot_policy(bot, seed=evaluation.seed), evaluation.positions)
        report.add(f"{bot} {KEEPS}", share, _unit(KEEPS))
        policies = [bot_policy("random", seed=evaluation.seed + 1), bot_policy(bot, seed=evaluation.seed)]
        result = Match(ENV, policies, seed=evaluation.seed).play(evaluation.games)
        report.add(f"random play v {bot}", result.score().value, "score")


def _unit(name: str) -> str:
    if name == "env steps":
        return "steps"
    return "of positions" if name.endswith(KEEPS) else "score"
