"""Ape-X with few and many actor hosts: two are measured on Ray, eight simulated from their costs, 360 by arithmetic.

The costs are core-seconds of each process for a chunk of decisions, its share of the learning included: the rate
limiter of the replay keeps samples in proportion to inserts. With a core for each process, those of two are the speeds.
"""

from __future__ import annotations

import contextlib
import dataclasses
import heapq
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.report import Report
from league.config.loading import load_config
from league.config.run_config import RunConfig
from league.core.state.records import Assignment, Lease
from league.envs.registry import spec_of
from league.hosts.on_ray.runtime import RayRuntime
from league.hosts.protocol import HostStarted, InstallPlayer, LearnerProgress, LeaseDone, LeaseLost, PlayLease
from league.processes.processor_time import cpu_seconds
from league.run.host_setup import host_setup

CONFIG = Path(__file__).parents[2] / "configs" / "lineage" / "apex_dqn.yaml"
PLAYER = "main-0"
HOSTS, SIMULATED, ACTORS = 2, 8, 360
SAMPLES_PER_INSERT = 0.78
"""19 batches of 512 for 12,500 transitions, as of Horgan et al. 2018, Ape-X, section 4.1."""
APEX_IN = 12_500.0
BATCH = 512
"""Decisions: 64 rows of 8, so that a batch is as large as theirs."""
WARM_LEASES, LEASES = 6, 24
DEADLINE_S = 600.0
SIMULATED_CHUNKS = 4_000


@dataclass(frozen=True)
class Costs:
    """Core-seconds of each process for one chunk: of the actor host that makes it, the learner and the replay host.

    decisions: of a chunk.
    """

    actor_s: float
    learner_s: float
    replay_s: float
    decisions: float


@dataclass(frozen=True)
class Measured:
    """One learner with `HOSTS` actor hosts. transitions, batches: in so many seconds of the clock."""

    costs: Costs
    transitions: int
    batches: int
    seconds: float


def actor_hosts(folder: Path) -> Report:
    """The rows of this part."""
    del folder
    report, found = Report(), measured(_config())
    costs, name = found.costs, f"one learner, one replay host, {HOSTS} actor hosts"
    report.add(f"{name}: transitions in, by the clock of a shared machine", found.transitions / found.seconds, "1/s")
    report.add(f"{name}: batches of {BATCH} out, by the same clock", found.batches / found.seconds, "1/s")
    for process, seconds in (("actor host", costs.actor_s), ("learner", costs.learner_s), ("replay", costs.replay_s)):
        report.add(f"transitions in a core-second of the {process}", costs.decisions / seconds, "1/core-s")
    share = found.batches * BATCH / found.transitions
    for hosts in (HOSTS, SIMULATED):
        taken = simulated_in(costs, hosts)
        report.add(f"{hosts} actor hosts with a core for each process (simulated): transitions in", taken, "1/s")
        report.add(f"{hosts} actor hosts (simulated): batches of {BATCH} out", taken * share / BATCH, "1/s")
    most = costs.decisions / max(costs.learner_s, costs.replay_s)
    taken = min(ACTORS * costs.decisions / costs.actor_s, most)
    report.add(f"{ACTORS} actor hosts (arithmetic): transitions in, one learner and one replay host", taken, "1/s")
    report.add(f"{ACTORS} actor hosts (arithmetic): batches of {BATCH} out", taken * share / BATCH, "1/s")
    report.add(f"transitions in with {ACTORS} actor hosts over Ape-X's {APEX_IN:g}", taken / APEX_IN, "x", at_least=1.0)
    report.add(
        "actor hosts that one learner and one replay host keep up with", most * costs.actor_s / costs.decisions, ""
    )
    return report


def simulated_in(costs: Costs, hosts: int) -> float:
    """Transitions a second of so many actor hosts, each of which waits until its chunk is answered.

    A chunk is made by its host, passed on by the learner and stored by the replay host, each of which takes one after
    the other; a host has one chunk on its way.
    """
    free, now = [0.0, 0.0], 0.0
    due = [costs.actor_s * (1.0 + number / hosts) for number in range(hosts)]
    heapq.heapify(due)
    for _ in range(SIMULATED_CHUNKS):
        now = heapq.heappop(due)
        for place, seconds in enumerate((costs.learner_s, costs.replay_s)):
            now = free[place] = max(now, free[place]) + seconds
        heapq.heappush(due, now + costs.actor_s)
    return SIMULATED_CHUNKS * costs.decisions / now


def measured(config: RunConfig) -> Measured:
    """Play leases on every actor host of a Ray of our own, after some that do not count."""
    setup = dataclasses.replace(host_setup(config, spec_of(config.env), run="apex"), players={})
    with contextlib.closing(RayRuntime(setup, config.runtime, players=(PLAYER,))) as runtime:
        runtime.start()
        play = _Play(runtime, config)
        play.until(leases=WARM_LEASES)
        before, began, leases, version = _used(runtime), time.monotonic(), play.leases, play.version
        env_steps = play.env_steps
        play.until(leases=leases + LEASES)
        seconds = time.monotonic() - began
        used = {kind: spent - before[kind] for kind, spent in _used(runtime).items()}
        transitions = play.env_steps - env_steps
    chunk = config.actors.num_envs * config.learner.unroll_length
    chunks = transitions / chunk
    actor_s, learner_s, replay_s = (used[kind] / chunks for kind in ("actor_host", "learner_host", "replay_host"))
    return Measured(Costs(actor_s, learner_s, replay_s, decisions=chunk), transitions, play.version - version, seconds)


class _Play:
    """Keeps every actor host at a lease of self-play.

    Attributes:
      leases, env_steps: finished. version: of the learner.
    """

    def __init__(self, runtime: RayRuntime, config: RunConfig) -> None:
        self.leases = self.env_steps = self.version = 0
        self._runtime, self._config = runtime, config
        self._number = 0
        self._runtime.submit(InstallPlayer(PLAYER))

    def until(self, *, leases: int) -> None:
        """Poll until so many leases are finished. Raises TimeoutError."""
        end = time.monotonic() + DEADLINE_S
        while self.leases < leases:
            if time.monotonic() > end:
                raise TimeoutError(f"{self.leases} of {leases} leases were finished in {DEADLINE_S:g} s")
            for event in self._runtime.poll(0.2, budget_fraction=0.0):
                if isinstance(event, LearnerProgress):
                    self.version = event.progress.version
                elif isinstance(event, HostStarted) and event.kind == "actor_host":
                    self._begin(event.host)
                elif isinstance(event, LeaseDone):
                    self.leases, self.env_steps = self.leases + 1, self.env_steps + event.answer.env_steps
                    self._begin(event.host)
                elif isinstance(event, LeaseLost):
                    raise RuntimeError(f"a lease was lost: {event.reason}")

    def _begin(self, host: str) -> None:
        self._number += 1
        table: Sequence[Assignment] = (Assignment((PLAYER, PLAYER), (True, True), 1.0),)
        steps = self._config.league.lease_steps
        self._runtime.submit(PlayLease(Lease(self._number, 0, host, PLAYER, tuple(table), steps), frozen={}))


def _used(runtime: RayRuntime) -> dict[str, float]:
    """Core-seconds of the processes of each kind."""
    used: dict[str, float] = {}
    for worker in runtime.workers():
        used[worker.kind] = used.get(worker.kind, 0.0) + cpu_seconds(worker.pid)
    return used


def _config() -> RunConfig:
    return load_config(
        CONFIG,
        overrides=[
            f"runtime={{kind: ray, address: local, actor_hosts: {HOSTS}, replay_hosts: 1, object_store_mb: 80}}",
            f"learner.row_source.samples_per_insert={SAMPLES_PER_INSERT}",
            "learner.row_source.error_window=null",
        ],
    )
