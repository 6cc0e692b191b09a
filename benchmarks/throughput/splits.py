"""Plies a second of an actor host whose games take turns in two parts, over those of one part.

`python -m benchmarks.throughput.splits --json`

The host plays and records, without a learner. Other processes step its games, or decide for it on a core of their own:
a wall clock measures it, so nothing else may run. Runs of one and two parts take turns; figures are medians of the
ratios within a round. GPUs are hidden.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import secrets
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from benchmarks.report import Report
from benchmarks.throughput.central_inference import DEADLINE_S, Case, serve, started, weights_of
from league.agents.acting.central.socket_client import SocketClient
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.torch_runtime import prepare_process
from league.agents.weights import Weights
from league.core.state.records import Assignment, Lease
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import spec_of
from league.hosts.actors.actor_host import ActorHost
from league.hosts.setup import HostSetup

MLP = NetworkConfig(hidden=(128, 128), activation="relu")
LSTM = NetworkConfig(hidden=(128,), core="lstm", core_size=1024)
WARM_STEPS, STEPS = 20, 64
MAIN = "main-0"


@dataclass(frozen=True)
class Actor:
    """An actor host. workers: processes of its games. central: whether an inference host decides."""

    env: str
    network: NetworkConfig
    num_envs: int
    workers: int = 0
    central: bool = False


CASES = {
    "PettingZoo's Connect Four, two processes": Actor("pettingzoo:classic/connect_four_v3", MLP, 256, workers=2),
    "PettingZoo's tic-tac-toe, two processes": Actor("pettingzoo:classic/tictactoe_v3", MLP, 256, workers=2),
    "Gymnasium's Acrobot, two processes": Actor("gymnasium:Acrobot-v1", MLP, 256, workers=2),
    "Gymnasium's Taxi, two processes": Actor("gymnasium:Taxi-v4", MLP, 256, workers=2),
    "Connect Four, MLP 128-128, inference host": Actor("connect_four", MLP, 256, central=True),
    "Connect Four, LSTM-1024, inference host": Actor("connect_four", LSTM, 128, central=True),
}


class NoLearner:
    """Takes chunks and throws them away. Args: weights: of every player."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights

    def push(self, player: str, chunk: bytes) -> Weights | None:
        """Nothing comes back."""
        return None

    def weights(self, player: str) -> Weights:
        """The same for each."""
        return self._weights


def setup_of(actor: Actor, *, num_splits: int) -> HostSetup:
    """The setup of an actor host."""
    return HostSetup(
        run="splits",
        env=EnvConfig(actor.env, workers=actor.workers),
        network=actor.network,
        learner=LearnerConfig(unroll_length=16, batch_rows=64),
        num_envs=actor.num_envs,
        chunk_rows=64,
        seed=0,
        num_splits=num_splits,
    )


@contextlib.contextmanager
def inference_host(actor: Actor) -> Iterator[str]:
    """The name of an inference host's address, in a process of its own; empty where the actor decides."""
    if not actor.central:
        yield ""
        return
    name = secrets.token_hex(8)
    process, _pipe = started(serve, Case(actor.network, actor.num_envs), name)
    try:
        yield name
    finally:
        process.terminate()
        process.join(DEADLINE_S)


def plies_per_second(actor: Actor, *, num_splits: int, seconds: float) -> float:
    """Env steps a second by the clock."""
    spec = spec_of(EnvConfig(actor.env))
    learners = NoLearner(weights_of(build_network(spec, actor.network, seed=0)))
    assignment = Assignment((MAIN,) * spec.num_seats, (True,) * spec.num_seats, 1.0)
    with inference_host(actor) as name:

        def connect(spec: EnvSpec, network: Network, capacity: int) -> SocketClient:
            return SocketClient(name, spec, network, capacity=capacity, deadline_s=DEADLINE_S)

        setup = setup_of(actor, num_splits=num_splits)
        host = ActorHost(setup, name="actor-0", dtype=torch.float32, connect=connect if actor.central else None)
        lease = Lease(1, 1, "actor-0", MAIN, (assignment,), WARM_STEPS)
        with contextlib.closing(host):
            host.play(lease, frozen={}, learners=learners)
            lease, plies, began = replace(lease, steps=STEPS), 0, time.perf_counter()
            while time.perf_counter() - began < seconds:
                host.play(lease, frozen={}, learners=learners)
                plies += STEPS * actor.num_envs
            return plies / (time.perf_counter() - began)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES), help="actor hosts")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement, by the clock")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each kind, in turns")
    given = parser.parse_args(arguments)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    prepare_process()
    report = Report()
    for name in given.cases:
        add_rows(report, name, CASES[name], seconds=given.seconds, rounds=given.rounds)
    report.print(sys.stdout, as_json=given.json)
    return 0


def add_rows(report: Report, name: str, actor: Actor, *, seconds: float, rounds: int) -> None:
    """Rows of one case; medians of the rounds."""
    alone, one, two = [], [], []
    for _ in range(rounds):
        alone.append(plies_per_second(replace(actor, workers=0, central=False), num_splits=1, seconds=seconds))
        one.append(plies_per_second(actor, num_splits=1, seconds=seconds))
        two.append(plies_per_second(actor, num_splits=2, seconds=seconds))
    load = os.getloadavg()[0]
    gain = [after / before for before, after in zip(one, two, strict=True)]
    spread = f"{min(gain):.2f} to {max(gain):.2f}, load {load:.1f}"
    report.add(f"{name}: one part", statistics.median(one), "plies/s")
    report.add(f"{name}: two parts over one ({spread})", statistics.median(gain), "x")
    for parts, rates in (("one part", one), ("two parts", two)):
        over = [rate / before for before, rate in zip(alone, rates, strict=True)]
        report.add(f"{name}: {parts}, over all in one process", statistics.median(over), "x")


if __name__ == "__main__":
    sys.exit(main())
