"""Two cores over one: a learner with threads and an actor host on Ray, against one process.

    python -m benchmarks.throughput.cores --env connect_four --json
    python -m benchmarks.throughput.cores --env gymnasium:CartPole-v1 --seconds 0

Runs take turns. Each is divided by what one player without opponents would make by its share of learnt plies, see
`benchmarks.throughput`. The bound only holds where this machine is otherwise idle.

The ceiling is put together from processor times of parts, so that it can be measured beside other work: acting with
recording and codec, an update in one piece, and an update in two, whose first piece is computed in the learner's own
thread. The learner cuts a part of its updates, the best one for the ceiling.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.report import Report
from benchmarks.throughput.__main__ import WORKLOADS, config_of
from benchmarks.throughput.rate_window import Measured, measure_run
from benchmarks.throughput.roofline import (
    FOREVER,
    Bench,
    RunParts,
    measure_run_parts,
    middle_of,
    ready_unrolls,
)
from league.agents.learner.build import build_learner
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.torch_runtime import prepare_process
from league.envs.registry import make

REQUIRED = 1.8
IDLE_LOAD = 1.0
"""Load of the machine before a run, up to which its wall time says something."""
SECONDS_OF_PARTS = 0.5
UPDATES = 10
"""Updates of each number of pieces in one turn."""
TURNS = 12
PIECES = (1, 2, 4)
CORES = (1, 2, 4, 8, 16)
"""Of the curve of ceilings."""


@dataclass(frozen=True)
class Pieces:
    """Processor seconds of one update. own: of the learner's thread; whole: of all of its threads."""

    own: float
    whole: float


@dataclass(frozen=True)
class Ceilings:
    """Speed of two cores over that of one process: with one thread of the learner, and with two where that helps.

    Fields:
      cut: share of the updates that are cut in two in the latter.
    """

    one_thread: float
    two_threads: float
    cut: float


def ceilings_of(acting: float, one: Pieces, two: Pieces) -> Ceilings:
    """The speeds that two cores cannot exceed if nothing but acting and updates cost anything.

    Args:
      acting: core-seconds to make the decisions of one update. one, two: an update in so many pieces.
    """

    def seconds(cut: float) -> float:
        own, whole = (one_ + cut * (two_ - one_) for one_, two_ in ((one.own, two.own), (one.whole, two.whole)))
        return max(own, (acting + whole) / 2.0)

    alone = acting + one.whole
    best = min((percent / 100.0 for percent in range(101)), key=seconds)
    return Ceilings(alone / seconds(0.0), alone / seconds(best), best)


def curve_of(acting: float, pieces: Mapping[int, Pieces]) -> dict[int, float]:
    """Number of cores -> the same for so many, the updates cut into the best number of pieces for it.

    One learner's own thread bounds it: beyond that only larger batches, or learners of several players, use more cores.
    """
    alone = acting + pieces[1].whole
    seconds = {
        cores: min(max(cost.own, (acting + cost.whole) / cores) for number, cost in pieces.items() if number <= cores)
        for cores in CORES
    }
    return {cores: alone / bound for cores, bound in seconds.items()}


def measure_pieces(bench: Bench) -> dict[int, Pieces]:
    """Number of pieces -> costs of an update in so many; the pieces take turns. The caller has set torch's threads."""
    unrolls = ready_unrolls(bench, rows=bench.learner.batch_rows)
    config = replace(bench.learner, max_policy_lag=FOREVER)
    spec = make(bench.env, num_envs=1).spec
    learners = {
        number: build_learner(
            spec, bench.network, replace(config, pipeline=PipelineConfig(threads=number)), seed=0, dtype=torch.float32
        )
        for number in PIECES
    }
    found: dict[int, list[Pieces]] = {number: [] for number in PIECES}
    for _ in range(TURNS):
        for number, learner in learners.items():
            update = functools.partial(learner.update, unrolls, budget_fraction=0.0)
            update()
            found[number].append(Pieces(*spent_on(update, times=UPDATES)))
    for learner in learners.values():
        learner.close()
    return {
        number: Pieces(statistics.median(one.own for one in costs), statistics.median(one.whole for one in costs))
        for number, costs in found.items()
    }


def spent_on(call: Callable[[], object], *, times: int) -> tuple[float, float]:
    """Processor seconds of one call, of this thread and of the whole process."""
    own, whole = time.thread_time(), time.process_time()
    for _ in range(times):
        call()
    return (time.thread_time() - own) / times, (time.process_time() - whole) / times


def settings_of(env: str, *, threads: int) -> dict[str, object]:
    """A run without opponents: in one process for 0 threads, else with an actor host and so many threads learning."""
    workload = WORKLOADS[env]
    runtime = "ray" if threads else "inprocess"
    settings = config_of(env, workload, precision="float32", runtime=runtime, league=False)
    if threads:
        learner = settings["learner"]
        assert isinstance(learner, dict)
        settings["learner"] = {**learner, "pipeline": {"threads": threads}}
        settings["runtime"] = {"kind": "ray", "address": "local", "actor_hosts": 1}
    return settings


def speed_by_clock(run: Measured, parts: RunParts) -> float:
    """Speed of a run, as a fraction of that of one core on which one player learns from the same share."""
    return run.env_steps / run.seconds / parts.plies(run.learnt_per_ply)


def add_runs(report: Report, env: str, runs: dict[int, list[Measured]], parts: RunParts, *, load: float) -> None:
    """Append the rows of runs, by threads of the learner; 0 for one process."""
    bound = REQUIRED if load <= IDLE_LOAD else None
    for threads in (1, 2):
        pairs = list(zip(runs[threads], runs[0], strict=True))
        name = f"{env}: two cores over one, {threads} threads of the learner"
        ratios = [speed_by_clock(two, parts) / speed_by_clock(one, parts) for two, one in pairs]
        report.add(
            f"{name}, at equal learnt decisions, by the clock (load {load:.1f})",
            statistics.median(ratios),
            "x",
            at_least=bound if threads == 2 else None,
        )
        per_core = [
            two.per_core / parts.plies(two.learnt_per_ply) / (one.per_core / parts.plies(one.learnt_per_ply))
            for two, one in pairs
        ]
        report.add(f"{name}, per core-second", statistics.median(per_core), "x")
        report.add(f"{name}, cores used", statistics.median(two.core_seconds / two.seconds for two, _ in pairs), "")


def add_parts(report: Report, env: str, parts: RunParts, pieces: dict[int, Pieces], *, decisions: int) -> None:
    """Append the rows of the parts and of the ceilings."""
    acting = decisions * (1.0 / parts.recording + 1.0 / parts.codec)
    report.add(f"{env}: acting, recording and codec of one update's decisions", 1e3 * acting, "ms")
    for number, cost in pieces.items():
        report.add(f"{env}: update in {number} pieces, its own thread", 1e3 * cost.own, "ms")
        report.add(f"{env}: update in {number} pieces, all threads", 1e3 * cost.whole, "ms")
    found = ceilings_of(acting, pieces[1], pieces[2])
    report.add(f"{env}: ceiling of two cores over one, one thread of the learner", found.one_thread, "x")
    report.add(f"{env}: the same, {found.cut:.0%} of the updates in two pieces", found.two_threads, "x")
    for cores, speed in curve_of(acting, pieces).items():
        report.add(f"{env}: ceiling of {cores} cores over one, one learner", speed, "x")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", choices=sorted(WORKLOADS), default="connect_four")
    parser.add_argument("--seconds", type=float, default=20.0, help="wall time of each run's window; 0 for no runs")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each kind, in turns")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    given = parser.parse_args(arguments)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    prepare_process()
    workload, load = WORKLOADS[given.env], os.getloadavg()[0]
    bench = workload.bench(given.env, seconds=SECONDS_OF_PARTS)
    parts = middle_of(
        [measure_run_parts(bench, num_envs=workload.num_envs, dtype=torch.float32) for _ in range(given.rounds)]
    )
    report = Report()
    decisions = workload.learner.batch_rows * workload.learner.unroll_length
    add_parts(report, given.env, parts, measure_pieces(bench), decisions=decisions)
    if given.seconds:
        runs: dict[int, list[Measured]] = {0: [], 1: [], 2: []}
        with tempfile.TemporaryDirectory(prefix="league-cores-") as temporary:
            for number in range(given.rounds):
                for threads, found in runs.items():
                    folder = Path(temporary) / f"{number}-{threads}"
                    settings = settings_of(given.env, threads=threads)
                    found.append(measure_run(settings, players=1, seconds=given.seconds, warm_up_s=3.0, folder=folder))
                    print(json.dumps({"threads": threads, **vars(found[-1])}), flush=True)
        add_runs(report, given.env, runs, parts, load=load)
    report.print(sys.stdout, as_json=given.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
