"""Plies per core of a league whose game is a Python env of others, over random play of the bare env on one core.

`python -m benchmarks.throughput.wrapped_games --json`

The league acts, records and learns beside the env's own steps. So its share of the bare rate says what a user pays
for training instead of random play. Each share is of a bare rate measured before and after it. By the clock a share is
of as many bare envs as the machine has cores, which means something on an idle machine only.

CartPole is Gymnasium's single env, made by a function as a user's would be; by its id it is stepped as arrays.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from benchmarks.report import Report
from benchmarks.throughput.__main__ import ROLES, WORKLOADS, config_of
from benchmarks.throughput.env_workers import bare_speed
from benchmarks.throughput.rate_window import measure_run
from league.processes.processor_time import num_cores

REQUIRED = 0.9
BARE_SECONDS = 1.5
OWN_GAME = 'import gymnasium\n\n\ndef make():\n    return gymnasium.make("{name}")\n'
WRAPPED = "pettingzoo:classic/connect_four_v3"
"""The workload of a game that is stepped one env after the other."""

GAMES = (WRAPPED, "gymnasium:CartPole-v1", "gymnasium:Acrobot-v1")


def measure(game: str, *, num_envs: int, runtime: str, seconds: float, folder: Path, report: Report) -> None:
    """Append the rows of one game: the league's rate between two of the bare env. num_envs: 0 for what `auto` finds."""
    env, workload = game, WORKLOADS.get(game, WORKLOADS[WRAPPED])
    if game.startswith("gymnasium:"):
        file = folder / "own_game.py"
        file.write_text(OWN_GAME.format(name=game.partition(":")[2]))
        env, workload = f"{file}:make", WORKLOADS[WRAPPED]
    settings = config_of(env, workload, precision="float32", runtime=runtime, league=True)
    settings["actors"] = {"num_envs": num_envs} if num_envs else {}
    before = bare_speed(game, seconds=BARE_SECONDS)
    found = measure_run(settings, players=len(ROLES), seconds=seconds, warm_up_s=2.0, folder=folder / "run")
    bare = (before + bare_speed(game, seconds=BARE_SECONDS)) / 2.0
    where = f"{game}, {runtime}"
    report.add(f"{where}: bare env", bare, "decisions/core-s")
    report.add(f"{where}: league", found.per_core, "plies/core-s")
    report.add(f"{where}: league over the bare env, per core-second", found.per_core / bare, "x", at_least=REQUIRED)
    by_clock = found.env_steps / found.seconds / (bare * num_cores())
    report.add(f"{where}: over {num_cores()} bare envs, by the clock (load {os.getloadavg()[0]:.1f})", by_clock, "x")
    report.add(f"{where}: decisions learnt from", found.learnt_per_ply, "of a ply")


def main() -> int:
    """Measure, print, and return 1 if a bound does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    parser.add_argument("--games", nargs="*", default=list(GAMES), help="ids of pettingzoo: or gymnasium:")
    parser.add_argument("--runtime", choices=["inprocess", "ray"], default="inprocess")
    parser.add_argument("--num-envs", type=int, default=0, help="games at once; 0 for what `auto` finds")
    parser.add_argument("--seconds", type=float, default=12.0, help="of each run's window")
    given = parser.parse_args()
    rows = Report()
    for game in given.games:
        with tempfile.TemporaryDirectory(prefix="league-wrapped-") as folder:
            measure(
                game,
                num_envs=given.num_envs,
                runtime=given.runtime,
                seconds=given.seconds,
                folder=Path(folder),
                report=rows,
            )
    rows.print(sys.stdout, as_json=given.json)
    return 1 if rows.failed else 0


if __name__ == "__main__":
    sys.exit(main())
