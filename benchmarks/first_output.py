"""Measures of each command when it is first heard of, its longest silence and its whole time; JSON object last.

`python benchmarks/first_output.py [--tree NAME=PATH ...]` runs every command in every tree, one after the other. So
two versions are compared on one machine in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parents[1]
LIMIT_S = 200.0


@dataclass(frozen=True)
class Heard:
    """Seconds until the first output (None for none), of the longest silence, and in all; code: of the exit."""

    command: str
    first_s: float | None
    silence_s: float
    whole_s: float
    code: int


def heard(tree: Path, words: Sequence[str], folder: Path) -> Heard:
    """Run one command of a tree and listen to both of its streams."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "league", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": f"{tree}:{folder}", "OMP_NUM_THREADS": "1", "XDG_STATE_HOME": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    assert process.stdout is not None
    first, silence, last = None, 0.0, begun
    while select.select([process.stdout], [], [], max(begun + LIMIT_S - time.monotonic(), 0.0))[0]:
        piece, now = os.read(process.stdout.fileno(), 1 << 16), time.monotonic()
        silence, last = max(silence, now - last), now
        if not piece:
            break
        first = now - begun if first is None else first
    else:
        process.kill()
    code = process.wait()
    return Heard(words[0], first, silence, time.monotonic() - begun, code)


def measures(tree: Path, game: str, folder: Path) -> list[Heard]:
    """Every command of a first day with a game, in their order. folder: empty, for what they make."""
    listed = [
        ["check-env", game],
        ["init", game, "--for", "2m"],
        ["explain", game, "learner", "--for", "2m"],
        ["train", game, "--for", "20s", "--run-dir", "first"],
        ["status", "first"],
        ["ratings", "first"],
        ["play", "first"],
        ["export", "first", "package", "--games", "20", "--limit", "5"],
        ["watch", "first", "--games", "1", "--delay", "0", "--players", "average,average"],
        ["backup", "first", "copy"],
        ["up", game, "-s", "budget.seconds=600", "--run-dir", "second"],
        ["ps"],
        ["set", "second", "learner.learning_rate=0.0005"],
        ["down", "second"],
    ]
    return [heard(tree, words, folder) for words in listed]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", action="append", default=[], help="NAME=PATH of a checkout; this one by default")
    parser.add_argument("--game", default="connect_four", help="id of a game, or an absolute path:function")
    given = parser.parse_args()
    trees = dict(tree.split("=", 1) for tree in given.tree) or {"here": str(HERE)}
    found = {}
    for name, path in trees.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = [asdict(one) for one in measures(Path(path), given.game, Path(folder))]
        for one in found[name]:
            first = "none" if one["first_s"] is None else f"{one['first_s']:.1f} s"
            whole = f"silent {one['silence_s']:.1f} s, whole {one['whole_s']:.1f} s, exit {one['code']}"
            print(f"{name:<8} {one['command']:<10} first {first:>7}, {whole}", flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
