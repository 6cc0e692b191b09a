"""Games, policies and a learner on one device, without a league around them: plies, kernels and waits of the host.

    python -m benchmarks.throughput.device_steps --json
    python -m benchmarks.throughput.device_steps --device cpu --games 1024 --rows 256 --seconds 2

It needs torch and numpy only. Acting alone is measured with eight opponents and with none; then the learner takes every
whole batch, and the home policy its weights.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.learner.calls import calls_of, reads_of
from benchmarks.report import Report
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.on_device.arena import DeviceArena
from league.agents.device_games.making import make_device_game
from league.agents.learner.build import build_learner, default_device
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.device_unrolls import AnyUnrolls, DeviceUnrolls, concatenate_any
from league.agents.unroll.unroll import UnrollSpec
from league.envs.protocol import EnvConfig

OPPONENTS = 8
NETWORKS: Mapping[str, NetworkConfig] = {
    "MLP 128-128": NetworkConfig(hidden=(128, 128), activation="relu"),
    "LSTM-1024": NetworkConfig(hidden=(128,), core="lstm", core_size=1024, activation="relu"),
}
REQUIRED = {"MLP 128-128": 2e6, "LSTM-1024": 1e6}
"""Plies per second with learning."""
WARM_UP = 3
"""Unrolls before a measurement: graphs are recorded in them."""


@dataclass(frozen=True)
class Seating:
    """An assignment of the table."""

    policies: tuple[str, ...]
    records: tuple[bool, ...]
    probability: float


def table_of(opponents: int) -> list[Seating]:
    """A third of the games are the home policy with itself; each opponent has its share of the rest, on both sides."""
    alone = [Seating(("home", "home"), (True, True), 0.35 if opponents else 1.0)]
    share = 0.65 / (2 * max(opponents, 1))
    first = [Seating(("home", f"old-{index}"), (True, False), share) for index in range(opponents)]
    second = [Seating((f"old-{index}", "home"), (False, True), share) for index in range(opponents)]
    return [*alone, *first, *second]


class Bench:
    """An arena of one game and network with its policies. Args: as the options of the command."""

    def __init__(self, env: EnvConfig, network: NetworkConfig, *, games: int, device: torch.device, dtype: torch.dtype):
        self.config = LearnerConfig(precision="float32")
        game = make_device_game(env, num_envs=games, device=device, seed=0)
        self.spec, self.device, self.dtype, self.network = game.spec, device, dtype, network
        built = build_network(game.spec, network, seed=0)
        self.unrolls = UnrollSpec.of(game.spec, built, unroll_length=self.config.unroll_length)
        self.arena = DeviceArena(game, self.unrolls, device=device, seed=0)
        self.policies = {}
        for index, name in enumerate(["home", *(f"old-{number}" for number in range(OPPONENTS))]):
            self.policies[name] = NetworkPolicy(build_network(game.spec, network, seed=index), dtype=dtype)
            self.policies[name].network.to(device)

    def rate(self, opponents: int, *, seconds: float, take: Callable[[DeviceUnrolls], None]) -> float:
        """Plies per second, while `take` gets all unrolls."""
        length, played = self.unrolls.unroll_length, 0
        self._play(opponents, WARM_UP * length, take)
        begun = time.perf_counter()
        while time.perf_counter() - begun < seconds:
            self._play(opponents, 8 * length, take)
            played += 8 * length * self.arena.num_envs
            if self.device.type == "cuda":
                torch.cuda.synchronize()
        return played / (time.perf_counter() - begun)

    def _play(self, opponents: int, steps: int, take: Callable[[DeviceUnrolls], None]) -> None:
        for rows in self.arena.run(table_of(opponents), self.policies, steps=steps):
            take(rows)
        self.arena.take_outcomes()

    def counts(self) -> tuple[int, int]:
        """Kernels of a step, and reads of the host in an unroll, with the policies of the last run."""
        with torch.no_grad():
            kernels = calls_of(self.arena._step).kernels
        return kernels, reads_of(lambda: self.arena._play(self.unrolls.unroll_length)).total()


class Pupil:
    """A learner that takes every whole batch, and gives its weights to the home policy."""

    def __init__(self, bench: Bench, *, rows: int) -> None:
        config = LearnerConfig(batch_rows=rows, precision="float32")
        self._learner = build_learner(bench.spec, bench.network, config, seed=0, dtype=bench.dtype)
        self._rows, self._home = rows, bench.policies["home"]
        self._waiting: list[AnyUnrolls] = []
        self.learnt = 0

    def take(self, rows: DeviceUnrolls) -> None:
        """Learn from what is whole."""
        self._waiting.append(rows)
        if sum(part.num_rows for part in self._waiting) < self._rows:
            return
        whole = concatenate_any(self._waiting)
        assert isinstance(whole, DeviceUnrolls)
        stop = whole.num_rows - whole.num_rows % self._rows
        for start in range(0, stop, self._rows):
            self.learnt += self._learner.update(whole.rows(start, start + self._rows), budget_fraction=0.0).steps
        self._waiting = [whole.rows(stop, whole.num_rows)] if stop < whole.num_rows else []
        self._home.adopt(self._learner.publish())


def measure(report: Report, name: str, bench: Bench, *, rows: int, seconds: float) -> None:
    """Add the rows of one network."""
    for opponents in (0, OPPONENTS):
        rate = bench.rate(opponents, seconds=seconds, take=lambda rows: None)
        kernels, reads = bench.counts()
        place = f"{name}, {opponents} opponents"
        report.add(f"{place}: plies, acting alone", rate, "1/s")
        report.add(f"{place}: kernels of a step", kernels, "")
        report.add(f"{place}: reads of the host in an unroll", reads, "", at_most=2)
    pupil = Pupil(bench, rows=rows)
    begun = time.perf_counter()
    required = REQUIRED[name] if bench.device.type == "cuda" else None
    rate = bench.rate(OPPONENTS, seconds=seconds, take=pupil.take)
    report.add(f"{name}, {OPPONENTS} opponents: plies, with learning", rate, "1/s", at_least=required)
    report.add(f"{name}: decisions learnt from", pupil.learnt / (time.perf_counter() - begun), "1/s")
    if bench.device.type == "cuda":
        report.add(f"{name}: memory of the GPU", torch.cuda.max_memory_allocated() / 2**30, "GiB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default=str(default_device()))
    parser.add_argument("--env", default="connect_four")
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), default=list(NETWORKS))
    parser.add_argument("--games", type=int, default=32768, help="a quarter of them for an LSTM")
    parser.add_argument("--rows", type=int, default=16384, help="unrolls of a batch; a quarter of them for an LSTM")
    parser.add_argument("--seconds", type=float, default=5.0, help="of every measurement")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args(arguments)
    prepare_process()
    report, device = Report(), torch.device(options.device)
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    for name in options.networks:
        part = 1 if NETWORKS[name].core == "none" else 4
        bench = Bench(EnvConfig(options.env), NETWORKS[name], games=options.games // part, device=device, dtype=dtype)
        measure(report, name, bench, rows=options.rows // part, seconds=options.seconds)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
