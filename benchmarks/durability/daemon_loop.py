"""Load that the daemon's one loop carries: leases a second and delays with up to thousands of actor hosts that fail.

The production daemon, core, journal (durable on this disk) and stores work over simulated hosts in real time. A host
answers its lease after some seconds; now and then it dies instead and is back a second later. The delay of a lease is
the time from its answer to the next lease of its host, in which the host has nothing to do. In the last rows every
host answers at once: then the loop itself is the limit.
"""

from __future__ import annotations

import cProfile
import heapq
import pstats
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import yaml

from benchmarks.durability.simulated.fake_hosts import FakeHosts, zero_weights
from benchmarks.report import Report as Rows
from league.agents.weights import Weights
from league.config.loading import parse_config
from league.config.run_config import RunConfig, dump_config
from league.core.state.commands import CreateLeague
from league.core.state.records import Lease
from league.envs.registry import spec_of
from league.hosts.protocol import HostLost, HostStarted, LeaseDone, PlayLease, Report, Task
from league.policies.policy_store import PolicyStore
from league.run.budget import Limits, Meter, Spent
from league.run.budget_account import BudgetAccount
from league.run.commander import Commander
from league.run.daemon import Daemon
from league.run.daemon_status import DaemonStatus
from league.run.fleet import Fleet
from league.store.checkpoints import CheckpointStore
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore

HOSTS = (10, 100, 1_000, 3_000)
LEASE_S = 4.0
"""Length of a lease as the automatic settings choose it, see `league.config.auto.rules_actors`."""

SECONDS = 30.0
"""Time of each load."""

DEATHS = 0.01
"""Chance of a host to die under a lease: with leases of 4 s it lives for seven minutes on average."""

BACK_S = 1.0
GAMES = 20
STEPS_PER_LEASE = 4_000
WARM_UP_SHARE = 0.4
REQUIRED_HOSTS = 1_000
MAX_P99_S = 0.4
"""Bound of the delay at so many hosts: a tenth of a lease."""

SETTINGS = {
    "env": {"id": "tic_tac_toe"},
    "name": "load",
    "network": {"hidden": [4]},
    "learner": {"unroll_length": 4, "batch_rows": 16, "precision": "float32"},
    "actors": {"num_envs": 64},
    "league": {"players": [{"role": role} for role in ("main_agent", "main_exploiter", "league_exploiter")]},
    "runtime": {"kind": "ray"},
    "evaluation": {"bots": []},
    "wandb": {"mode": "disabled"},
}
PARTS = {
    "core (decide, apply)": ("/league/core/",),
    "journal and stores": ("/league/store/", "sqlite3", "fsync", "/safetensors/"),
    "daemon and policies": ("/league/run/", "/league/policies/", "/league/run/operations/"),
}
"""Part of the loop -> words in the paths or names of its functions."""


class ManyHosts(FakeHosts):
    """A runtime of simulated actor hosts, and a learner host that answers at once.

    Args:
      number: of actor hosts. lease_s: how long a lease takes on average. rng: chooses lengths and deaths.
      weights: of every player. players: all of them.
    Attributes:
      delays: seconds from each answer to the next lease of the host; losses: hosts that died.
    """

    def __init__(
        self, number: int, lease_s: float, rng: random.Random, weights: Weights, players: tuple[str, ...]
    ) -> None:
        super().__init__(weights, updates=1, steps_per_update=STEPS_PER_LEASE, games=GAMES)
        self.delays: list[float] = []
        self.losses = 0
        self._number, self._lease_s, self._rng, self._players = number, lease_s, rng, players
        self._due: list[tuple[float, int, list[Report]]] = []
        self._idle_since: dict[str, float] = {}
        self._numbers = 0

    def start(self) -> None:
        """Every host is up."""
        self._at(0.0, HostStarted("learner-0", "learner_host", self._players))
        for place in range(self._number):
            self._at(0.0, HostStarted(f"actor-{place}", "actor_host"))

    def submit(self, task: Task) -> None:
        """Answer later."""
        if not isinstance(task, PlayLease):
            self._at(0.0, *self.answer(task))
            return
        host = task.lease.host
        since = self._idle_since.pop(host, None)
        if since is not None:
            self.delays.append(time.monotonic() - since)
        length = self._rng.uniform(0.5, 1.5) * self._lease_s
        if self._rng.random() < DEATHS:
            self.losses += 1
            self._at(length, HostLost(host, "actor_host", "it died"))
            self._at(length + BACK_S, HostStarted(host, "actor_host"))
        else:
            self._at(length, *self.answer(task))

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        """Everything that is due; waits for the first."""
        if self._due:
            time.sleep(min(max(self._due[0][0] - time.monotonic(), 0.0), timeout_s))
        now, reports = time.monotonic(), list[Report]()
        while self._due and self._due[0][0] <= now:
            due, _, came = heapq.heappop(self._due)
            self._idle_since.update({report.host: due for report in came if isinstance(report, LeaseDone)})
            reports.extend(came)
        return reports

    def steps_of(self, lease: Lease) -> int:
        """The same of every lease."""
        return STEPS_PER_LEASE

    def _at(self, seconds: float, *reports: Report) -> None:
        self._numbers += 1
        heapq.heappush(self._due, (time.monotonic() + seconds, self._numbers, list(reports)))


@dataclass(frozen=True)
class Carried:
    """Result of one load.

    Fields:
      leases: finished a second. delays: seconds. cpu_share: of one core that the daemon's process used.
      shares: part of the loop -> share of its time, where it was profiled.
    """

    leases: float
    delays: Sequence[float]
    cpu_share: float
    shares: dict[str, float] = field(default_factory=dict)

    def delay(self, quantile: float) -> float:
        """A quantile of the delays."""
        return float(np.quantile(self.delays, quantile))


@dataclass(frozen=True)
class Mark:
    """The counts of a run at one moment."""

    at: float
    cpu: float
    leases: int
    delays: int


def carry(folder: Path, *, hosts: int, lease_s: float, seconds: float, seed: int, profiled: bool = False) -> Carried:
    """Run the daemon for so long over so many hosts; the first part warms up and does not count."""
    config = parse_config(yaml.safe_dump(SETTINGS), source="the load")
    config = replace(config, runtime=replace(config.runtime, actor_hosts=hosts))
    run = RunFolder.create(folder, config_yaml=dump_config(config))
    league = JournaledLeague.create(run.journal_path, wall_time=time.time)
    spec = spec_of(config.env)
    league.execute(CreateLeague(config.seed, spec.num_seats, spec.teams, config.league))
    league.commit()
    runtime = ManyHosts(hosts, lease_s, random.Random(seed), zero_weights(config), tuple(league.state.players))
    begin = time.monotonic() + WARM_UP_SHARE * seconds
    profile, marks = cProfile.Profile(), list[Mark]()

    def mark() -> None:
        leases = league.state.totals.leases_finished
        marks.append(Mark(time.monotonic(), time.process_time(), leases, len(runtime.delays)))

    def observe(seen: DaemonStatus) -> None:
        if not marks and time.monotonic() >= begin:
            mark()
            if profiled:
                profile.enable()
        if len(marks) == 1 and time.monotonic() >= marks[0].at + (1.0 - WARM_UP_SHARE) * seconds:
            mark()
            profile.disable()
            daemon.stop_requested = True

    commander = Commander(league)
    daemon = Daemon(
        config,
        league=league,
        runtime=runtime,
        fleet=Fleet(runtime, config.runtime, league.state, ask=commander.ask, say=lambda sentence: None),
        commander=commander,
        policies=_policies(config, run),
        account=BudgetAccount(config.budget, Meter(Spent(), monotonic=time.monotonic), limits=Limits(), begun=Spent()),
        observe=observe,
    )
    runtime.start()
    daemon.run()
    league.close()
    first, last = marks
    took = last.at - first.at
    return Carried(
        leases=(last.leases - first.leases) / took,
        delays=runtime.delays[first.delays : last.delays],
        cpu_share=(last.cpu - first.cpu) / took,
        shares=shares_of(profile) if profiled else {},
    )


def _policies(config: RunConfig, run: RunFolder) -> PolicyStore:
    return PolicyStore(
        config,
        snapshots=LocalSnapshotStore(run.snapshots_path),
        checkpoints=CheckpointStore(run.checkpoints_path),
        warn=lambda sentence: None,
    )


def shares_of(profile: cProfile.Profile) -> dict[str, float]:
    """Part of the loop -> share of the time, each function's own; what is in no part is "everything else"."""
    stats = pstats.Stats(profile)
    shares = dict.fromkeys([*PARTS, "everything else"], 0.0)
    total = 0.0
    for (path, _, name), (_, _, own_s, _, _) in stats.stats.items():  # type: ignore[attr-defined]
        text = f"{path} {name}"
        part = next((part for part, words in PARTS.items() if any(word in text for word in words)), "everything else")
        if "time.sleep" not in name:
            shares[part] += own_s
            total += own_s
    return {part: seconds / max(total, 1e-9) for part, seconds in shares.items()}


def rows(report: Rows, *, scale: float, seed: int, folder: Path) -> None:
    """Add the rows. scale: part of the full time of each load."""
    seconds = SECONDS * scale
    for hosts in HOSTS:
        found = carry(folder / f"{hosts}", hosts=hosts, lease_s=LEASE_S, seconds=seconds, seed=seed)
        name = f"{hosts:,} hosts, leases of {LEASE_S:g} s"
        offered = hosts / (LEASE_S + DEATHS * BACK_S)
        is_asked = hosts == REQUIRED_HOSTS
        carried = found.leases / offered
        report.add(f"{name}: leases carried", found.leases, "leases/s")
        report.add(f"{name}: carried of those offered", carried, "", at_least=0.9 if is_asked else None)
        report.add(f"{name}: delay of the next lease, p50", 1e3 * found.delay(0.5), "ms")
        bound = 1e3 * MAX_P99_S if is_asked else None
        report.add(f"{name}: delay of the next lease, p99", 1e3 * found.delay(0.99), "ms", at_most=bound)
        report.add(f"{name}: of one core", 100.0 * found.cpu_share, "%")
    most = carry(folder / "most", hosts=REQUIRED_HOSTS, lease_s=0.0, seconds=seconds, seed=seed)
    report.add("answers at once: leases carried, the limit of the loop here", most.leases, "leases/s")
    per_core = most.leases / most.cpu_share
    report.add("answers at once: leases carried in a second of one core", per_core, "leases/core-s", at_least=250.0)
    report.add(f"hosts with leases of {LEASE_S:g} s that a core carries", per_core * LEASE_S, "hosts")
    profiled = carry(folder / "parts", hosts=REQUIRED_HOSTS, lease_s=0.0, seconds=seconds, seed=seed, profiled=True)
    for part, share in profiled.shares.items():
        report.add(f"at the limit, of the loop's time: {part}", 100.0 * share, "%")
