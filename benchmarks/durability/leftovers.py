"""Stops of every kind at random moments: ten seconds later nothing may be left, and the next start is clean."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import yaml

from benchmarks.durability.kills import SETTINGS
from benchmarks.report import Report
from league.chaos.follower import STOP_S, Command, JournalFollower, wait_for
from league.chaos.leftovers import left_of, remains_of
from league.store.lock import start_ticks

STOPS = 100
KINDS: dict[str, tuple[signal.Signals, ...]] = {
    "SIGINT": (signal.SIGINT,),
    "SIGINT twice": (signal.SIGINT, signal.SIGINT),
    "SIGTERM": (signal.SIGTERM,),
    "SIGKILL": (signal.SIGKILL,),
}
CLEAN_S = 10.0
LONGEST_LIFE_S = 30.0


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of a hundred stops of each kind."""
    rng = random.Random(seed)
    config = folder / "stops.yaml"
    config.write_text(yaml.safe_dump(SETTINGS))
    number = max(round(STOPS * scale), 1)
    for kind, signals in KINDS.items():
        left: list[str] = []
        for _ in range(number):
            left += stop_once(config, folder, signals, life_s=rng.uniform(0.0, LONGEST_LIFE_S))
        for line in left:
            print(f"  FOUND after {kind}: {line}", flush=True)
        report.add(f"left {CLEAN_S:g} s after {kind}, {number} stops", len(left), "things", at_most=0)
    follower = JournalFollower(folder / "run" / "journal.db")
    report.add("events in the journal of the last start", len(follower.poll()), "events", at_least=1)
    follower.close()


def stop_once(config: Path, folder: Path, signals: tuple[signal.Signals, ...], *, life_s: float) -> list[str]:
    """Start or continue a run, stop it after so long, and list what is left ten seconds after its end."""
    run = folder / "run"
    words = ("resume", str(run)) if (run / "config.yaml").is_file() else ("train", str(config), "--run-dir", str(run))
    command = Command((*words, "--no-eval"), log=folder / "log")
    command.start()
    try:
        wait_for(lambda: command.ended is not None, deadline_s=life_s)
        below = {pid: start for pid, start in command.census().items() if pid != command.pid}
        remains = remains_of(command.pid, below, now=time.monotonic())
        for sent in signals:
            if command.ended is None:
                command.send(sent)
            time.sleep(0.5)
        wait_for(lambda: not start_ticks(command.pid) or command.ended is not None, deadline_s=STOP_S)
        remains = replace(remains, killed_at=time.monotonic())
        wait_for(lambda: not left_of(remains), deadline_s=CLEAN_S)
        return left_of(remains)
    finally:
        command.close()
