"""Stops of every kind at random moments: ten seconds later nothing may be left, and the next start is clean."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.durability.struck import run_words
from benchmarks.report import Report
from league.operate.chaos.follower import STOP_S, Command, JournalFollower, wait_for
from league.operate.chaos.leftovers import left_of, remains_of
from league.store.lock import start_ticks

STOPS = 100
CLEAN_S = 10.0
LONGEST_LIFE_S = 15.0
"""On a machine that is not busy a run trains after half of that."""


def sigint(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows of SIGINT. scale: part of a hundred stops."""
    _add_rows(report, (signal.SIGINT,), scale=scale, seed=seed, folder=folder)


def two_sigints(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows of SIGINT and, half a second later, another. scale: part of a hundred stops."""
    _add_rows(report, (signal.SIGINT, signal.SIGINT), scale=scale, seed=seed, folder=folder)


def sigterm(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows of SIGTERM. scale: part of a hundred stops."""
    _add_rows(report, (signal.SIGTERM,), scale=scale, seed=seed, folder=folder)


def sigkill(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows of SIGKILL. scale: part of a hundred stops."""
    _add_rows(report, (signal.SIGKILL,), scale=scale, seed=seed, folder=folder)


def _add_rows(report: Report, signals: tuple[signal.Signals, ...], *, scale: float, seed: int, folder: Path) -> None:
    rng = random.Random(seed)
    first = run_words(folder)
    kind = " and ".join(sent.name for sent in signals)
    number = max(round(STOPS * scale), 1)
    left: list[str] = []
    for done in range(number):
        life_s = rng.uniform(0.0, LONGEST_LIFE_S)
        found = stop_once(first, folder, signals, life_s=life_s)
        left += found
        print(f"  {done + 1} of {number} stops by {kind}; {len(left)} things left", flush=True)
        for line in found:
            print(f"  FOUND after {kind} at {life_s:.1f} s: {line}", flush=True)
    report.add(f"left {CLEAN_S:g} s after {kind}, {number} stops", len(left), "things", at_most=0)
    follower = JournalFollower(folder / "run" / "journal.db")
    report.add("events in the journal of the last start", len(follower.poll()), "events", at_least=1)
    follower.close()


def stop_once(first: tuple[str, ...], folder: Path, signals: tuple[signal.Signals, ...], *, life_s: float) -> list[str]:
    """Start or continue a run, stop it after so long, and list what is left ten seconds after its end."""
    run = folder / "run"
    words = ("resume", str(run), "--no-eval") if (run / "config.yaml").is_file() else first
    command = Command(words, log=folder / "log")
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
