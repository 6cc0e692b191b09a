"""A whole league on all cores of a machine: all on CPUs, learners on a GPU, and inference or whole games on it too.

    python -m benchmarks.throughput.whole_machine --json
    python -m benchmarks.throughput.whole_machine --games "Connect Four, LSTM-1024" --ways "GPU, central inference"

Every run has one learner host for the three players of a league, and an actor host on each core that is left. Its
window opens once every player has had a lease. Where there is no GPU, learners and inference host run on cores in every
way. With games on the GPU one process holds everything.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.report import Report
from benchmarks.throughput.__main__ import ROLES, WORKLOADS, config_of
from benchmarks.throughput.rate_window import Measured, measure_run
from league.operate.chaos.follower import RunFailed
from league.processes.processor_time import num_cores

OTHER_HOSTS = 2
"""Cores for the learner host, and for the manager with the inference host."""

LSTM = {"hidden": [128], "core": "lstm", "core_size": 1024, "activation": "relu"}
SAMPLE_MS = 500
PLIES = 1e9


@dataclass(frozen=True)
class Game:
    """A game with its network.

    Fields:
      env: a key of `WORKLOADS`. changes: section -> its settings.
      on_device: the same with games on the GPU; empty for a game that has no device form.
    """

    env: str
    changes: Mapping[str, Mapping[str, object]]
    on_device: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


GAMES: Mapping[str, Game] = {
    "Connect Four, MLP 128-128": Game(
        "connect_four",
        {"actors": {"num_envs": 1024}, "learner": {"batch_rows": 1024}},
        {"actors": {"num_envs": 32768}, "learner": {"batch_rows": 16384}},
    ),
    "Connect Four, LSTM-1024": Game(
        "connect_four",
        {"network": LSTM, "actors": {"num_envs": 128}, "learner": {"batch_rows": 256}},
        {"network": LSTM, "actors": {"num_envs": 32768}, "learner": {"batch_rows": 16384}},
    ),
    "knights_archers_zombies, entities + MLP 128": Game(
        "pettingzoo:butterfly/knights_archers_zombies_v11", {"learner": {"batch_rows": 256}}
    ),
}


@dataclass(frozen=True)
class Way:
    """Where a run computes. gpu: its learners use one. inference, num_splits, games: as in `actors`."""

    gpu: bool
    inference: str
    num_splits: int = 1
    games: str = "host"


WAYS: Mapping[str, Way] = {
    "CPUs alone": Way(False, "local"),
    "GPU, local acting": Way(True, "local"),
    "GPU, central inference": Way(True, "central"),
    "GPU, central inference, games in two parts": Way(True, "central", num_splits=2),
    "GPU, games on it": Way(True, "local", games="device"),
}
DEVICE_LEAGUE = {"lease_steps": 128, "snapshot_steps": 50_000_000}
"""Steps of a lease, and of a player between two snapshots, where games are a hundred times as fast."""


class GpuUse:
    """Samples of a GPU's use by nvidia-smi, per cent, while the context lasts; none where there is no nvidia-smi."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> GpuUse:
        if shutil.which("nvidia-smi"):
            self._process = subprocess.Popen(
                ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", f"-lms={SAMPLE_MS}"],
                stdout=subprocess.PIPE,
                text=True,
            )
            threading.Thread(target=self._read, args=(self._process,), daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()

    def last(self, seconds: float) -> float | None:
        """The mean over the last seconds; None if there is no sample."""
        since = time.monotonic() - seconds
        found = [percent for at, percent in self._samples if at >= since]
        return statistics.fmean(found) if found else None

    def _read(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip().isdigit():
                self._samples.append((time.monotonic(), float(line)))


def settings_of(game: Game, way: Way, *, actor_hosts: int) -> dict[str, object]:
    """The configuration of one run as plain values."""
    settings = config_of(game.env, WORKLOADS[game.env], precision="auto", runtime="ray", league=True)
    on_device = way.games == "device"
    for section, changes in (game.on_device if on_device else game.changes).items():
        given = settings.get(section, {})
        assert isinstance(given, Mapping)
        settings[section] = {**given, **changes} if section != "network" else dict(changes)
    actors = settings["actors"]
    assert isinstance(actors, Mapping)
    splits = {"inference": way.inference, "num_splits": way.num_splits, "games": way.games}
    settings["actors"] = {**actors, **splits}
    if on_device:
        settings["runtime"], settings["league"] = {"kind": "inprocess"}, _device_league()
        return settings
    settings["runtime"] = {"kind": "ray", "address": "local", "actor_hosts": actor_hosts, "learner_hosts": 1}
    return settings


def _device_league() -> dict[str, object]:
    steps = DEVICE_LEAGUE["snapshot_steps"]
    gate = {"min_steps": steps // 2, "timeout_steps": steps}
    players = [{"role": role, "step_weight": weight, "gate": gate} for role, weight in ROLES.items()]
    return {"players": players, "lease_steps": DEVICE_LEAGUE["lease_steps"]}


def add_run(report: Report, name: str, run: Measured, use: float | None) -> None:
    """The rows of one run."""
    speed = run.env_steps / run.seconds
    report.add(f"{name}: plies", speed, "1/s")
    report.add(f"{name}: decisions learnt from", run.trained / run.seconds, "1/s")
    report.add(f"{name}: cores used", run.core_seconds / run.seconds, "")
    report.add(f"{name}: plies per core-second", run.per_core, "1/s")
    report.add(f"{name}: GPU in use", None if use is None else use / 100.0, "share")
    report.add(f"{name}: hours of the machine for 10^9 plies", PLIES / speed / 3600.0, "h")
    report.add(f"{name}: memory", run.memory_mib, "MiB")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", choices=list(GAMES), default=list(GAMES))
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--seconds", type=float, default=15.0, help="wall time of each run's window")
    parser.add_argument("--warm-up", type=float, default=3.0, help="wall time before it")
    parser.add_argument("--actor-hosts", type=int, default=max(num_cores() - OTHER_HOSTS, 1))
    parser.add_argument("--json", action="store_true", help="end with the rows as one JSON object")
    options = parser.parse_args(arguments)
    os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # so that `finally` cleans up
    visible, report, failed = os.environ.get("CUDA_VISIBLE_DEVICES"), Report(), False
    for name in options.games:
        for way in options.ways:
            if WAYS[way].games == "device" and not GAMES[name].on_device:
                print(f"{name}, {way}: the game has no device form", flush=True)
                continue
            if WAYS[way].gpu and visible is not None:
                os.environ["CUDA_VISIBLE_DEVICES"] = visible
            elif WAYS[way].gpu:
                os.environ.pop("CUDA_VISIBLE_DEVICES", None)
            else:
                os.environ["CUDA_VISIBLE_DEVICES"] = ""
            settings = settings_of(GAMES[name], WAYS[way], actor_hosts=options.actor_hosts)
            with tempfile.TemporaryDirectory(prefix="league-machine-") as temporary, GpuUse() as use:
                try:
                    run = measure_run(
                        settings,
                        players=len(ROLES),
                        seconds=options.seconds,
                        warm_up_s=options.warm_up,
                        folder=Path(temporary) / "run",
                    )
                except RunFailed as error:
                    print(f"{name}, {way}: {error}", file=sys.stderr)
                    failed = True
                    continue
                share = use.last(run.seconds) if WAYS[way].gpu else None
            add_run(report, f"{name}, {way}", run, share)
            in_use = "" if share is None else f", GPU in use {share:.0f} %"
            print(
                f"{name}, {way}: {run.env_steps / run.seconds:,.0f} plies/s, learnt from "
                f"{run.trained / run.seconds:,.0f} decisions/s, {run.core_seconds / run.seconds:.1f} cores{in_use}",
                flush=True,
            )
    report.print(sys.stdout, as_json=options.json)
    return 1 if failed or report.failed else 0


if __name__ == "__main__":
    sys.exit(main())
