"""Published games that nobody tuned League for, by their files here with the shipped defaults.

`python -m benchmarks.strength.strangers --runs DIR --results DIR --json`, by a Python that also has the packages which
the files name. For each game and seed one run of the league and one of the newest weights only, with equal budgets.
Both play the package's own bot and each other, in the package's own loop by `league.load_policy`, as a stranger would.
Then each is attacked with a fifth of its budget: by a fresh exploiter, and by one that begins as a copy.

Finished runs in `--runs` are used again and interrupted ones resumed; figures in `--results` are not found again.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pettingzoo import AECEnv

import league
from benchmarks.report import Report
from benchmarks.strength.exploiters import attack
from benchmarks.strength.runs import LATEST, LEAGUE, Plan, add_plan_arguments, core_budget, finished_run, wall_limit

PLACE = Path(__file__).resolve().parent
GAMES = ("geese", "fog", "uno")
ATTACKS: Mapping[str, tuple[str, ...]] = {"fresh exploiter": (), "exploiter that begins as a copy": ("--from-prey",)}
CORE_SECONDS = 1800.0
SHARE = 0.2
"""Of a run's budget that each of its exploiters has."""
REQUIRED, NEVER_ABOVE = 0.8, 1.1
"""Of newest-only's score for an exploiter, what the league's may be on one game at least, and on every game."""

Actor = Callable[[Any, str], Any]
"""Takes the game and the name of a seat, gives its action."""


def policy_actor(policy: Any) -> Actor:
    """A loaded policy in the package's own loop; it keeps a memory for each seat."""

    def act(game: Any, name: str) -> Any:
        seen = game.observe(name) if isinstance(game, AECEnv) else game.seen[name]
        return policy.act(seen, seat=name)

    return act


def returns_of(game: Any, actors: Mapping[str, Actor], *, seed: int) -> dict[str, float]:
    """The return of every seat in one game."""
    if isinstance(game, AECEnv):
        return _in_turn(game, actors, seed)
    totals = dict.fromkeys(game.possible_agents, 0.0)
    game.seen, _ = game.reset(seed=seed)
    while game.agents:
        actions = {name: actors[name](game, name) for name in game.agents}
        game.seen, rewards, *_ = game.step(actions)
        for name, reward in rewards.items():
            totals[name] += reward
    return totals


def _in_turn(game: Any, actors: Mapping[str, Actor], seed: int) -> dict[str, float]:
    game.reset(seed=seed)
    totals = dict.fromkeys(game.possible_agents, 0.0)
    while not all(game.terminations.values()):
        name = game.agent_selection
        game.step(actors[name](game, name))
        for other, reward in game.rewards.items():
            totals[other] += reward
    return totals


def score(module: Any, ours: Callable[[], tuple[Any, Actor]], theirs: Actor, *, games: int, seed: int) -> list[float]:
    """Scores in [0, 1] of one seat of ours among seats of theirs, each seat in turn.

    Args:
      ours: makes a policy, to be reset before each game, and what plays it.
    """
    game, (policy, actor) = module.make(), ours()
    names, scores = game.possible_agents, []
    for number in range(games):
        np.random.seed(seed + number)
        policy.reset(seed=seed + number)
        mine = names[number % len(names)]
        actors = {name: actor if name == mine else theirs for name in names}
        returns = returns_of(game, actors, seed=seed + number // len(names))
        scores.append(0.5 + 0.5 * returns[mine])
    return scores


def measure(plan: Plan, names: Sequence[str]) -> Report:
    """Train and judge every game, population and seed."""
    report, ratios = Report(), list[float]()
    for name in names:
        found = {which: [_figures(name, which, seed, plan) for seed in plan.seeds] for which in plan.populations}
        for which, figures in found.items():
            for key in figures[0]:
                values = [figure[key] for figure in figures]
                report.add(f"{name}, {which}: {key}, median of {len(values)} seeds", statistics.median(values), "")
        for kind in ATTACKS if len(plan.populations) == 2 else ():
            ours, newest = (statistics.median(figure[kind] for figure in found[which]) for which in (LEAGUE, LATEST))
            ratios.append(ours / max(newest, 1e-9))
            text = f"{name}: {kind}, league over newest only"
            report.add(text, ratios[-1], "ratio", at_most=NEVER_ABOVE)
    if ratios:
        report.add("the least of these ratios", min(ratios), "ratio", at_most=REQUIRED)
    return report


def _figures(name: str, population: str, seed: int, plan: Plan) -> dict[str, float]:
    budget = CORE_SECONDS if plan.core_seconds is None else plan.core_seconds
    latest = ["league.preset=self_play"] if population == LATEST else []
    settings = [f"seed={seed}", core_budget(budget), *latest]
    run_dir, config = plan.run_dir(name, population, seed), plan.folder / f"{name}.yaml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(json.dumps({"env": {"id": f"{PLACE / name}.py:make"}}))

    def find() -> dict[str, float]:
        finished_run(config, run_dir=run_dir, settings=settings, timeout_s=wall_limit(budget))
        return {**_scores(name, run_dir, plan), **_attacks(run_dir, budget, plan)}

    return plan.figures(run_dir, config=config, settings=settings, find=find)


def _scores(name: str, run_dir: Path, plan: Plan) -> dict[str, float]:
    module = importlib.import_module(f"benchmarks.strength.strangers.{name}")

    def ours() -> tuple[Any, Actor]:
        policy = league.load_policy(run_dir, trust=True)
        return policy, policy_actor(policy)

    found = {}
    for bot, actor in {**module.BOTS, "random": random_actor}.items():
        values = score(module, ours, actor, games=plan.games, seed=plan.evaluation_seed)
        found[f"score v {bot}"] = statistics.fmean(values)
        found[f"half of the 95 % interval v {bot}"] = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
        print(f"{run_dir.name}: {found[f'score v {bot}']:.3f} v {bot}", flush=True)
    return found


def random_actor(game: Any, name: str) -> Any:
    """A legal action, each as likely."""
    seen = game.observe(name) if isinstance(game, AECEnv) else game.seen[name]
    if isinstance(seen, dict):
        return int(np.random.choice(np.flatnonzero(seen["action_mask"])))
    return np.random.randint(game.action_space(name).nvec)


def _attacks(run_dir: Path, budget: float, plan: Plan) -> dict[str, float]:
    """The score of each exploiter against the run's export."""
    found = {}
    for number, (kind, flags) in enumerate(ATTACKS.items()):
        path = run_dir.with_name(f"{run_dir.name}-attack-{number}")
        found[kind] = attack(
            run_dir, player="auto", path=path, core_seconds=SHARE * budget, games=plan.games, flags=flags
        )["value"]
        print(f"{run_dir.name}: {found[kind]:.3f} for a {kind}", flush=True)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the games that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.strangers", description=__doc__)
    parser.add_argument("--names", nargs="+", choices=GAMES, default=[*GAMES])
    parser.add_argument("--core-seconds", type=float, help=f"budget of each run, by default {CORE_SECONDS:g}")
    parser.add_argument("--games", type=int, default=400, help="of each match, by default 400")
    add_plan_arguments(parser)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as passing:
        plan = Plan(
            seeds=tuple(options.seeds),
            populations=(LEAGUE, LATEST),
            core_seconds=options.core_seconds,
            seconds=0.0,
            games=options.games,
            evaluation_seed=7001,
            folder=(options.runs or Path(passing)).absolute(),
            results=options.results,
        )
        report = measure(plan, options.names)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
