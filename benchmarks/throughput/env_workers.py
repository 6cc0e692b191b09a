"""Speed of Python games behind their adapter: against the bare env in one process, and in two child processes.

`python -m benchmarks.throughput.env_workers --json`

The share of the bare env is per second of this process's own CPU time. The gain of two workers is measured twice. By
wall time it means something on an idle machine only, and the load stands beside it. By CPU time it is that of the
parent and of the busier child together, which is what two idle cores would take.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pettingzoo

from benchmarks.report import Report
from league.envs.bots import RandomBot
from league.envs.protocol import BatchedEnv, EnvConfig
from league.envs.registry import make

GAMES = (
    "pettingzoo:classic/connect_four_v3",
    "pettingzoo:classic/tictactoe_v3",
    "pettingzoo:classic/rps_v2",
    "gymnasium:Acrobot-v1",
    "gymnasium:MountainCar-v0",
    "gymnasium:Taxi-v4",
)
NUM_GAMES = 256
ONE_PROCESS = 0.6
TWO_WORKERS = 1.6
IDLE_LOAD = 3.0
"""Load average, with our own two processes in it, up to which wall times count."""


@dataclass(frozen=True)
class Speed:
    """Decisions per second: by the wall, of own CPU time, and of that plus the CPU time of the busiest child."""

    wall: float
    own: float
    with_child: float


class Stopwatch:
    """Adds up the time of the parts of a loop that it is held over."""

    def __init__(self) -> None:
        self.wall = self.own = 0.0

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *error: object) -> None:
        self.wall += time.perf_counter() - self._began[0]
        self.own += time.process_time() - self._began[1]


def bare_speed(game: str, *, seconds: float) -> float:
    """Decisions per second of own processor time of one env, called as its documentation says."""
    prefix, _, name = game.partition(":")
    loop = {"gymnasium": gymnasium_loop, "pettingzoo": pettingzoo_loop}[prefix](name)
    next(loop)  # imports and first calls
    decisions, began, until = 0, time.process_time(), time.perf_counter() + seconds
    for taken in loop:
        decisions += taken
        if time.perf_counter() > until:
            break
    return decisions / (time.process_time() - began)


def gymnasium_loop(name: str) -> Iterator[int]:
    """Plays for ever; yields the decisions of each episode. Actions are drawn beforehand."""
    env = gymnasium.make(name, disable_env_checker=True)
    env.action_space.seed(0)
    actions, at = [env.action_space.sample() for _ in range(4096)], 0
    while True:
        env.reset(seed=at)
        over, steps = False, 0
        while not over:
            _, _, terminated, truncated, _ = env.step(actions[(at + steps) % len(actions)])
            steps += 1
            over = terminated or truncated
        at += steps
        yield steps


def pettingzoo_loop(name: str) -> Iterator[int]:
    """The same for a PettingZoo game; of a masked one the next legal action after a drawn one is taken."""
    key = re.sub(r"_v(\d+)$", r"-v\1", name)
    parallel = key in pettingzoo.parallel_registry
    env: Any = pettingzoo.make("parallel" if parallel else "aec", key)
    rng = np.random.default_rng(0)
    drawn, at = rng.integers(1 << 30, size=4096).tolist(), 0
    while True:
        taken = parallel_episode(env, drawn, at) if parallel else aec_episode(env, drawn, at)
        at += taken
        yield taken


def parallel_episode(env: Any, drawn: Sequence[int], at: int) -> int:
    """One episode of a parallel game; returns its decisions."""
    env.reset(seed=at)
    taken, counts = 0, {agent: int(env.action_space(agent).n) for agent in env.agents}
    while env.agents:
        actions = {agent: drawn[(at + taken + i) % len(drawn)] % counts[agent] for i, agent in enumerate(env.agents)}
        taken += len(actions)
        env.step(actions)
    return taken


def aec_episode(env: Any, drawn: Sequence[int], at: int) -> int:
    """One episode of a game in turns; returns its decisions."""
    env.reset(seed=at)
    taken = 0
    for _ in env.agent_iter():
        observation, _, terminated, truncated, _ = env.last()
        if terminated or truncated:
            env.step(None)
            continue
        legal = observation["action_mask"].nonzero()[0]
        env.step(int(legal[drawn[(at + taken) % len(drawn)] % len(legal)]))
        taken += 1
    return taken


def batched_speed(env: BatchedEnv, *, seconds: float) -> Speed:
    """Decisions per second of the calls of `step` alone, under random play."""
    watch, bot, decisions = Stopwatch(), RandomBot(seed=0), 0
    turn = env.reset(0)
    before = child_seconds()
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        actions = bot.act(env, turn, np.arange(turn.env_index.size))
        with watch:
            turn = env.step(actions)
        decisions += len(actions)
    busiest = max((spent - before.get(pid, 0.0) for pid, spent in child_seconds().items()), default=0.0)
    return Speed(decisions / watch.wall, decisions / watch.own, decisions / (watch.own + busiest))


def child_seconds() -> dict[int, float]:
    """Process id -> CPU time of every child of this process."""
    found = {}
    for task in Path("/proc/self/task").iterdir():
        for pid in (task / "children").read_text().split():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[int(pid)] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found


def measure(game: str, *, seconds: float, rounds: int, report: Report) -> None:
    """Append the rows of one game; the median of the rounds."""
    config = EnvConfig(game, workers=0)
    one, two = make(config, num_envs=NUM_GAMES), make(replace(config, workers=2), num_envs=NUM_GAMES)
    with closing(one), closing(two):
        shares, gains, ideal, overheads = [], [], [], []
        for _ in range(rounds):
            bare = bare_speed(game, seconds=seconds)
            alone, divided = (batched_speed(env, seconds=seconds) for env in (one, two))
            shares.append(alone.own / bare)
            gains.append(divided.wall / alone.wall)
            ideal.append(divided.with_child / alone.own)
            overheads.append(alone.own / divided.own)
    load = os.getloadavg()[0]
    for name, values, bound in (
        ("one process, share of the bare env's rate", shares, ONE_PROCESS),
        ("two workers over one process, CPU time", ideal, TWO_WORKERS),
        ("two workers over one process, wall", gains, TWO_WORKERS if load < IDLE_LOAD else None),
        ("parent's own time with two workers, share of one process's", overheads, None),
    ):
        spread = f"{min(values):.2f} to {max(values):.2f}"
        report.add(f"{game}: {name} ({spread}, load {load:.1f})", statistics.median(values), "x", at_least=bound)


def main(arguments: Sequence[str] | None = None, *, report: Callable[[], Report] = Report) -> int:
    """Measure, print, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    parser.add_argument("--games", nargs="*", default=list(GAMES), help="ids of pettingzoo: or gymnasium:")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=5, help="measurements of each kind, in turns")
    given = parser.parse_args(arguments)
    rows = report()
    for game in given.games:
        measure(game, seconds=given.seconds, rounds=given.rounds, report=rows)
    rows.print(sys.stdout, as_json=given.json)
    return 1 if rows.failed else 0


if __name__ == "__main__":
    sys.exit(main())
