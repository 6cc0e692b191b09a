"""Memory that the daemon keeps for each lease and each snapshot: what a league of months grows by.

A whole session runs, door, observer and journal included, over simulated hosts that answer at once. Memory is what
Python and numpy have allocated and still hold. A growing league takes a snapshot for every eight leases that train. It
rates as much for each of them as the soak does, where 233 leases come between two.
"""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import tracemalloc
from pathlib import Path
from unittest import mock

import yaml

from benchmarks.durability.daemon_loop import SETTINGS, STEPS_PER_LEASE, ManyHosts
from benchmarks.durability.simulated.fake_hosts import zero_weights
from benchmarks.report import Report as Rows
from league.agents.weights import Weights
from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.core.state.state import LeagueState
from league.hosts.protocol import Report
from league.hosts.setup import HostSetup
from league.run import launch, session
from league.run.budget import Limits

HOSTS = 2
SETTLED, LEASES = 1_000, 2_000
"""Leases of a league that takes no snapshot: memory is compared after the first and after the last of them."""

SNAPSHOTS = (80, 160)
"""The same of snapshots; weights of 64 are held, so that those of later ones take the room of earlier ones."""

LEASES_EACH, RATED_FRACTION = 8, 0.6
"""Leases that train for each snapshot, and the fraction of rating leases beside them: twelve for each snapshot."""

HOUR_LEASES, HOUR_SNAPSHOTS = 10_000, 43
"""Counts of the soak of an hour."""

NEVER = 10**12
MAX_SECONDS = 1_800.0


class MarkedHosts(ManyHosts):
    """Simulated hosts that note the memory as the league passes marks.

    Args:
      state: of the league, read at every poll. marks: leases or, where it grows, snapshots; ascending.
    Attributes:
      seen: bytes in use at each mark that was passed.
    """

    def __init__(
        self, rng: random.Random, weights: Weights, *, state: LeagueState, marks: tuple[int, ...], grows: bool
    ) -> None:
        super().__init__(HOSTS, 0.0, rng, weights, tuple(state.players))
        self.seen: list[int] = []
        self._state, self._marks, self._grows = state, marks, grows

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        """As of all hosts, after a look at the marks."""
        reached = len(self._state.snapshots) if self._grows else self._state.totals.leases_finished
        while len(self.seen) < len(self._marks) and reached >= self._marks[len(self.seen)]:
            gc.collect()
            self.seen.append(tracemalloc.get_traced_memory()[0])
            if len(self.seen) == len(self._marks):
                signal.raise_signal(signal.SIGINT)  # ends the session as a user does
        self.delays.clear()
        return super().poll(timeout_s, budget_fraction=budget_fraction)


def held_bytes(folder: Path, marks: tuple[int, int], *, grows: bool, seed: int) -> float:
    """Bytes that a lease or, in a league that grows, a snapshot adds between two marks.

    Raises:
      TimeoutError: the league has not come so far in time.
    """
    timeout = LEASES_EACH * STEPS_PER_LEASE if grows else NEVER
    gate = {"min_steps": timeout, "timeout_steps": timeout}
    players = [{"role": role, "gate": gate} for role in ("main_agent", "main_exploiter", "league_exploiter")]
    ratings = {"step_fraction": RATED_FRACTION} if grows else {}
    settings = {
        **SETTINGS,
        "league": {"players": players, "ratings": ratings},
        "adapt": False,
        "budget": {"seconds": MAX_SECONDS},
        "runtime": {"kind": "ray", "actor_hosts": HOSTS, "checkpoint_updates": 1_000},
    }
    config = parse_config(yaml.safe_dump(settings), source="the session")
    made: list[MarkedHosts] = []

    def make(config: RunConfig, setup: HostSetup, state: LeagueState) -> MarkedHosts:
        weights = zero_weights(config)
        made.append(MarkedHosts(random.Random(seed), weights, state=state, marks=marks, grows=grows))
        return made[0]

    tracemalloc.start()
    try:
        with (
            mock.patch.object(session, "make_runtime", make),
            Path(os.devnull).open("w") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            source, run = folder / "session.yaml", folder / "run"
            launch.start(config, {}, source=source, run_dir=run, limits=Limits(seconds=MAX_SECONDS))
    finally:
        tracemalloc.stop()
    if len(made[0].seen) < len(marks):
        raise TimeoutError(f"the league did not reach {marks} within {MAX_SECONDS:g} s")
    first, last = made[0].seen
    return (last - first) / (marks[1] - marks[0])


def rows(report: Rows, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the full numbers."""
    leases = int(SETTLED * scale), int((SETTLED + LEASES) * scale)
    for name in ("leases", "snapshots"):
        (folder / name).mkdir()
    lease = held_bytes(folder / "leases", leases, grows=False, seed=seed)
    report.add(f"bytes a lease adds, after {leases[0]:,} of a fixed population", lease, "B", at_most=100.0)
    first, last = (int(number * scale) for number in SNAPSHOTS)
    snapshot = held_bytes(folder / "snapshots", (first, last), grows=True, seed=seed) / 1024
    report.add(f"memory a snapshot adds, from {first} of three players to {last}", snapshot, "KiB", at_most=16.0)
    hour = (HOUR_LEASES * lease / 1024 + HOUR_SNAPSHOTS * snapshot) / 1024
    report.add(f"an hour of {HOUR_LEASES:,} leases and {HOUR_SNAPSHOTS} snapshots adds", hour, "MiB", at_most=1.0)
