"""Games in other units, by the shipped defaults: a game's units must not matter.

`python -m benchmarks.strength.units --runs DIR --json`. CartPole and Pendulum with every observed number or reward
multiplied or moved, Kuhn poker with other returns. Each variant is trained with nothing but its id, a budget and a
seed. Figures are put back into the game's own units. Finished runs in `--runs` are used again and interrupted ones
resumed, and figures in `--results` are not found again.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from benchmarks.defaults.games import EXACT, RETURN, Game, Judge
from benchmarks.defaults.judge import Evaluation, figures_of
from benchmarks.report import Report
from benchmarks.strength.runs import (
    LEAGUE,
    Plan,
    add_plan_arguments,
    core_budget,
    finished_run,
    measured,
    wall_limit,
)
from league.envs.protocol import EnvConfig
from league.policies.loading import open_run
from league.policies.trust import trust_places
from league.store.storage import Storage

MODULE = Path(__file__).with_name("odd_units.py")
SEED = 20_261_125
WORDS: Mapping[Judge, str] = {EXACT: "NashConv", RETURN: "return"}


@dataclass(frozen=True)
class Variant:
    """A game in other units.

    Fields:
      maker: function of `odd_units`. kwargs: its arguments. judge: as for the games of the defaults.
      figure_factor: how many times larger its figure is than in the game's own units.
      at_least, at_most: bound of the figure's median in the game's own units.
    """

    maker: str
    judge: Judge
    kwargs: Mapping[str, object] = field(default_factory=dict)
    figure_factor: float = 1.0
    at_least: float | None = None
    at_most: float | None = None


def _cart_pole(reward_factor: float = 1.0, **kwargs: object) -> Variant:
    own = {"name": "CartPole-v1", "reward_factor": reward_factor, **kwargs}
    return Variant("one_seat", RETURN, own, figure_factor=reward_factor, at_least=400.0)


def _pendulum(**kwargs: object) -> Variant:
    return Variant("one_seat", RETURN, {"name": "Pendulum-v1", **kwargs}, at_least=-300.0)


def _kuhn(factor: float = 1.0, **kwargs: object) -> Variant:
    return Variant("kuhn", EXACT, {"factor": factor, **kwargs}, figure_factor=factor, at_most=0.05)


VARIANTS: Mapping[str, Variant] = {
    "cart_pole": _cart_pole(),
    "cart_pole, numbers in hundredths": _cart_pole(factor=0.01),
    "cart_pole, numbers in thousands": _cart_pole(factor=1000.0),
    "cart_pole, numbers plus 100": _cart_pole(offset=100.0),
    "cart_pole, rewards in thousandths": _cart_pole(reward_factor=0.001),
    "cart_pole, rewards in hundreds": _cart_pole(reward_factor=100.0),
    "pendulum": _pendulum(),
    "pendulum, numbers in hundredths": _pendulum(factor=0.01),
    "pendulum, numbers plus 100": _pendulum(offset=100.0),
    "kuhn": _kuhn(),
    "kuhn, returns in thousandths": _kuhn(factor=0.001),
    "kuhn, returns in thousands": _kuhn(factor=1000.0),
    "kuhn, returns plus 100": _kuhn(offset=100.0),
}


def figure_of(name: str, plan: Plan, seed: int) -> float:
    """The figure of `auto` of one run, in the game's own units."""
    variant, core_seconds = VARIANTS[name], plan.core_seconds
    assert core_seconds is not None
    env = EnvConfig(f"{MODULE}:{variant.maker}", dict(variant.kwargs))
    words = name.replace(", ", "-").replace(" ", "_")
    config = plan.folder / f"{words}.yaml"
    Storage().atomic_write_bytes(config, yaml.safe_dump({"env": {"id": env.id, "kwargs": {**env.kwargs}}}).encode())
    run_dir = plan.run_dir(words, LEAGUE, seed)
    settings = [f"seed={seed}", core_budget(core_seconds), "evaluation.bots=[]", "runtime.kind=inprocess"]

    def find() -> dict[str, float]:
        finished_run(config, run_dir=run_dir, settings=settings, timeout_s=wall_limit(core_seconds))
        game = Game(env, (), judge=variant.judge)
        trust_places([run_dir])
        return figures_of(open_run(run_dir), game, Evaluation(plan.games, plan.evaluation_seed))

    found = plan.figures(run_dir, config=config, settings=settings, find=find)
    return found[f"auto {WORDS[variant.judge]}"] / variant.figure_factor


def measure(variants: Sequence[str], plan: Plan) -> Report:
    """Figures of variants by seed, and their medians against the bounds."""
    report = Report()
    for name in variants:
        variant, found = VARIANTS[name], [figure_of(name, plan, seed) for seed in plan.seeds]
        word = WORDS[variant.judge]
        for seed, figure in zip(plan.seeds, found, strict=True):
            report.add(f"{name}, seed {seed}: {word}", figure, "")
        median = f"{name}: {word}, median of {len(found)} seeds"
        report.add(median, statistics.median(found), "", at_least=variant.at_least, at_most=variant.at_most)
    return report


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the variants that the command line names; the last line is JSON if asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.strength.units", description=__doc__)
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=[*VARIANTS], metavar="VARIANT")
    parser.add_argument("--core-seconds", type=float, default=60.0, help="budget of each run")
    parser.add_argument("--episodes", type=int, default=50, help="of each judged policy of one seat")
    add_plan_arguments(parser)
    options = parser.parse_args(arguments)
    measure_chosen = functools.partial(measure, options.variants)
    return measured(options, measure_chosen, games=options.episodes, evaluation_seed=SEED)


if __name__ == "__main__":
    sys.exit(main())
