"""Decisions per core-second of central inference against local acting, and what a request costs beside them.

`python -m benchmarks.throughput.central_inference --json`

Every actor is a process of its own that plays and records unrolls. Its policy decides there, or at one inference host,
which is a process too. A figure is the decisions of all actors over the processor seconds of all processes,
between two moments at which all of them work. Runs take turns; figures are medians. GPUs are hidden: on a CPU a central
forward pass takes the same core-seconds as a local one, so nothing can be gained but by larger batches.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import secrets
import statistics
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from benchmarks.report import Report
from league.agents.acting.arena import Arena
from league.agents.acting.central.central_policy import CentralPolicy
from league.agents.acting.central.inference_host import InferenceHost
from league.agents.acting.central.inference_server import InferenceServer
from league.agents.acting.central.socket_client import SocketClient
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import Weights, from_named, layout_of
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig
from league.envs.registry import make, spec_of

ENV = EnvConfig("connect_four")
WARM_STEPS = 10
DEADLINE_S = 180.0
MICROSECONDS = 1e6


@dataclass(frozen=True)
class Case:
    """A network, and the games that each actor steps at once."""

    network: NetworkConfig
    num_envs: int


CASES = {
    "MLP 128-128, 256 games": Case(NetworkConfig(hidden=(128, 128), activation="relu"), 256),
    "LSTM-1024, 16 games": Case(NetworkConfig(hidden=(128,), core="lstm", core_size=1024), 16),
    "LSTM-1024, 128 games": Case(NetworkConfig(hidden=(128,), core="lstm", core_size=1024), 128),
}


@dataclass(frozen=True)
class Measured:
    """Decisions of all actors, processor seconds of all processes, requests, and batches of the inference host."""

    decisions: int
    core_seconds: float
    requests: int
    batches: int

    @property
    def rate(self) -> float:
        """Decisions per core-second."""
        return self.decisions / self.core_seconds


def new_network(case: Case) -> Network:
    """The network of a case; equal in every process."""
    return build_network(spec_of(ENV), case.network, seed=0)


def weights_of(network: Network) -> Weights:
    """The weights that it has."""
    named = {name: parameter.detach().numpy() for name, parameter in network.named_parameters()}
    return from_named(named, layout_of(network), version=1)


def serve(case: Case, name: str, pipe: Connection) -> None:
    """The inference host's process; each message asks for its processor seconds and batches so far."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    prepare_process()
    network = new_network(case)
    server = InferenceServer(InferenceHost(network), spec_of(ENV), network, name=name)
    threading.Thread(target=server.serve, daemon=True).start()
    pipe.send(None)
    while pipe.recv():
        pipe.send((time.process_time(), server.counts.batches))


def act(case: Case, name: str, seed: int, pipe: Connection) -> None:
    """An actor's process: plays until a message comes, and sends decisions, processor seconds and steps."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    prepare_process()
    network, env = new_network(case), make(ENV, num_envs=case.num_envs)
    policy: NetworkPolicy | CentralPolicy = NetworkPolicy(network)
    if name:
        client = SocketClient(name, env.spec, network, capacity=2 * case.num_envs, deadline_s=DEADLINE_S)
        policy = CentralPolicy("main", client)
    policy.adopt(weights_of(network))
    arena = Arena(env, UnrollSpec.of(env.spec, network, unroll_length=16), seed=seed)
    table = (Assignment(("main", "main"), (True, True), 1.0),)
    steps, began, is_warm = 0, time.process_time(), False
    while not pipe.poll():
        for _ in arena.run(table, {"main": policy}, steps=1):
            pass
        steps += 1
        if steps == WARM_STEPS and not is_warm:
            pipe.send(None)
            assert pipe.recv(), "stopped before it began"
            steps, began, is_warm = 0, time.process_time(), True
    pipe.recv()
    pipe.send((steps * case.num_envs, time.process_time() - began, steps))


def started(work: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Any]:
    """A process that does this work, and the end of its pipe once it has said that it is ready."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(*arguments, theirs), daemon=True)
    process.start()
    assert ours.poll(DEADLINE_S), "a process did not start"
    ours.recv()
    return process, ours


def asked(pipe: Any) -> Any:
    """The answer to a message."""
    pipe.send(True)
    return answer_of(pipe)


def answer_of(pipe: Any) -> Any:
    """The next message."""
    assert pipe.poll(DEADLINE_S), "a process did not answer"
    return pipe.recv()


def measure(case: Case, *, actors: int, central: bool, seconds: float) -> Measured:
    """Let so many actors play for so long by the clock."""
    name = secrets.token_hex(8) if central else ""
    host = started(serve, case, name) if central else None
    found = [started(act, case, name, seed) for seed in range(actors)]
    try:
        before = asked(host[1]) if host else (0.0, 0)
        for _, pipe in found:
            pipe.send(True)
        time.sleep(seconds)
        for _, pipe in found:
            pipe.send(True)
        answers = [answer_of(pipe) for _, pipe in found]
        after = asked(host[1]) if host else (0.0, 0)
    finally:
        for process, _ in (*found, *([host] if host else [])):
            process.terminate()
            process.join(DEADLINE_S)
    decisions, own, requests = (sum(column) for column in zip(*answers, strict=True))
    return Measured(decisions, own + after[0] - before[0], requests, after[1] - before[1])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES), help="networks and games")
    parser.add_argument("--actors", nargs="*", type=int, default=[1, 2, 4], help="numbers of actors")
    parser.add_argument("--seconds", type=float, default=4.0, help="of each measurement, by the clock")
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each kind, in turns")
    given = parser.parse_args(arguments)
    report = Report()
    for name in given.cases:
        case, local, central = CASES[name], list[Measured](), {number: list[Measured]() for number in given.actors}
        for _ in range(given.rounds):
            local.append(measure(case, actors=1, central=False, seconds=given.seconds))
            for number in given.actors:
                central[number].append(measure(case, actors=number, central=True, seconds=given.seconds))
        add_rows(report, name, case, local, central)
    report.print(sys.stdout, as_json=given.json)
    return 0


def add_rows(
    report: Report, name: str, case: Case, local: Sequence[Measured], central: dict[int, list[Measured]]
) -> None:
    """Rows of one case, medians of the rounds; shares are of the local run of the same round."""
    report.add(f"{name}: local", statistics.median(run.rate for run in local), "decisions/core-second")
    for number, runs in central.items():
        shares = [run.rate / alone.rate for run, alone in zip(runs, local, strict=True)]
        extra = [
            case.num_envs * MICROSECONDS * (1.0 / run.rate - 1.0 / alone.rate)
            for run, alone in zip(runs, local, strict=True)
        ]
        rows = [run.decisions / max(run.batches, 1) for run in runs]
        label = f"{name}: central, {number} actor{'s' if number > 1 else ''}"
        report.add(f"{label} over local", statistics.median(shares), "x")
        report.add(f"{label}, rows of a batch", statistics.median(rows), "rows")
        report.add(f"{label}, extra processor time of a request", statistics.median(extra), "us")


if __name__ == "__main__":
    sys.exit(main())
