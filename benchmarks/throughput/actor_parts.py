"""Processor seconds of an actor per million plies, part by part: it observes, decides, moves, arrives and encodes.

`python -m benchmarks.throughput.actor_parts --env connect_four --games 64 256 2048 --json`

One process plays without a learner: a network against itself, and in games of two seats as often against four frozen
ones. What is recorded is encoded in batches. The parts are those of `agents/acting/arena.py`; a move's own time is
without the env's step. The least of the rounds counts.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from typing import Any

from benchmarks.report import Report
from benchmarks.throughput.__main__ import NETWORK
from league.agents.acting.arena import PARTS, Arena
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.learner.config import LearnerConfig
from league.agents.nets.network import build_network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import make

FROZEN = ("b", "c", "d", "e")
HEADER = ChunkHeader(run="", player="a", version_min=0, version_max=0)
STEPS, ROUNDS = 150, 3


class TimedArena(Arena):
    """An arena that counts the processor time of each part of its steps."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def _continue(self) -> None:
        name, begin = PARTS[self._step.part].__name__.removeprefix("_"), time.thread_time()
        super()._continue()
        self.seconds[name] += time.thread_time() - begin


def assignments_of(spec: EnvSpec) -> list[Assignment]:
    """A network against itself, and in games of two seats as often against frozen ones."""
    alone = Assignment(("a",) * spec.num_seats, (True,) * spec.num_seats, 0.5)
    if spec.num_seats != 2:
        return [alone]
    pairs = [[(("a", name), (True, False)), ((name, "a"), (False, True))] for name in FROZEN]
    return [alone, *(Assignment(*each, 0.5 / len(pairs) / 2.0) for pair in pairs for each in pair)]


def parts_of(env_id: str, *, games: int, steps: int = STEPS, rounds: int = ROUNDS) -> dict[str, float]:
    """Part -> processor seconds per million plies, and "all"."""
    env, learner = make(EnvConfig(env_id, workers=0), num_envs=games), LearnerConfig()
    spec, seconds, found = env.spec, defaultdict[str, float](float), dict[str, float]()
    network = NETWORK
    if any(array.dtype == "float32" for array in spec.observations.values()):
        network = replace(NETWORK, input_scaling="symlog", value_output="popart")  # as `auto` has it
    networks = {name: NetworkPolicy(build_network(spec, network, seed=seed)) for seed, name in enumerate("abcde")}
    arena = TimedArena(env, UnrollSpec(spec, learner.unroll_length), seed=1, staggered=True)
    arena.seconds, codec = seconds, Lz4Codec()
    env.step = _timed(env.step, seconds, "env")  # type: ignore[method-assign]
    encode = _timed(lambda rows: codec.encode(concatenate(rows), HEADER), seconds, "encode")
    with closing(arena):
        for number in range(rounds + 1):  # the first one warms up
            seconds.clear()
            begin, waiting = time.process_time(), list[Unrolls]()
            for rows in arena.run(assignments_of(spec), networks, steps=steps):
                assert isinstance(rows, Unrolls)
                waiting.append(rows)
                if sum(each.num_rows for each in waiting) >= learner.batch_rows:
                    encode(waiting)
                    waiting = []
            total = time.process_time() - begin
            if number and (not found or total < found["all"] * steps * games / 1e6):
                own = {**seconds, "move": seconds["move"] - seconds["env"], "all": total}
                found = {name: spent / (steps * games) * 1e6 for name, spent in own.items()}
    return found


def _timed(call: Callable[..., Any], seconds: defaultdict[str, float], name: str) -> Callable[..., Any]:
    def run(*arguments: Any) -> Any:
        begin = time.thread_time()
        result = call(*arguments)
        seconds[name] += time.thread_time() - begin
        return result

    return run


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="connect_four")
    parser.add_argument("--games", type=int, nargs="*", default=[64, 256, 2048], help="at once")
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    given = parser.parse_args()
    prepare_process()
    report = Report()
    for games in given.games:
        for name, seconds in parts_of(given.env, games=games).items():
            report.add(f"{given.env}, {games} games: {name}", seconds, "core-s per million plies")
    report.print(sys.stdout, as_json=given.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
