"""Acting where one player meets several frozen networks, against acting where it meets one.

    python -m benchmarks.throughput.opponents --json

Rates are env steps per second of this process's own CPU time: env, forward passes, draws and unrolls, without learning.
"One by one" calls every network by itself, as it is done for networks that cannot act together. The cases take turns;
figures are medians of the rounds.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch

from benchmarks.report import Report
from benchmarks.throughput.roofline import Bench, calls_per_core_second, new_policy
from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs, ActOutputs, Policy
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.unroll.unroll import UnrollSpec
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig
from league.envs.registry import make

OPPONENTS, GAMES = 8, 256
REQUIRED = 0.75
"""Least speed against `OPPONENTS` networks, as a fraction of that against one."""

STEPS = 16
"""Of every game in one timed call."""

NETWORKS: Mapping[str, NetworkConfig] = {
    "MLP 128-128": NetworkConfig(hidden=(128, 128)),
    "MLP 512-512": NetworkConfig(hidden=(512, 512)),
    "MLP 128 + LSTM-128": NetworkConfig(hidden=(128,), core="lstm", core_size=128),
    "conv 8-8 + 64": NetworkConfig(encoder="conv", channels=(8, 8), hidden=(64,)),
    "entities + MLP 128": NetworkConfig(encoder="entities", hidden=(128,)),
}

OF_BOARDS = tuple(name for name, network in NETWORKS.items() if network.encoder != "entities")
"""Networks for the default game, which has no entities."""


class OneByOne:
    """A policy that never acts together with others."""

    def __init__(self, policy: NetworkPolicy) -> None:
        self._policy = policy
        self.version = policy.version

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        """As the policy itself."""
        return self._policy.act(inputs, rng)


def opponents_rate(
    bench: Bench,
    *,
    opponents: int,
    num_envs: int,
    seed: int,
    dtype: torch.dtype = torch.float32,
    together: bool = True,
) -> float:
    """Env steps per core-second where one player meets so many frozen networks, each in an equal part of the games."""
    env = make(bench.env, num_envs=num_envs)
    seats, probability = env.spec.num_seats, 1.0 / (opponents * env.spec.num_seats)
    names = ["home", *(f"frozen-{number}" for number in range(opponents))]
    own = {
        name: new_policy(env.spec, bench.network, dtype=dtype, seed=seed + place) for place, name in enumerate(names)
    }
    policies: Mapping[str, Policy] = own if together else {name: OneByOne(policy) for name, policy in own.items()}
    assignments = [
        Assignment(
            tuple("home" if seat == home else name for seat in range(seats)),
            tuple(seat == home for seat in range(seats)),
            probability,
        )
        for name in names[1:]
        for home in range(seats)
    ]
    unrolls = UnrollSpec.of(env.spec, own["home"].network, unroll_length=bench.learner.unroll_length)
    arena = Arena(env, unrolls, seed=seed)
    rate = calls_per_core_second(
        lambda: sum(1 for _ in arena.run(assignments, policies, steps=STEPS)), seconds=bench.seconds
    )
    arena.close()
    return num_envs * STEPS * rate


def measure(bench: Bench, *, rounds: int, num_envs: int, dtype: torch.dtype) -> dict[str, list[float]]:
    """Rates of every round: against one network, against several, and against several one by one."""
    cases = {"one": (1, True), "several": (OPPONENTS, True), "one by one": (OPPONENTS, False)}
    rates: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(rounds):
        for name, (opponents, together) in cases.items():
            rate = opponents_rate(
                bench, opponents=opponents, num_envs=num_envs, seed=number, dtype=dtype, together=together
            )
            rates[name].append(rate)
    return rates


def add_rows(report: Report, name: str, rates: Mapping[str, list[float]]) -> None:
    """The rows of one network."""

    def ratio(of: str) -> float:
        return statistics.median(a / b for a, b in zip(rates[of], rates["one"], strict=True))

    report.add(f"{name}: against one network", statistics.median(rates["one"]), "env steps/core-s")
    report.add(f"{name}: against {OPPONENTS} networks", statistics.median(rates["several"]), "env steps/core-s")
    report.add(f"{name}: against {OPPONENTS} networks against one", ratio("several"), "ratio", at_least=REQUIRED)
    report.add(f"{name}: the same, networks called one by one", ratio("one by one"), "ratio")


def main() -> int:
    """Run the benchmark; exit 1 where a bound does not hold."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput.opponents",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--env", default="connect_four", help="id of a game of two seats or more")
    parser.add_argument("--games", type=int, default=GAMES, help="games at once")
    parser.add_argument("--networks", nargs="*", choices=sorted(NETWORKS), default=OF_BOARDS)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU time of each figure")
    parser.add_argument("--rounds", type=int, default=5, help="times that everything is measured, in turns")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    torch.set_num_threads(1)
    first = Bench(EnvConfig(options.env), NETWORKS["MLP 128-128"], LearnerConfig(), (), options.seconds)
    report = Report()
    for name in options.networks:
        bench = replace(first, network=NETWORKS[name])
        rates = measure(bench, rounds=options.rounds, num_envs=options.games, dtype=getattr(torch, options.precision))
        add_rows(report, name, rates)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
