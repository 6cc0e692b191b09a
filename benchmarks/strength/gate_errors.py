"""False alarms of a gate while one opponent is not beaten, and the games it needs if all are.

    python -m benchmarks.strength.gate_errors --gate posterior --runs 50

A run is a league of N opponents whose true win rates stay as they are. Before every look the player meets four of them
by PFSP on sampled win rates. One opponent, the resister, is won at 0.50, 0.60 or 0.64, below the bound of 0.65; all
others at 0.85. Then the power: all opponents at 0.75. Evidence fades by half in `--half-life` looks, 0 for never.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass

import numpy as np

from league.core.gates.gates import Gate, Trial, gate_of
from league.core.matchmaking.pfsp import pfsp, sparse_probabilities
from league.core.state.league_config import GateConfig
from league.core.state.payoff import Posterior

SIZES = (1, 2, 5, 10, 50, 200)
RESISTERS = (0.50, 0.60, 0.64)
OTHERS, BEATEN = 0.85, 0.75
OPPONENTS = 4


@dataclass(frozen=True)
class Course:
    """Length of a run: looks, games before each, and looks in which evidence fades by half (0: never)."""

    looks: int
    games: int
    half_life: float = 0.0


def main() -> int:
    """Run the simulations and print a table, and one JSON object last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gate", default="posterior")
    parser.add_argument("--sizes", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--looks", type=int, default=100)
    parser.add_argument("--games", type=int, default=1_000, help="games before each look")
    parser.add_argument("--half-life", type=float, default=0.0)
    options = parser.parse_args()
    course = Course(options.looks, options.games, options.half_life)
    settings = GateConfig(test=options.gate, min_steps=0)
    rows = []
    for size in options.sizes:
        row: dict[str, float | int | None] = {"opponents": size}
        for rate in RESISTERS:
            truth = resisted(size, rate)
            row[f"fired_with_one_at_{rate:.2f}"] = float(np.mean(fired(truth, settings, course, options.runs) >= 0))
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
    won, lost = np.zeros(size), np.zeros(size)
    for look in range(course.looks):
        shares = pfsp(rng.beta(won + 1.0, lost + 1.0), "squared")
        met, shares = sparse_probabilities(shares, limit=OPPONENTS, rng=rng)
        games = rng.multinomial(course.games, shares)
        wins = rng.binomial(games, truth[met])
        won, lost = won * faded, lost * faded
        won[met] += wins
        lost[met] += games - wins
        known = Posterior(won + 1.0, lost + 1.0, won + lost)
        if gate(Trial(1, np.arange(size), names, known, settings)) is not None:
            return look
    return -1


if __name__ == "__main__":
    sys.exit(main())
