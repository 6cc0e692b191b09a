"""Strength in games that are cyclic in pure choices, for which a league has a mechanism; exploitability is exact.

Unequal-stakes rock, paper, scissors, the circle of nine choices, the disc game, and rock, paper, scissors repeated for
a few rounds. For each seed one league of `configs/rock_paper_scissors.yaml` and one naive run: the newest weights
only, hardly any entropy, a constant step size. Figures are NashConv as a share of the payoffs' range over a whole
game: 1 for a pure choice in rock, paper, scissors.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import Report
from benchmarks.strength.games.exact_runs import Exports, exports_of, payoff_range, run_settings
from benchmarks.strength.runs import LEAGUE, NAIVE, ROOT, Plan, finished_run, wall_limit
from league.envs.protocol import EnvConfig

CONFIG = ROOT / "configs" / "rock_paper_scissors.yaml"
POPULATIONS = (LEAGUE, NAIVE)
ROUNDS = 4
"""Of the repeated game: an opponent of a mixture has 820 histories to tell its members apart."""


@dataclass(frozen=True)
class Game:
    """A gated game.

    Fields:
      env: what is played. core_seconds: the budget. settings: "key=value" that count over the configuration's.
    """

    env: EnvConfig
    core_seconds: float = 20.0
    settings: tuple[str, ...] = ()


GAMES: Mapping[str, Game] = {
    "unequal_stakes": Game(EnvConfig("rock_paper_scissors", {"stakes": [1, 2, 3]})),
    "circle_of_nine": Game(EnvConfig("cyclic_game")),
    "disc": Game(EnvConfig("disc_game")),
    "repeated_rps": Game(
        EnvConfig("repeated_rock_paper_scissors", {"rounds": ROUNDS}),
        core_seconds=20.0,
        settings=(
            "network.hidden=[32]",
            f"learner.unroll_length={ROUNDS}",
            "learner.batch_rows=256",
            "learner.gamma=1.0",
            "learner.algorithm.lambda_=1.0",
        ),
    ),
}

ONE_SHOT = ("unequal_stakes", "circle_of_nine", "disc")

NAIVE_LEAGUE = (
    "{preset: self_play, population: {save_steps: 50000}, ratings: {step_fraction: 0.0, final_leases: 0}, "
    "lease_steps: 32}"
)
NAIVE_LEARNER = (
    "learner.entropy_cost=0.01",
    "learner.entropy_cost_end=0.01",
    "learner.learning_rate_end=5.0e-3",
)

REQUIRED, TARGET = 0.10, 0.03
"""Share of the range that the league's mixture may leave to be won."""


def measure(names: Sequence[str], plan: Plan) -> Report:
    """Train league and naive run of every game with every seed; collect the rows. names: of the games."""
    report = Report()
    for name in names:
        game = GAMES[name]
        budget = game.core_seconds if plan.core_seconds is None else plan.core_seconds
        settings = [f"env.id={game.env.id}", f"env.kwargs={dict(game.env.kwargs)}", *game.settings]
        for population in plan.populations:
            naive = population == NAIVE
            runs = []
            for seed in plan.seeds:
                run_dir = plan.run_dir(name, population, seed)
                asked = run_settings(
                    seed=seed,
                    core_seconds=budget,
                    league=NAIVE_LEAGUE if naive else None,
                    settings=[*settings, *(NAIVE_LEARNER if naive else ())],
                )
                finished_run(CONFIG, run_dir=run_dir, settings=asked, timeout_s=wall_limit(budget))
                runs.append(exports_of(run_dir))
            _add(report, f"{name}, {population}", runs, scale=payoff_range(game.env), gated=not naive)
    return report


def _add(report: Report, name: str, runs: Sequence[Exports], *, scale: float, gated: bool) -> None:
    """Median and worst over the seeds of every export; the median of a league's mixture has a bound."""
    columns = [run.nash_convs() for run in runs]
    for export in columns[0]:
        values = [column[export] / scale for column in columns]
        bound = REQUIRED if gated and export.startswith("mixture") else None
        seeds = f"of {len(runs)} training seeds"
        target = f" (target {TARGET:g})" if bound is not None else ""
        report.add(f"{name}: {export}, median {seeds}{target}", statistics.median(values), "of range", at_most=bound)
        report.add(f"{name}: {export}, worst {seeds}", max(values), "of range")
