"""A tracker whose server takes connections and never answers: step time and exit against a run without a tracker."""

from __future__ import annotations

import socket
import statistics
import time
from pathlib import Path

from benchmarks.durability.struck import run_words
from benchmarks.report import Report
from league.core.state.events import LeaseFinished
from league.operate.chaos.follower import Command, JournalFollower, of_kind, wait_for
from league.processes.processor_time import cpu_seconds

PAIRS = 5
WINDOW_S = 30.0
START_S = 300.0
MAX_EXIT_S = 5.0
RUNTIME: dict[str, object] = {"kind": "inprocess", "checkpoint_updates": 10**6}


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the number of pairs of runs."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(64)  # the kernel takes connections, and nobody ever reads them
        url = f"http://127.0.0.1:{hole.getsockname()[1]}"
        ratios, walls, exits = [], [], []
        for number in range(max(round(PAIRS * scale), 1)):
            plain = _measured(folder / f"plain-{number}", mode="disabled", url=url)
            held = _measured(folder / f"held-{number}", mode="online", url=url)
            ratios.append(held[0] / plain[0])
            walls.append(held[1] / plain[1])
            exits.append(held[2] - plain[2])
    report.add("processor time of a step with a black hole", statistics.median(ratios), "x", at_most=1.01)
    report.add("wall time of a step with a black hole", statistics.median(walls), "x")
    report.add("exit with a black hole, longer by", max(exits), "s", at_most=MAX_EXIT_S)


def _measured(folder: Path, *, mode: str, url: str) -> tuple[float, float, float]:
    """Processor and wall seconds of the daemon per env step, and the seconds of its exit."""
    folder.mkdir()
    environment = {"WANDB_BASE_URL": url, "WANDB_API_KEY": "0" * 40}
    words = run_words(folder, runtime=RUNTIME, wandb={"mode": mode})
    command = Command(words, log=folder / "log", environment=environment)
    follower = JournalFollower(folder / "run" / "journal.db")
    steps = 0

    def counted() -> int:
        nonlocal steps
        steps += sum(event.env_steps for _, event in of_kind(follower.poll(), LeaseFinished))
        return steps

    command.start()
    try:
        if not wait_for(lambda: counted() > 0, deadline_s=START_S):
            raise command.failure("no lease finished")
        before, cpu, begun = counted(), cpu_seconds(command.pid), time.monotonic()
        wait_for(lambda: False, deadline_s=WINDOW_S)
        done, cpu, wall = counted() - before, cpu_seconds(command.pid) - cpu, time.monotonic() - begun
        asked = time.monotonic()
        if not (command.stop() and done):
            raise command.failure("it did not stop in good order")
        return cpu / done, wall / done, time.monotonic() - asked
    finally:
        follower.close()
        command.close()
