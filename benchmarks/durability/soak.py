"""A wall soak: an hour of training with every operation at random, twice a minute; then the books, and the memory."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.durability.struck import add_books, run_words
from benchmarks.report import Report
from league.core.state.events import LeaseFinished, SettingsChanged
from league.core.state.state import LeagueState
from league.operate.chaos.audit import Audit, audit_run, verify
from league.operate.chaos.follower import Command, JournalFollower, Noted, of_kind, wait_for
from league.run.control.client import ControlRefused, operate
from league.run.control.door_file import NoDoor
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder

SOAK_S = 3600.0
EVERY_S = 30.0
SETTLED_S = 600.0
"""Memory is looked at after so long, or after a sixth of a shorter soak."""

START_S = 600.0
SAMPLE_S = 5.0
RUNTIME: dict[str, object] = {"kind": "ray", "object_store_mb": 100, "checkpoint_updates": 20, "actor_hosts": 2}
LEAGUE: dict[str, object] = {
    "lease_steps": 64,
    "players": [
        {"role": role, "gate": {"min_steps": 100_000_000, "timeout_steps": 200_000_000}}
        for role in ("main_agent", "main_exploiter", "league_exploiter")
    ],
}
"""A snapshot for minutes of training, as in real runs: each adds its games to the payoff, which is no leak."""
MAX_PLAYERS = 6

Arguments = dict[str, object]
Draw = Callable[[random.Random, LeagueState, list[int]], Arguments | None]


def _player(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments:
    return {"player": rng.choice(list(state.players))}


def _snapshot(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments:
    return {"snapshot": rng.choice(list(state.snapshots))}


def _host(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments:
    return {"host": f"actor-{rng.randrange(3)}"}


def _what(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments:
    return {"what": rng.choice(["training", "rating", *state.players])}


def _undo(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments | None:
    return {"event": rng.choice(changed)} if changed else None


def _add(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments | None:
    present = [player for player in state.players.values() if not player.retired]
    return {"role": "main_exploiter"} if len(present) < MAX_PLAYERS else None


SETTABLE: tuple[tuple[str, tuple[object, ...]], ...] = (
    ("learner.learning_rate", (1e-4, 3e-4, 1e-3)),
    ("learner.entropy_cost", (0.01, 0.03, 0.1)),
    ("league.ratings.step_fraction", (0.05, 0.1, 0.2)),
    ("league.players.main.gate.timeout_steps", (20_000, 40_000)),
    ("retention.snapshots", (200, 400)),
    ("players.main-0.step_weight", (1.0, 2.0, 4.0)),
)


def _set(rng: random.Random, state: LeagueState, changed: list[int]) -> Arguments:
    key, values = rng.choice(SETTABLE)
    return {"key": key, "value": rng.choice(values)}


OPERATIONS_DRAWN: Mapping[str, Draw] = {
    "set": _set,
    "extend": lambda rng, state, changed: {"limit": "seconds", "amount": rng.choice([60.0, -30.0])},
    "pause": _what,
    "unpause": _what,
    "snapshot": _player,
    "reset": _player,
    "freeze": _player,
    "retire": _player,
    "add": _add,
    "admit": lambda rng, state, changed: {"source": "", "name": f"old-{rng.randrange(10**6)}", "player": "main-0"},
    "tag": lambda rng, state, changed: {**_snapshot(rng, state, changed), "name": f"release-{rng.randrange(5)}"},
    "untag": lambda rng, state, changed: {"name": f"release-{rng.randrange(5)}"},
    "pin": _snapshot,
    "unpin": _snapshot,
    "actor_hosts": lambda rng, state, changed: {"number": rng.choice([1, 2])},
    "park": _host,
    "unpark": _host,
    "drain": _host,
    "gc": lambda rng, state, changed: {"keep": rng.choice([50, 100])},
    "undo": _undo,
}
"""Operation -> its arguments in a league as it stands, None where it would say nothing now."""

FREEING = (("unpause", "training"), ("unpause", "rating"))
"""Done after every tenth operation, so that the run trains."""


def rows(report: Report, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of an hour."""
    soak = Soak(folder, rng=random.Random(seed), seconds=SOAK_S * scale)
    try:
        soak.run()
    finally:
        soak.close()
    found, problems = audit_run(soak.path, soak.finished), verify(soak.path)
    add_rows(report, soak, found, problems)


class Soak:
    """One run that is operated at random. rng: draws. seconds: that it lasts."""

    def __init__(self, folder: Path, *, rng: random.Random, seconds: float) -> None:
        self.path = folder / "run"
        self._folder, self._rng, self.seconds = folder, rng, seconds
        self._follower = JournalFollower(self.path / "journal.db")
        self._command: Command | None = None
        self.finished: list[Noted] = []
        self._changed: list[int] = []
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.unanswered: list[str] = []
        self.memory: list[tuple[float, float]] = []
        self.in_order = False
        self.snapshots = 0

    def run(self) -> None:
        """Start, operate until the time is over, stop."""
        words = run_words(self._folder, runtime=RUNTIME, league=LEAGUE, budget={"seconds": 10 * SOAK_S})
        self._command = Command(words, log=self._folder / "log")
        self._command.start()

        def has_begun() -> bool:
            self._tick()
            return bool(self.finished)

        if not wait_for(has_begun, deadline_s=START_S):
            raise self._command.failure("no lease finished")
        begun = time.monotonic()
        next_operation, next_sample = begun + EVERY_S, begun
        while time.monotonic() < begun + self.seconds:
            self._tick()
            if time.monotonic() >= next_sample:
                next_sample += SAMPLE_S
                self.memory.append((time.monotonic() - begun, own_mib(self._command.pid)))
            if time.monotonic() >= next_operation:
                next_operation += EVERY_S
                self._operate()
            time.sleep(0.05)
            if self._command.ended is not None:
                raise self._command.failure("it left by itself")
        self.in_order = self._command.stop()
        self._tick()
        self.snapshots = len(state_of_run(RunFolder.open(self.path)).snapshots)

    def close(self) -> None:
        """End whatever still runs."""
        self._follower.close()
        if self._command is not None:
            self._command.close()

    def _tick(self) -> None:
        noted = self._follower.poll()
        self.finished += [item for item, _ in of_kind(noted, LeaseFinished)]
        self._changed += [item.seq for item, _ in of_kind(noted, SettingsChanged)]

    def _operate(self) -> None:
        if sum(self.done.values()) % 10 == 9:
            for name, what in FREEING:
                self._ask(name, {"what": what})
        state = state_of_run(RunFolder.open(self.path))
        name = self._rng.choice(list(OPERATIONS_DRAWN))
        arguments = OPERATIONS_DRAWN[name](self._rng, state, self._changed)
        if name == "admit":
            arguments = {**(arguments or {}), "source": str(self.path)}
        if arguments is not None:
            self._ask(name, arguments)

    def _ask(self, name: str, arguments: Arguments) -> None:
        try:
            operate(self.path, name, arguments, reason="soak")
            self.done[name] += 1
        except ControlRefused:
            self.refused[name] += 1
        except NoDoor as error:
            self.unanswered.append(f"{name}: {error}")


def add_rows(report: Report, soak: Soak, found: Audit, problems: list[str]) -> None:
    """The rows of a soak that has ended."""
    report.add("soak, wall", soak.seconds / 60.0, "min")
    report.add("operations carried out", sum(soak.done.values()), "operations", at_least=1)
    report.add("kinds of operations carried out", len(soak.done), f"of {len(OPERATIONS_DRAWN)}")
    report.add("operations refused by a rule", sum(soak.refused.values()), "operations")
    report.add("operations without an answer", len(soak.unanswered), "operations", at_most=0)
    add_books(report, lost=found.lost, doubled=found.doubled, off=found.off, problems=problems)
    report.add("stops that were not in good order", not soak.in_order, "stops", at_most=0)
    settled = [sample for sample in soak.memory if sample[0] >= min(SETTLED_S, soak.seconds / 6.0)]
    report.add("snapshots taken", soak.snapshots, "snapshots")
    report.add("memory of the daemon, slope once settled", slope_per_hour(settled), "MiB/h", at_most=1.0)


def slope_per_hour(samples: list[tuple[float, float]]) -> float | None:
    """Least-squares slope of (seconds, value), per hour; None for fewer than three samples."""
    if len(samples) < 3:
        return None
    mean_t = sum(t for t, _ in samples) / len(samples)
    mean_v = sum(v for _, v in samples) / len(samples)
    spread = sum((t - mean_t) ** 2 for t, _ in samples)
    return 3600.0 * sum((t - mean_t) * (v - mean_v) for t, v in samples) / spread


def own_mib(pid: int) -> float:
    """Resident memory of a process without pages of Ray's object store, which has a bound; 0 where it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    kib = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines) if "Rss" in name}
    return (kib.get("RssAnon", 0) + kib.get("RssFile", 0)) / 1024.0
