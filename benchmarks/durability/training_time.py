"""Training time that is left with an actor host killed every ten seconds: env steps against those of an equal run."""

from __future__ import annotations

import random
import time
from pathlib import Path

from benchmarks.durability.struck import struck_run
from benchmarks.report import Report
from league.operate.chaos.chaos import Chaos
from league.operate.chaos.plan import ACTOR, KILL, Strike
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder

WINDOW_S = 180.0
EVERY_S = 10.0
HOSTS = 4
RUNTIME: dict[str, object] = {"kind": "ray", "object_store_mb": 100, "actor_hosts": HOSTS}


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of a window of three minutes, of which there are two of each kind in turn."""
    rng = random.Random(seed)
    steps = {True: 0, False: 0}
    with struck_run(folder, RUNTIME) as chaos:
        chaos.watch(EVERY_S)
        for number in range(4):
            kills = bool(number % 2)
            before = _steps(chaos)
            until = time.monotonic() + WINDOW_S * scale
            while time.monotonic() < until:
                begun = time.monotonic()
                if kills:
                    chaos.strike(Strike(KILL, ACTOR, 0.0, 0.0, rng.random(), hurry_s=0.01))
                chaos.watch(max(min(begun + EVERY_S, until) - time.monotonic(), 0.0))
            steps[kills] += _steps(chaos) - before
    share = steps[True] / steps[False] if steps[False] else None
    name = f"training time with one of {HOSTS} actor hosts killed every {EVERY_S:g} s"
    report.add(name, share, "of that without", at_least=0.95)


def _steps(chaos: Chaos) -> int:
    return state_of_run(RunFolder.open(chaos.run)).totals.env_steps
