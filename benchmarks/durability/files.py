"""Backups and removals of weights, cut off at every write; and alerts whose sinks hang: what each leaves and costs."""

from __future__ import annotations

import functools
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.durability.simulated.run import Died
from benchmarks.report import Report
from benchmarks.throughput.league_scale import created, spread_games
from league.config.loading import config_of, plain_config
from league.errors import LeagueError
from league.operate.history.backup import back_up
from league.operate.history.snapshot_gc import collect_stopped, plan_gc
from league.run.alerts.condition import ALERT_CONDITIONS, AlertInputs, make_condition
from league.run.alerts.sink import AlertNews
from league.run.alerts.watch import LOOK_EVERY_S, AlertWatch, Courier
from league.run.budget import Limits
from league.run.launch import resume, start
from league.see.reports.verify import verify_run
from league.store.storage import Storage

RUN = """
env: {id: tic_tac_toe}
network: {hidden: [12]}
learner: {unroll_length: 4, batch_rows: 16, precision: float32}
actors: {num_envs: 12}
league: {lease_steps: 16, players: [{role: main_agent, gate: {min_steps: 60, timeout_steps: 60}}]}
runtime: {kind: inprocess, checkpoint_updates: 6}
evaluation: {bots: []}
wandb: {mode: disabled}
control: {door: false}
budget: {env_steps: 1000000}
"""
KEPT = 8
TURNS = 20_000
PLAYERS, LEASES = 12, 2_000


class DieAt:
    """Ends the process, as far as a program can, at the n-th write, counted from 0."""

    def __init__(self, number: int) -> None:
        self._left = number

    def __call__(self, point: str) -> None:
        self._left -= 1
        if self._left < 0:
            raise Died(point)


class Hanging:
    """An alert sink that never comes back before it is closed."""

    def __init__(self) -> None:
        self._end = threading.Event()

    def deliver(self, news: AlertNews) -> None:
        """As in the protocol."""
        self._end.wait()

    def close(self) -> None:
        """As in the protocol."""
        self._end.set()


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the writes at which a kill is tried."""
    stride = max(round(1.0 / scale), 1)
    run, earlier = folder / "run", folder / "backup"
    plain, problems = plain_config(RUN, source="files")
    config = config_of(plain, problems, source="files")
    start(config, {}, source=folder / "files.yaml", run_dir=run, limits=Limits(env_steps=2_500))
    back_up(run, earlier)
    resume(run, limits=Limits(env_steps=500))
    _cut_off_backups(report, run, earlier, folder / "tried", stride=stride)
    _cut_off_removals(report, run, folder / "tried", stride=stride)
    _hanging_sinks(report, folder / "alerts.db", seed=seed)


def _cut_off_backups(report: Report, run: Path, earlier: Path, tried: Path, *, stride: int) -> None:
    def attempt(storage: Storage | None) -> None:
        back_up(run, tried / "backup", storage=storage)

    def problems() -> int:
        return len(verify_run(tried / "backup").problems)

    kills, bad = _cut_off(tried, {"backup": earlier}, attempt, problems, stride=stride)
    report.add("kills at a write of `league backup`", kills, "kills", at_least=1)
    report.add("backups that do not hold after such a kill", bad, "backups", at_most=0)


def _cut_off_removals(report: Report, run: Path, tried: Path, *, stride: int) -> None:
    def attempt(storage: Storage | None) -> None:
        collect_stopped(tried / "run", keep=KEPT, by="benchmark", reason="", storage=storage)

    def problems() -> int:
        left = plan_gc(tried / "run", keep=KEPT)
        return len(verify_run(tried / "run").problems) + (len(left.kept) < KEPT)

    kills, bad = _cut_off(tried, {"run": run}, attempt, problems, stride=stride)
    report.add("kills at a write of `league gc`", kills, "kills", at_least=1)
    report.add("runs that do not hold after such a kill", bad, "runs", at_most=0)


def _cut_off(
    tried: Path,
    before: dict[str, Path],
    attempt: Callable[[Storage | None], None],
    problems: Callable[[], int],
    *,
    stride: int,
) -> tuple[int, int]:
    """Kills at every `stride`-th write of an attempt from the same state; how many, and after how many it is bad."""
    kills = bad = number = 0
    while True:
        shutil.rmtree(tried, ignore_errors=True)
        tried.mkdir()
        for name, folder in before.items():
            shutil.copytree(folder, tried / name)
        try:
            attempt(Storage(hook=DieAt(number)))
            return kills, bad
        except Died:
            kills, number = kills + 1, number + stride
        try:
            broken = problems()
            attempt(None)
            bad += bool(broken or problems())
        except LeagueError:
            bad += 1


def _hanging_sinks(report: Report, path: Path, *, seed: int) -> None:
    league = created(path, PLAYERS)
    spread_games(league, np.random.default_rng(seed), leases=LEASES)
    seen = functools.partial(AlertInputs, phase="training", state=league.state, disk_free=1, disk_floor=1)
    conditions = {kind: make_condition(kind, place=kind) for kind in ALERT_CONDITIONS}
    couriers = [Courier("hanging", Hanging()) for _ in range(3)]
    watch = AlertWatch("files", conditions, couriers, say=lambda sentence: None)
    began = time.perf_counter()
    for turn in range(TURNS):  # every one is a look
        watch.look(seen(now=turn * LOOK_EVERY_S, gone={"actor-1": "killed"} if turn % 20 > 10 else {}))
    look_s = (time.perf_counter() - began) / TURNS
    watch.close()
    league.close()
    share = 100.0 * look_s / LOOK_EVERY_S
    report.add("a look at every alert condition, its sinks hanging", 1e6 * look_s, "us")
    report.add("part of the daemon's time that goes into alerts", share, "%", at_most=1.0)
