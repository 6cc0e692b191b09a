"""Rates at which "ratings rise, yardsticks do not" is found where it holds, and raised where it does not.

A run of 60 probed snapshots is looked at after each of them, as the alert does. Four yardsticks of fixed strength are
met over 200 games each. Each snapshot does better or worse against each than its strength says (40 Elo), and its
rating errs (25 Elo). An alarm at any of the looks counts.

Beside it the probe against engines that are installed, with a new network: what it reads, costs and leaves behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Report, Row
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import Weights, layout_of
from league.core.metagame.probe_series import Point, Series
from league.core.metagame.ratings import RatingRow
from league.core.metagame.stagnation import MIN_GAIN, MIN_SNAPSHOTS, WINDOW, find_stagnation
from league.core.state.records import ProbeTask
from league.core.state.scoring import BY_WINS
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.judge.contenders.contender import UnknownContender
from league.judge.contenders.finding import find_contenders
from league.judge.probes.probe import Subject
from league.judge.probes.yardsticks import Yardsticks, YardsticksOptions
from league.policies.loaded_policy import LoadedPolicy
from league.processes.processor_time import children_cpu_seconds
from league.processes.reaper import descendants

SNAPSHOTS, GAMES, RUNS, SEED = 60, 200, 200, 16
YARDSTICKS = (-200.0, 0.0, 200.0, 400.0)
PER_YARDSTICK, RATING_ERROR = 40.0, 25.0
TURN = 30
"""Snapshot after which a league of the third kind stops getting stronger."""

ENGINES = (
    ("uci:stockfish?nodes=20", EnvConfig("openspiel:chess")),
    ("gtp:gnugo?level=1", EnvConfig("openspiel:go(board_size=9)")),
)
ENGINE_GAMES, LIMIT_S = 32, 12.0
MISSING = "uci:an-engine-that-is-not-here"

Array = NDArray[np.float64]
Course = Callable[[Array], tuple[Array, Array]]
"""Strength and rating in Elo, of the snapshots 0, 1, 2, ..."""


def detection(folder: Path) -> list[Row]:
    """False alarms and detections by simulation; rates are of runs."""
    del folder
    report = Report()
    healthy: dict[str, Course] = {
        "strength rises with the ratings, 15 Elo a snapshot": lambda t: (15.0 * t - 300.0, 15.0 * t),
        "strength rises half as fast": lambda t: (7.5 * t - 200.0, 15.0 * t),
        "strength and ratings stand still": lambda t: (0.0 * t, 0.0 * t),
        "strength rises ever more slowly": lambda t: (300.0 * np.log1p(t) - 600.0, 300.0 * np.log1p(t)),
    }
    for name, course in healthy.items():
        report.add(f"false alarms, {name}", _rate(course)[0], "", at_most=0.01)
    boundary = _rate(lambda t: (MIN_GAIN * 20.0 * t - 100.0, 20.0 * t))
    report.add("false alarms at the boundary of the null", boundary[0], "", at_most=0.1)
    fooled: dict[str, tuple[Course, int]] = {
        "ratings rise by 20 Elo a snapshot, strength not": (lambda t: (0.0 * t, 20.0 * t), 0),
        "ratings rise by 10 Elo a snapshot, strength not": (lambda t: (0.0 * t, 10.0 * t), 0),
        "strength stops rising after half of the run": (lambda t: (20.0 * np.minimum(t, TURN) - 300.0, 20.0 * t), TURN),
    }
    for name, (course, since) in fooled.items():
        rate, delay = _rate(course)
        report.add(f"found, {name}", rate, "", at_least=0.95)
        report.add(f"snapshots until it is found, {name}", delay - since, "snapshots", at_most=1.5 * WINDOW)
    return report.rows


def _rate(course: Course) -> tuple[float, float]:
    """Fraction of runs with an alarm, and the median snapshot of the first one."""
    strength, ratings = course(np.arange(SNAPSHOTS, dtype=np.float64))
    alarms = [_first_alarm(strength, ratings, np.random.default_rng([SEED, run])) for run in range(RUNS)]
    found = [alarm for alarm in alarms if alarm is not None]
    return len(found) / RUNS, float(np.median(found)) if found else float(SNAPSHOTS)


def _first_alarm(strength: Array, ratings: Array, rng: np.random.Generator) -> int | None:
    """Snapshots until the first alarm; None for none."""
    elos = ratings + rng.normal(0.0, RATING_ERROR, SNAPSHOTS)
    names = [f"main-0-s{number}" for number in range(SNAPSHOTS)]
    rows = {
        name: RatingRow(name, elo, elo - 2.0 * RATING_ERROR, elo + 2.0 * RATING_ERROR, 100)
        for name, elo in zip(names, elos.tolist(), strict=True)
    }
    points: dict[float, list[Point]] = {}
    for yardstick in YARDSTICKS:
        edge = strength - yardstick + rng.normal(0.0, PER_YARDSTICK, SNAPSHOTS)
        scores = rng.binomial(GAMES, 1.0 / (1.0 + 10.0 ** (-edge / 400.0))) / GAMES
        points[yardstick] = [
            Point(number + 1, name, number, number, score, score, score, GAMES, "", 1.0)
            for number, (name, score) in enumerate(zip(names, scores.tolist(), strict=True))
        ]
    for seen in range(MIN_SNAPSHOTS, SNAPSHOTS + 1):
        series = {
            str(yardstick): Series("yardsticks", str(yardstick), "score", tuple(known[:seen]))
            for yardstick, known in points.items()
        }
        if find_stagnation(series, rows) is not None:
            return seen
    return None


def engines(folder: Path) -> list[Row]:
    """Probes of a network with random weights against engines, a missing one beside them."""
    del folder
    report = Report()
    for written, env in ENGINES:
        name = f"probe against {written}, {env.id}"
        try:
            find_contenders([written])
        except UnknownContender:
            report.add(f"{name}: games", None, "", at_least=2)
            continue
        remarks: list[str] = []
        probe = Yardsticks(YardsticksOptions(against=(written, MISSING), games=ENGINE_GAMES, core_seconds=LIMIT_S))
        before = _processor_seconds()
        (reading,) = probe.measure(_new_network(env, remarks.append))
        used = _processor_seconds() - before
        report.add(f"{name}: games", reading.games, f"of {ENGINE_GAMES}", at_least=2)
        report.add(f"{name}: score of the network", reading.value, "", at_most=0.25)
        report.add(f"{name}: processor time over its limit, the engine's included", used / LIMIT_S, "", at_most=1.5)
        report.add(f"{name}: missing engines that it names", len(remarks), "", at_least=1)
        report.add(f"{name}: processes left", len(descendants(os.getpid())), "", at_most=0)
    return report.rows


def _new_network(env: EnvConfig, remark: Callable[[str], None]) -> Subject:
    """A snapshot with random weights, as a probe is given one."""
    spec = spec_of(env)

    def load(name: str) -> LoadedPolicy:
        network = build_network(spec, NetworkConfig(), seed=SEED)
        values = np.concatenate([parameter.detach().numpy().ravel() for parameter in network.parameters()])
        return LoadedPolicy(name, network, Weights(values.astype(np.float32), layout_of(network), 0), spec)

    return Subject(
        run=Path(),
        env=env,
        spec=spec,
        task=ProbeTask(1, "yardsticks", "main-0-s0"),
        load=load,
        bots=(),
        scoring=BY_WINS,
        limit_s=LIMIT_S,
        ends_at=time.monotonic() + 600.0,
        seed=SEED,
        greedy=True,
        place="probes.kinds.0",
        remark=remark,
    )


def _processor_seconds() -> float:
    return time.process_time() + children_cpu_seconds(os.getpid())


ROWS: dict[str, Callable[[Path], list[Row]]] = {"probes": detection, "probe_engines": engines}
