"""Where each core-second of a league's run goes: one profile over all of its processes.

`league train` runs with three roles, as in `python -m benchmarks.throughput`, and every Python process of it is looked
at a hundred times a second (`stack_samples/sitecustomize.py`). A second belongs to the innermost frame that is of one
of the parts below. Programs that are not Python, such as those of Ray, are counted by their clocks.

    python -m benchmarks.throughput.where --env connect_four --runtime ray --json
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import Report
from benchmarks.throughput.__main__ import ROLES, WORKLOADS, config_of
from benchmarks.throughput.rate_window import Measured, measure_run
from league.operate.chaos.follower import RunFailed

SAMPLES = Path(__file__).parent / "stack_samples"
PARTS: Sequence[tuple[str, str]] = (
    ("/site-packages/ray/", "Ray"),
    ("/envs/", "env"),
    ("/agents/weights.py", "copies of weights"),
    ("/agents/unroll/", "records and codec"),
    ("/agents/learner/data/", "records and codec"),
    ("/agents/replay/", "records and codec"),
    ("/agents/acting/", "act"),
    ("/agents/learner/", "learn"),
    ("/league/hosts/on_ray/", "hosts"),
    ("/league/hosts/", "hosts"),
    ("/league/store/", "journal and snapshots"),
    ("/league/policies/", "journal and snapshots"),
    ("/league/judge/", "judge"),
    ("/league/core/", "league"),
    ("/league/run/", "league"),
    ("/league/see/", "page and trackers"),
    ("/importlib/", "imports"),
)
"""Piece of a file's path -> the part of a run that its functions are; the first that fits, from the innermost frame."""
OTHER = "other"
SHOWN = 24


@dataclass
class Profile:
    """Seconds of parts, and of functions within them.

    Fields:
      parts: part -> seconds. functions: "part: file:function" -> seconds, of the innermost frame of our own.
    """

    parts: dict[str, float] = field(default_factory=dict)
    functions: dict[str, float] = field(default_factory=dict)

    def add(self, stack: str, seconds: float) -> None:
        """Count a stack, lines "file:function" from the innermost outwards."""
        part, frame = part_of(stack)
        for totals, name in ((self.parts, part), (self.functions, f"{part}: {frame}")):
            totals[name] = totals.get(name, 0.0) + seconds

    @property
    def seconds(self) -> float:
        """All of them."""
        return sum(self.parts.values())


def part_of(stack: str) -> tuple[str, str]:
    """The part of a run that a stack belongs to, and the frame that says so."""
    for frame in stack.splitlines():
        for piece, part in PARTS:
            if piece in frame:
                path, _, function = frame.rpartition(":")
                return part, f"{'/'.join(Path(path).parts[-2:])}:{function}"
    return OTHER, stack.partition("\n")[0].rpartition("/")[2]


class Watch:
    """Reads the samples of all processes when a window opens and when it closes. folder: they lie there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._readings: list[Mapping[tuple[str, str], float]] = []

    def look(self) -> None:
        """Note the totals now."""
        found: dict[tuple[str, str], float] = {}
        for path in self._folder.glob("*.json"):
            for stack, seconds in json.loads(path.read_text())["totals"].items():
                found[path.name, stack] = seconds
        self._readings.append(found)

    def profile(self) -> Profile:
        """Of the time between the first look and the last."""
        begin, end = self._readings[0], self._readings[-1]
        profile = Profile()
        for key, seconds in end.items():
            profile.add(key[1], seconds - begin.get(key, 0.0))
        return profile


def measure(env: str, *, runtime: str, seconds: float, warm_up_s: float, folder: Path) -> tuple[Measured, Profile]:
    """Run a league and look at its processes. Raises RunFailed: it ended by itself or made no headway."""
    samples = folder / "samples"
    samples.mkdir()
    os.environ["LEAGUE_STACK_SAMPLES"] = str(samples)
    os.environ["PYTHONPATH"] = os.pathsep.join([str(SAMPLES), *filter(None, [os.environ.get("PYTHONPATH")])])
    watch = Watch(samples)
    settings = config_of(env, WORKLOADS[env], precision="float32", runtime=runtime, league=True)
    found = measure_run(
        settings, players=len(ROLES), seconds=seconds, warm_up_s=warm_up_s, folder=folder / "run", look=watch.look
    )
    return found, watch.profile()


def rows_of(measured: Measured, profile: Profile, *, env: str) -> Report:
    """The rows: what each part takes of all processor time, and what nobody looked at."""
    report = Report()
    report.add(f"{env} plies per core-second, looked at", measured.per_core, "plies/core-s")
    for part, seconds in _largest(profile.parts):
        report.add(f"{env} {part}, of all processor time", seconds / measured.core_seconds, "ratio")
    unseen = measured.core_seconds - profile.seconds
    report.add(f"{env} not looked at (programs that are not Python)", unseen / measured.core_seconds, "ratio")
    report.add(f"{env} cores busy", measured.core_seconds / measured.seconds, "cores")
    return report


def _largest(totals: Mapping[str, float]) -> list[tuple[str, float]]:
    return sorted(totals.items(), key=lambda pair: -pair[1])


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.throughput.where",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--env", choices=sorted(WORKLOADS), default="connect_four")
    parser.add_argument("--runtime", choices=["inprocess", "ray"], default="inprocess")
    parser.add_argument("--seconds", type=float, default=15.0, help="wall time of the window")
    parser.add_argument("--warm-up", type=float, default=5.0, help="wall time before it")
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # a GPU's work is not in the processor seconds
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    with tempfile.TemporaryDirectory(prefix="league-where-") as temporary:
        try:
            measured, profile = measure(
                options.env,
                runtime=options.runtime,
                seconds=options.seconds,
                warm_up_s=options.warm_up,
                folder=Path(temporary),
            )
        except RunFailed as error:
            print(error, file=sys.stderr)
            return 1
    for function, seconds in _largest(profile.functions)[:SHOWN]:
        print(f"  {seconds / measured.core_seconds:6.1%}  {function}")
    report = rows_of(measured, profile, env=options.env)
    report.print(sys.stdout, as_json=options.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
