"""Long form of `test_equal_seeds`: `python -m tests.integration.equal_seeds --runs 30`, some minutes.

Every other run is a random configuration, the rest are systems of configs/lineage. Each is played once beside processes
that keep every core busy and with random sleeps, and once without; exit code 1 if any two histories differ.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from league.agents.learner.pipeline_config import PipelineConfig
from tests.integration.random_runs import random_configuration, run_record, slowed
from tests.integration.test_lineage import CONFIGS, small


def configuration(seed: int, *, env_steps: int) -> tuple[str, dict[str, Any]]:
    """Name and plain values of a run that must repeat, whose budget has env steps alone."""
    if seed % 2 == 0:
        return "random", random_configuration(seed, env_steps=env_steps)
    path = systems()[seed // 2 % len(systems())]
    budget = {"env_steps": env_steps}
    return path.stem, {**small(path), "seed": seed, "budget": budget, "adapt": random.Random(seed).random() < 0.5}


def systems() -> list[Path]:
    """Systems whose replicas wait for each other: free ones take what has come by then."""
    return [path for path in CONFIGS if not PipelineConfig(**small(path)["learner"].get("pipeline", {})).is_free]  # type: ignore[attr-defined]


@contextlib.contextmanager
def busy_machine(processes: int) -> Iterator[None]:
    """Processes that do nothing but to take time of every core."""
    spawned = [multiprocessing.get_context("spawn").Process(target=_spin, daemon=True) for _ in range(processes)]
    for process in spawned:
        process.start()
    try:
        yield
    finally:
        for process in spawned:
            process.terminate()
            process.join()


def _spin() -> None:
    parent = os.getppid()
    while os.getppid() == parent:
        sum(range(100_000))


def main() -> int:
    """Play and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30, help="pairs of runs")
    parser.add_argument("--first", type=int, default=100, help="seed of the first")
    parser.add_argument("--env-steps", type=int, default=600, help="of each run")
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 1, help="processes that keep cores busy")
    given = parser.parse_args()
    differ = []
    for seed in range(given.first, given.first + given.runs):
        name, plain = configuration(seed, env_steps=given.env_steps)
        with tempfile.TemporaryDirectory() as folder:
            began = time.monotonic()
            with busy_machine(given.busy), slowed(seed):
                late = run_record(Path(folder), plain, run="late")
            same = late == run_record(Path(folder), plain, run="in-time")
        differ += [] if same else [seed]
        print(f"{seed} {name}: {'same' if same else 'DIFFER'}, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(differ)} of {given.runs} pairs differ{f': seeds {differ}' if differ else ''}")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
