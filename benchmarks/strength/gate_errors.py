"""False alarms of a gate while one opponent is not beaten, and the games it needs if all are.

    python -m benchmarks.strength.gate_errors --gate posterior --runs 50

A run is a league of N opponents whose true win rates stay as they are. Before every look the player meets four of them
by PFSP on sampled win rates. One opponent, the resister, is won at 0.50, 0.60 or 0.65, the bound, or rises from 0.30 to
the bound in the first half of the run; all others at 0.85. Then the power: all opponents at 0.75. Evidence fades by
half in `--half-life` looks, 0 for never; `--draws` is the share of drawn games.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass, replace

import numpy as np

from league.core.gates.e_values import bound_of, carried, log_e_values, new_bets, observe
from league.core.gates.gates import Gate, Trial, gate_of
from league.core.matchmaking.pfsp import pfsp, sparse_probabilities
from league.core.state.league_config import GateConfig
from league.core.state.payoff import Posterior

SIZES = (1, 2, 5, 10, 50, 200)
RESISTERS = (0.50, 0.60, 0.65)
BOUND, DRIFT_FROM = 0.65, 0.30
OTHERS, BEATEN = 0.85, 0.75
OPPONENTS = 4


@dataclass(frozen=True)
class Course:
    """Length of a run: looks, games before each, and looks in which evidence fades by half (0: never).

    draws: share of drawn games; scores stay as they are. drifts: the first opponent's rises from `DRIFT_FROM`.
    """

    looks: int
    games: int
    half_life: float = 0.0
    draws: float = 0.0
    drifts: bool = False


def main() -> int:
    """Run the simulations and print a table, and one JSON object last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gate", default="posterior")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--looks", type=int, default=100)
    parser.add_argument("--games", type=int, default=1_000, help="games before each look")
    parser.add_argument("--half-life", type=float, default=0.0)
    parser.add_argument("--draws", type=float, default=0.0)
    options = parser.parse_args()
    course = Course(options.looks, options.games, options.half_life, options.draws)
    settings = GateConfig(test=options.gate, min_steps=0)
    rows = []
    for size in options.sizes:
        row: dict[str, float | int | None] = {"opponents": size}
        for rate in RESISTERS:
            truth = resisted(size, rate)
            row[f"fired_with_one_at_{rate:.2f}"] = float(np.mean(fired(truth, settings, course, options.runs) >= 0))
        drifting = fired(resisted(size, BOUND), settings, replace(course, drifts=True), options.runs)
        row["fired_with_one_that_drifts"] = float(np.mean(drifting >= 0))
        looks = fired(np.full(size, BEATEN), settings, course, options.runs)
        row["power_at_0.75"] = float(np.mean(looks >= 0))
        row["games_per_opponent_at_0.75"] = (
            float(np.median(looks[looks >= 0]) + 1) * course.games / size if row["power_at_0.75"] else None
        )
        rows.append(row)
        print("  ".join(f"{name} {value}" for name, value in row.items()), file=sys.stderr, flush=True)
    print(json.dumps({"gate": options.gate, "runs": options.runs, **vars(course), "rows": rows}))
    return 0


def resisted(size: int, rate: float) -> np.ndarray:
    """float64 [size], true win rates: one opponent at `rate`, the others well beaten."""
    return np.concatenate([[rate], np.full(size - 1, OTHERS)])


def fired(truth: np.ndarray, settings: GateConfig, course: Course, runs: int) -> np.ndarray:
    """int64 [runs], the look at which each run's gate fired, -1 for none."""
    gate = gate_of(settings)
    return np.array([_look_fired(truth, gate, settings, course, np.random.default_rng(seed)) for seed in range(runs)])


def _look_fired(truth: np.ndarray, gate: Gate, settings: GateConfig, course: Course, rng: np.random.Generator) -> int:
    size = len(truth)
    names = {number: f"opponent-{number}" for number in range(size)}
    faded = 0.5 ** (1.0 / course.half_life) if course.half_life else 1.0
    bound = bound_of(settings)
    bets = new_bets(bound if bound is not None else BOUND, 0.0, size)
    won, lost, truth = np.zeros(size), np.zeros(size), truth.copy()
    last = truth[0]
    for look in range(course.looks):
        shares = pfsp(rng.beta(won + 1.0, lost + 1.0), "squared")
        met, shares = sparse_probabilities(shares, limit=OPPONENTS, rng=rng)
        if course.drifts:
            truth[0] = DRIFT_FROM + (last - DRIFT_FROM) * min(2.0 * look / course.looks, 1.0)
        games = rng.multinomial(course.games, shares)
        drawn = rng.binomial(games, course.draws)
        wins = drawn / 2.0 + rng.binomial(games - drawn, (truth[met] - course.draws / 2.0) / (1.0 - course.draws))
        won, lost = won * faded, lost * faded
        won[met] += wins
        lost[met] += games - wins
        known = Posterior(won + 1.0, lost + 1.0, won + lost)
        now = carried(bets[met], look, course.half_life or math.inf)
        observe(now, wins, games - wins)
        bets[met] = now
        evidence = log_e_values(carried(bets, look, course.half_life or math.inf))
        if gate(Trial(1, np.arange(size), names, known, settings, evidence)) is not None:
            return look
    return -1


if __name__ == "__main__":
    sys.exit(main())
