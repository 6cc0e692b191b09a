"""A league of up to a thousand actor hosts, from what its daemon, its learners and its actors cost on this machine.

    python -m benchmarks.throughput.many_hosts --json

The daemon's processor time for one answer is that of `benchmarks.durability.daemon_loop` over 16, 128 and 1,000 hosts.
Those are simulated, and answer each lease after the time that a core needs for it. Ray's part in the daemon's process
is measured with as many calls in flight. How long a host waits for its next lease follows from both, since the clock
says little on a busy machine. Nothing here knows a network: machines far away cost more.

The curve then takes the parts of `benchmarks.throughput` for actors and learners. A learner has a core of its own, and
players are added until the learners keep up.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from benchmarks.durability.daemon_loop import carry
from benchmarks.durability.simulated.fake_hosts import outcomes_of
from benchmarks.report import Report
from benchmarks.throughput.__main__ import WORKLOADS
from benchmarks.throughput.roofline import RunParts, measure_run_parts
from league.agents.torch_runtime import prepare_process
from league.core.state.commands import FinishLease
from league.core.state.records import Assignment, Lease

ENV = "connect_four"
HOSTS = (16, 128, 1_000)
"""Numbers of hosts of which the daemon is measured."""
CORES = (1, 2, 4, 8, 16, 128, 1_000)
"""Of the curve."""
WARM_UP_S = 2.0
LEARNT = 0.61
"""Decisions learnt from in a ply, as in the league of `benchmarks.throughput`."""
SECONDS_OF_PARTS = 0.5
ACTORS = 2
"""Processes of Ray that stand for all hosts."""


class RayStandIn:
    """A Ray actor that answers each lease after a fixed time."""

    async def play(self, lease: Lease, lease_s: float) -> tuple[FinishLease, tuple[()]]:
        await asyncio.sleep(lease_s)
        return FinishLease(lease.lease_id, lease.token, 1, outcomes_of(lease)), ()


def measure_ray(*, hosts: int, lease_s: float, seconds: float) -> float:
    """Processor seconds of this process for one call, with so many in flight, as the runtime waits for them."""
    import ray

    from league.hosts.on_ray.calls import PendingCalls
    from league.hosts.on_ray.cluster import Cluster
    from league.hosts.on_ray.roster import Host

    cluster = Cluster("local", num_hosts=ACTORS, object_store_mb=256)
    cluster.start()
    try:
        actors = [ray.remote(RayStandIn).options(max_concurrency=hosts).remote() for _ in range(ACTORS)]
        calls, rng = PendingCalls(time.monotonic), np.random.default_rng(0)
        assignments = tuple(Assignment((f"main-0-s{place}", "main-0"), (False, True), 0.1) for place in range(10))

        def call(number: int, lease_s: float) -> None:
            lease = Lease(number, 1, "actor-0", "main-0", assignments, 128, num_envs=2_048)
            reference = actors[number % ACTORS].play.remote(lease, lease_s)
            calls.expect(reference, Host("actor-0", "actor_host"), lambda answer: [], deadline_s=600.0)

        for number in range(hosts):
            call(number, lease_s * (1.0 + rng.random()))
        number, warm_at, end = hosts, time.monotonic() + 2.0 * lease_s + WARM_UP_S, math.inf
        begun_s, begun_at = 0.0, 0
        while time.monotonic() < end:
            for reference, _ in calls.take_finished(0.2):
                ray.get(reference)
                call(number, lease_s)
                number += 1
            if math.isinf(end) and time.monotonic() >= warm_at:
                begun_s, begun_at, end = time.process_time(), number, time.monotonic() + seconds
        return (time.process_time() - begun_s) / (number - begun_at)
    finally:
        cluster.close()


@dataclass(frozen=True)
class Point:
    """A league on so many cores.

    Fields:
      actors, learners: cores of each; the daemon has a part of one.
      plies: a second.
      daemon: share of a core that the daemon and Ray in it take.
    """

    cores: int
    actors: int
    learners: int
    plies: float
    daemon: float


def leases_per_second(hosts: int, *, lease_s: float, answer_s: float) -> list[float]:
    """Answers a second of 0 to so many hosts, who wait in line for a daemon that takes `answer_s` for each.

    Mean value analysis of a closed queue (Reiser and Lavenberg 1980): whoever comes finds those who would be there
    without him. Exact where times are exponential, and on the safe side where they vary less.
    """
    rates, waiting = [0.0], 0.0
    for number in range(1, hosts + 1):
        response_s = answer_s * (1.0 + waiting)
        rates.append(number / (lease_s + response_s))
        waiting = rates[-1] * response_s
    return rates


def point_of(cores: int, parts: RunParts, *, lease_plies: float, answer_s: float) -> Point:
    """The best division of cores into actors and learners, each of the latter with one core.

    On one core all take turns. On more the daemon's time is taken off all cores.

    Args:
      answer_s: processor seconds of the daemon for a lease.
    """
    acting_s = 1.0 / parts.acting + LEARNT * ((1.0 / parts.recording - 1.0 / parts.acting) / parts.decisions)
    acting_s += LEARNT / parts.codec
    if cores == 1:
        plies = 1.0 / (1.0 / parts.plies(LEARNT) + answer_s / lease_plies)
        return Point(1, 1, 0, plies, answer_s * plies / lease_plies)
    all_work_s = acting_s + LEARNT / parts.update + answer_s / lease_plies
    rates = leases_per_second(cores, lease_s=lease_plies * acting_s, answer_s=answer_s)
    best = Point(cores, 0, 0, 0.0, 0.0)
    for learners in range(1, cores):
        actors = cores - learners
        plies = min(lease_plies * rates[actors], learners * parts.update / LEARNT, cores / all_work_s)
        if plies > best.plies:
            best = Point(cores, actors, learners, plies, answer_s * plies / lease_plies)
    return best


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, nargs="+", default=list(HOSTS), help="of which the daemon is measured")
    parser.add_argument("--lease-s", type=float, nargs="+", default=[0.0, 4.0], help="seconds of a lease; 0: as it is")
    parser.add_argument("--seconds", type=float, default=15.0, help="wall time of each window")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    given = parser.parse_args(arguments)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    prepare_process()
    workload = WORKLOADS[ENV]
    bench = workload.bench(ENV, seconds=SECONDS_OF_PARTS)
    parts = measure_run_parts(bench, num_envs=workload.num_envs, dtype=torch.float32)
    report = Report()
    for name, rate in vars(parts).items():
        report.add(f"{ENV}: {name}", rate, "/core-s" if name != "decisions" else "in a ply")
    usual = workload.lease_steps * workload.num_envs
    for lease_s in given.lease_s:
        plies = lease_s * parts.recording if lease_s else usual
        add_curve(report, parts, lease_plies=plies, hosts=given.hosts, seconds=given.seconds)
    report.print(sys.stdout, as_json=given.json)
    return 1 if report.failed else 0


def add_curve(
    report: Report,
    parts: RunParts,
    *,
    lease_plies: float,
    hosts: Sequence[int],
    seconds: float,
) -> None:
    """Append what a daemon costs with leases of so many plies, and the curve by it."""
    lease_s = lease_plies / parts.recording
    name = f"leases of {lease_plies:,.0f} plies, {lease_s:.2f} s"
    costs = {}
    for number in hosts:
        with tempfile.TemporaryDirectory(prefix="league-many-") as folder:
            carried = carry(Path(folder) / "run", hosts=number, lease_s=lease_s, seconds=seconds, seed=0)
        daemon_s = carried.cpu_share / carried.leases
        ray_s = measure_ray(hosts=number, lease_s=lease_s, seconds=seconds)
        costs[number] = (daemon_s, ray_s)
        report.add(f"{name}, {number:,} hosts: daemon, one answer", 1e3 * daemon_s, "core-ms")
        report.add(f"{name}, {number:,} hosts: Ray in it, one answer", 1e3 * ray_s, "core-ms")
        report.add(f"{name}, {number:,} hosts: answers", carried.leases, "/s")
    first = None
    for cores in CORES:
        daemon_s, ray_s = costs[min(hosts, key=lambda number: abs(math.log(number / cores)))]
        answer_s = daemon_s + (ray_s if cores > 1 else 0.0)
        point = point_of(cores, parts, lease_plies=lease_plies, answer_s=answer_s)
        first = first or point
        text = f"{name}, {cores:,} cores ({point.actors} actors, {point.learners} learners)"
        report.add(f"{text}: over one", point.plies / first.plies, "x")
        report.add(f"{text}: daemon's share of a core", point.daemon, "")


if __name__ == "__main__":
    sys.exit(main())
