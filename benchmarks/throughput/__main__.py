"""Plies per core-second of `league train`: playing, codec, learning, league and journal together.

Every figure is env steps over the processor seconds of all processes of the run (Ray's own included), between two
finished leases after a warm-up. In the runs with the league, three players (one of each role) meet each other and their
past under PFSP. A snapshot is frozen every quarter of a million learnt decisions, and ratings are played. Every lease
and result goes through the journal with a full fsync. "League off" is one main agent that plays only itself: no
opponents, no snapshots beside the first, no rating games.

A ply costs more where it is learnt from, which a frozen opponent's is not. So the share of plies learnt from is
printed, and the bound with and without it. "At equal learnt decisions" divides each of two runs by the speed of one
player without opponents at its share. That speed is put together from parts in the sizes of the run. Runs that are
compared take turns; figures are medians. GPUs are hidden.

The parts follow the settings that the run before them was given: a magnet, for one, costs a second forward pass.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import sys
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from benchmarks.report import Report
from benchmarks.throughput.opponents import GAMES, OPPONENTS, REQUIRED, opponents_rate
from benchmarks.throughput.rate_window import Measured, measure_run
from benchmarks.throughput.roofline import (
    UPDATE_ROWS,
    Bench,
    Parts,
    RunParts,
    measure_parts,
    measure_run_parts,
    middle_of,
)
from league.agents.learner.build import choose_dtype
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.config.loading import load_config
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.operate.chaos.follower import RunFailed
from league.store.run_folder import RunFolder

BOUND_SECONDS = 0.5
"""CPU time of each figure of the bound."""

NETWORK = NetworkConfig(hidden=(128, 128), activation="relu")
"""Of games whose observations are read flat."""

NEVER = 1 << 60

ROLES = {"main_agent": 2.0, "main_exploiter": 1.0, "league_exploiter": 1.0}
"""Of the league's players -> share of the steps."""

SNAPSHOT_STEPS = 250_000

RAY_REQUIRED = 0.80
"""Least speed per core-second on Ray, as a fraction of that in one process, at equal learnt decisions.

A window holds few leases, of which each learns from another share of its plies.
"""

LEAGUE_REQUIRED = 0.97
"""Least speed per core-second with the league, as a fraction of that without, at equal learnt decisions."""

BOUND_REQUIRED = 0.85
"""Least speed per core-second, as a fraction of the bound that knows what share of the plies is learnt from."""


@dataclass(frozen=True)
class Workload:
    """One game and how it is run.

    The algorithm is V-trace in all of them, so that a decision is learnt from once, as the bound has it.

    Fields:
      bound_envs, bound_rows: numbers of games and batch sizes in unrolls that are tried for the bound.
      lease_steps: short enough that a window holds a dozen leases, so that every player has its share of it.
      kwargs: options of the env.
      gates: precision -> least plies per core-second.
    """

    num_envs: int
    learner: LearnerConfig
    bound_envs: tuple[int, ...]
    bound_rows: tuple[int, ...] = UPDATE_ROWS
    lease_steps: int = 128
    network: NetworkConfig = NETWORK
    kwargs: Mapping[str, object] = field(default_factory=dict)
    gates: Mapping[str, float] = field(default_factory=dict)

    def bench(self, env: str, *, seconds: float) -> Bench:
        """The settings of its parts' timing; `seconds` of CPU time for each figure."""
        config = EnvConfig(env, dict(self.kwargs))
        return Bench(config, self.network, self.learner, self.bound_envs, seconds, self.bound_rows)


WORKLOADS = {
    "connect_four": Workload(
        num_envs=2048,
        learner=LearnerConfig(),
        bound_envs=(256, 1024, 4096),
        gates={"float32": 150_000.0, "bfloat16": 250_000.0},
    ),
    "pettingzoo:classic/connect_four_v3": Workload(
        num_envs=128,
        learner=LearnerConfig(),
        bound_envs=(64, 128, 512),
        gates={"float32": 13_000.0},
    ),
    "gymnasium:CartPole-v1": Workload(num_envs=1024, learner=LearnerConfig(), bound_envs=(256, 1024, 4096)),
    "pettingzoo:butterfly/knights_archers_zombies_v11": Workload(
        num_envs=16,
        learner=LearnerConfig(),
        bound_envs=(16, 64),
        bound_rows=(16, 64, 128),
        lease_steps=32,
        network=NetworkConfig(encoder="entities", hidden=(128,), activation="relu"),
        kwargs={"max_cycles": 200},
    ),
    "pettingzoo:atari/pong_v3": Workload(
        num_envs=8,
        learner=LearnerConfig(unroll_length=16, batch_rows=32),
        bound_envs=(8, 32),
        bound_rows=(8, 32),
        lease_steps=64,
        network=NetworkConfig(encoder="nature_cnn", hidden=(128,), activation="relu"),
        kwargs={"obs_type": "rgb_image", "max_cycles": 1000},
    ),
}


def config_of(env: str, workload: Workload, *, precision: str, runtime: str, league: bool) -> dict[str, object]:
    """The configuration of one run as plain values."""
    learner, network = workload.learner, workload.network
    return {
        "env": {"id": env, "kwargs": dict(workload.kwargs)},
        "name": "throughput",
        "network": {"encoder": network.encoder, "hidden": list(network.hidden), "activation": network.activation},
        "actors": {"num_envs": workload.num_envs},
        "learner": {
            "unroll_length": learner.unroll_length,
            "batch_rows": learner.batch_rows,
            "precision": precision,
            "algorithm": learner.algorithm,
        },
        "runtime": {"kind": runtime},
        "league": {**(_with_league() if league else _without_league()), "lease_steps": workload.lease_steps},
        "evaluation": {"bots": []},
        "wandb": {"mode": "disabled"},
    }


def _with_league() -> dict[str, object]:
    gate = {"min_steps": SNAPSHOT_STEPS // 2, "timeout_steps": SNAPSHOT_STEPS}
    players = [{"role": role, "step_weight": weight, "gate": gate} for role, weight in ROLES.items()]
    return {"players": players}


def _without_league() -> dict[str, object]:
    only_self = {"self_play": 1.0, "pfsp": 0.0, "verification": 0.0}
    gate = {"min_steps": NEVER, "timeout_steps": NEVER}
    return {
        "players": [{"role": "main_agent", "matchmaker": only_self, "gate": gate}],
        "ratings": {"step_fraction": 0.0, "final_leases": 0},
    }


class Session:
    """The measurements of one env, taken in turns and kept by name; parts have the settings of the last run.

    Args:
      env: id. workload: how it is run.
      seconds, warm_up_s: of every run.
      folder: for the runs.
    """

    def __init__(self, env: str, workload: Workload, *, seconds: float, warm_up_s: float, folder: Path) -> None:
        self._env = env
        self._workload = workload
        self._seconds = seconds
        self._warm_up_s = warm_up_s
        self._folder = folder
        self._bench = workload.bench(env, seconds=BOUND_SECONDS)
        self._number = 0
        self.runs: dict[str, list[Measured]] = {}
        self.parts: dict[str, list[Parts]] = {}
        self.run_parts: dict[str, list[RunParts]] = {}
        self.opponents: dict[int, list[float]] = {}

    def run(self, name: str, *, precision: str, runtime: str = "inprocess", league: bool = True) -> None:
        """Measure one run and keep it under `name`."""
        settings = config_of(self._env, self._workload, precision=precision, runtime=runtime, league=league)
        self._number += 1
        folder = self._folder / f"{self._number}"
        found = measure_run(
            settings,
            players=len(ROLES) if league else 1,
            seconds=self._seconds,
            warm_up_s=self._warm_up_s,
            folder=folder,
        )
        self.runs.setdefault(name, []).append(found)
        resolved = load_config(RunFolder.open(folder / "run").config_path)
        self._bench = replace(self._bench, learner=resolved.learner, network=resolved.network)
        print(
            f"  {name}: {found.per_core:,.0f} plies per core-second, "
            f"{found.learnt_per_ply:.2f} decisions of each learnt from, {found.snapshots} snapshots; "
            f"{found.env_steps:,} plies, {found.core_seconds:.1f} core-s, {found.seconds:.1f} s",
            flush=True,
        )

    def bound(self, precision: str) -> None:
        """Measure the parts once."""
        dtype = getattr(torch, precision)
        self.parts.setdefault(precision, []).append(measure_parts(self._bench, dtype=dtype))
        own = measure_run_parts(self._bench, num_envs=self._workload.num_envs, dtype=dtype)
        self.run_parts.setdefault(precision, []).append(own)

    def many_opponents(self) -> None:
        """Measure acting against one and against several frozen networks once; nothing for games of one seat."""
        if make(self._bench.env, num_envs=1).spec.num_seats == 1:
            return
        bench = replace(self._bench, seconds=4 * BOUND_SECONDS)
        for number in (1, OPPONENTS):
            rate = opponents_rate(bench, opponents=number, num_envs=GAMES, seed=0)
            self.opponents.setdefault(number, []).append(rate)

    def half_reason(self) -> str | None:
        """The reason not to measure bfloat16; None if it can be measured."""
        spec = make(self._bench.env, num_envs=1).spec
        if choose_dtype(spec, self._workload.network, "auto") == torch.bfloat16:
            return None
        return "the start-up probe finds bfloat16 no faster than float32 on this machine"


def measure(session: Session, *, repeats: int) -> str | None:
    """Take all measurements in turns; returns why bfloat16 was left out, None where it was not."""
    reason = session.half_reason()
    for _ in range(repeats):
        session.run("float32", precision="float32")
        session.bound("float32")
        session.run("float32 league off", precision="float32", league=False)
        session.run("float32 Ray", precision="float32", runtime="ray")
        session.many_opponents()
        if reason is None:
            session.run("bfloat16", precision="bfloat16")
            session.bound("bfloat16")
            session.run("bfloat16 league off", precision="bfloat16", league=False)
    return reason


def rows_of(session: Session, workload: Workload, *, env: str, reason: str | None) -> Report:
    """The rows of the report."""
    report = Report()
    for precision in ("float32", "bfloat16"):
        _precision_rows(report, session, workload, env=env, precision=precision, reason=reason)
    on, ray = session.runs["float32"], session.runs["float32 Ray"]
    report.add(f"{env} float32 Ray runtime", _middle(run.per_core for run in ray), "plies/core-s")
    report.add(f"{env} float32 Ray runtime, wall", _middle(run.env_steps / run.seconds for run in ray), "plies/s")
    report.add(
        f"{env} float32 Ray's own processes, of all processor time", _middle(run.ray_fraction for run in ray), "ratio"
    )
    report.add(f"{env} float32 in-process, memory", _middle(run.memory_mib for run in on), "MiB")
    report.add(f"{env} float32 Ray runtime, memory", _middle(run.memory_mib for run in ray), "MiB")
    report.add(f"{env} float32 in-process, wall", _middle(run.env_steps / run.seconds for run in on), "plies/s")
    report.add(
        f"{env} float32 Ray runtime against in-process, per core-second",
        _middle(a.per_core / b.per_core for a, b in zip(ray, on, strict=True)),
        "ratio",
    )
    run_parts = middle_of(session.run_parts["float32"])
    report.add(
        f"{env} float32 Ray runtime against in-process, at equal learnt decisions",
        _middle(_of_free(a, run_parts) / _of_free(b, run_parts) for a, b in zip(ray, on, strict=True)),
        "ratio",
        at_least=RAY_REQUIRED,
    )
    if session.opponents:
        pairs = zip(session.opponents[OPPONENTS], session.opponents[1], strict=True)
        report.add(
            f"{env} acting against {OPPONENTS} networks against one, {GAMES} games",
            _middle(a / b for a, b in pairs),
            "ratio",
            at_least=REQUIRED,
        )
    return report


def _precision_rows(
    report: Report, session: Session, workload: Workload, *, env: str, precision: str, reason: str | None
) -> None:
    name, gate = f"{env} {precision}", workload.gates.get(precision)
    if precision not in session.runs:
        report.add(f"{name} ({reason})", None, "plies/core-s", at_least=gate)
        return
    runs, parts = session.runs[precision], middle_of(session.parts[precision])
    report.add(name, _middle(run.per_core for run in runs), "plies/core-s", at_least=gate)
    report.add(f"{name} decisions in a ply", parts.decisions, "ratio")
    report.add(f"{name} env alone", parts.env, "plies/core-s")
    report.add(f"{name} forward and sample alone", parts.forward, "decisions/core-s")
    report.add(f"{name} update alone", parts.update, "decisions/core-s")
    report.add(f"{name} codec there and back alone", parts.codec, "decisions/core-s")
    report.add(f"{name} composition bound, all decisions learnt from", parts.bound, "plies/core-s")
    report.add(f"{name} share of that bound", _middle(run.per_core / parts.bound for run in runs), "ratio")
    report.add(f"{name} decisions learnt from per ply", _middle(run.learnt_per_ply for run in runs), "ratio")
    report.add(
        f"{name} share of the bound 1/(1/env + decisions/forward + learnt/update)",
        _middle(_reached(run, parts) for run in runs),
        "ratio",
        at_least=BOUND_REQUIRED if precision == "float32" else None,
    )
    report.add(f"{name} snapshots frozen in a window", _middle(run.snapshots for run in runs), "snapshots")
    off = session.runs[f"{precision} league off"]
    report.add(f"{name} league off", _middle(run.per_core for run in off), "plies/core-s")
    report.add(
        f"{name} league on against off, per core-second",
        _middle(a.per_core / b.per_core for a, b in zip(runs, off, strict=True)),
        "ratio",
    )
    run_parts = middle_of(session.run_parts[precision])
    report.add(
        f"{name} league on against off, at equal learnt decisions",
        _middle(_of_free(a, run_parts) / _of_free(b, run_parts) for a, b in zip(runs, off, strict=True)),
        "ratio",
        at_least=LEAGUE_REQUIRED if precision == "float32" else None,
    )


def _of_free(run: Measured, parts: RunParts) -> float:
    """Speed of a run, as a fraction of that of one player without opponents that learns from the same share."""
    return run.per_core / parts.plies(run.learnt_per_ply)


def _reached(run: Measured, parts: Parts) -> float:
    return run.per_core / parts.bound_learning(run.learnt_per_ply)


def _middle(values: Iterable[float]) -> float:
    return statistics.median(values)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--env", choices=sorted(WORKLOADS), default="connect_four")
    parser.add_argument("--seconds", type=float, default=15.0, help="wall time of each run's window")
    parser.add_argument("--warm-up", type=float, default=3.0, help="wall time before it")
    parser.add_argument("--repeats", type=int, default=3, help="times that everything is measured, in turns")
    parser.add_argument("--folder", type=Path, help="where the runs are made (default: a temporary folder)")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    workload = WORKLOADS[options.env]
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a GPU's work is not in the processor seconds
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    torch.set_num_threads(1)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    with tempfile.TemporaryDirectory(prefix="league-throughput-", dir=options.folder) as temporary:
        session = Session(
            options.env, workload, seconds=options.seconds, warm_up_s=options.warm_up, folder=Path(temporary)
        )
        try:
            reason = measure(session, repeats=options.repeats)
        except RunFailed as error:
            print(error, file=sys.stderr)
            return 1
    report = rows_of(session, workload, env=options.env, reason=reason)
    report.print(sys.stdout, as_json=options.json)
    return 1 if report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
