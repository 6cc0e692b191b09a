"""Games a core-second behind the guard of `league.envs.guard.foreign_code`, over the same games without it.

`python -m benchmarks.throughput.guard --json`

One thread steps games with random legal actions; calls with and without the guard take turns, some milliseconds each,
so that both see the same machine. Processor time of the thread is counted. No policy decides, so that a run, which
also acts and learns, loses less.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np

from benchmarks.report import Report
from league.agents.torch_runtime import prepare_process
from league.envs.guard.foreign_code import foreign_code
from league.envs.protocol import BatchedEnv, EnvConfig
from league.envs.registry import make
from league.envs.sampling import uniform_legal

GAMES = ("gymnasium:CartPole-v1", "pettingzoo:classic/tictactoe_v3", "pettingzoo:classic/connect_four_v3")
STEPS = 5
"""Steps between two changes."""


def ratios(env: BatchedEnv, *, rounds: int) -> list[float]:
    """Processor time without the guard over that with it, of each round."""
    rng = np.random.default_rng(0)
    turn, found = env.reset(0), []

    def step() -> float:
        nonlocal turn
        mask = np.ones((len(turn.seat), env.spec.actions.num_actions), bool)
        actions = uniform_legal(mask if turn.action_mask is None else turn.action_mask, rng)
        began = time.thread_time()
        turn = env.step(actions)
        return time.thread_time() - began

    for number in range(rounds + 1):
        spent = {True: 0.0, False: 0.0}
        for is_bare in (number % 2 == 0, number % 2 == 1):
            with unguarded() if is_bare else contextlib.nullcontext():
                spent[is_bare] = sum(step() for _ in range(STEPS))
        found.append(spent[True] / spent[False])
    return found[1:]


def unguarded() -> contextlib.AbstractContextManager[object]:
    """Context in which the guard does nothing."""
    return patch.multiple(foreign_code, __enter__=lambda _: None, __exit__=lambda *_: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    parser.add_argument("--num-envs", type=int, nargs="*", default=[1, 64], help="games in a batch")
    parser.add_argument("--rounds", type=int, default=200, help="of each game")
    given = parser.parse_args(arguments)
    prepare_process()
    report = Report()
    for game in GAMES:
        for num_envs in given.num_envs:
            with contextlib.closing(make(EnvConfig(game), num_envs=num_envs)) as env:
                found = statistics.median(ratios(env, rounds=given.rounds))
            report.add(f"{game}, {num_envs} games: with the guard over without", found, "x")
    report.print(sys.stdout, as_json=given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
