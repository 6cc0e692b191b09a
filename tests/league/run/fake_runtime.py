"""A runtime without hosts: answers every task by rule in the next poll, and can lose hosts and answers when told to."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import yaml

from benchmarks.durability.simulated.fake_hosts import FakeHosts
from league.agents.nets.network import build_network
from league.agents.weights import Weights
from league.config.loading import parse_config
from league.config.run_config import RunConfig, dump_config
from league.core.state.commands import CreateLeague
from league.envs.registry import make
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    HostState,
    LeaseDone,
    LeaseLost,
    PlayLease,
    Report,
    Task,
)
from league.policies.policy_store import PolicyStore
from league.run.budget import Limits, Meter, Spent
from league.run.budget_account import BudgetAccount
from league.run.commander import Commander
from league.run.daemon import Daemon
from league.run.daemon_status import DaemonStatus
from league.run.fleet import Fleet
from league.run.operations.operator import Operator
from league.store.checkpoints import CheckpointStore
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder, WorkerStatus
from league.store.snapshots import LocalSnapshotStore
from tests.agents.learner.learner_cases import weights_in
from tests.league.tiny_runs import tiny

STEPS_PER_LEASE = 100
HOSTS = HostState(generations={"main-0": 1})


class FakeRuntime(FakeHosts):
    """One actor host and one learner host.

    Attributes:
      tasks: everything submitted, in order. told: the budget fraction of each poll.
      drop: tasks for which this is true get no answer.
      watch: called with every task as it is submitted. on_poll: called with the number of each poll, from 1.
      delay: polls between a task and its answer.
      now: seconds; every poll takes one.
      added: actor hosts that were added. removed: names of those that were ended.
      held_by: players of each learner host, for a test that ends one.
      kept: names of snapshots whose weights it keeps; None for none, not even those that leases bring.
      varied: whether the weights of every version are others, so that no two snapshots share a file.
    """

    def __init__(self, weights: Weights, *, players: tuple[str, ...]) -> None:
        super().__init__(weights, steps=STEPS_PER_LEASE)
        self._players = players
        self.tasks: list[Task] = []
        self.told: list[float] = []
        self.drop: Callable[[Task], bool] = lambda task: False
        self.watch: Callable[[Task], object] = lambda task: None
        self.on_poll: Callable[[int], object] = lambda number: None
        self.delay = 0
        self.now = 0.0
        self.varied = False
        self.kept: set[str] | None = None
        self._polls = 0
        self.abandoned = False
        self.added = 0
        self.removed: list[str] = []
        self.held_by: dict[str, tuple[str, ...]] = {}
        self._later: list[tuple[int, list[Report]]] = []
        self._reports: list[Report] = [
            HostStarted("learner-0", "learner_host", players),
            HostStarted("actor-0", "actor_host"),
        ]

    def keeps(self, snapshot: str) -> bool:
        return self.kept is not None and snapshot in self.kept

    def submit(self, task: Task) -> None:
        self.watch(task)
        if isinstance(task, PlayLease) and self.kept is not None:
            self.kept.update(task.frozen)
        self.tasks.append(task)
        if not self.drop(task):
            self._later.append((self._polls + self.delay, self.answer(task)))

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        self.told.append(budget_fraction)
        self.now += 1.0
        self._polls += 1
        self.on_poll(self._polls)
        reports, self._reports = self._reports, []
        reports.extend(report for due, answer in self._later if due < self._polls for report in answer)
        self._later = [(due, answer) for due, answer in self._later if due >= self._polls]
        return reports

    def add_actor_host(self) -> str:
        self.added += 1
        name = f"actor-{self.added}"
        self.report(HostStarted(name, "actor_host"))
        return name

    def remove_actor_host(self, name: str) -> None:
        self.removed.append(name)

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        self.removed.append(name)
        return self.held_by.pop(name)

    def workers(self) -> tuple[WorkerStatus, ...]:
        return (WorkerStatus("actor_host", os.getpid()),)

    def report(self, *reports: Report) -> None:
        """Something else happens before the next poll."""
        self._reports.extend(reports)

    def starts(self, *hosts: str) -> tuple[Report, ...]:
        """Actor hosts are there."""
        return tuple(HostStarted(host, "actor_host") for host in hosts)

    def lose(self, host: str, kind: str) -> None:
        """A host dies with all its answers, and another takes its place."""
        of_actor = LeaseDone | LeaseLost
        self._later = [
            (due, [report for report in answer if isinstance(report, of_actor) != (kind == "actor_host")])
            for due, answer in self._later
        ]
        players = self._players if kind == "learner_host" else ()
        self.report(HostLost(host, kind, "it was killed", players), HostStarted(host, kind, players))

    def of(self, kind: type) -> list[Task]:
        """The submitted tasks of a kind."""
        return [task for task in self.tasks if isinstance(task, kind)]

    def frozen(self, player: str) -> Weights:
        weights = super().frozen(player)
        return weights if self.varied else replace(weights, vector=self.weights.vector)


class ExactFakeRuntime(FakeRuntime):
    """One whose hosts could be saved."""

    @property
    def has_work(self) -> bool:
        return bool(self._later or self._reports)

    def save_hosts(self) -> HostState:
        return HOSTS

    def load_hosts(self, state: HostState, frozen: Mapping[str, Weights]) -> None:
        assert state == HOSTS

    def abandon(self) -> None:
        self.abandoned = True


class Bench:
    """A daemon over a fake runtime, a real journal and real stores, in a run folder that outlives it."""

    def __init__(self, path: Path, *, exact: bool = False, **changes: object) -> None:
        self.config: RunConfig = parse_config(yaml.safe_dump(tiny(**changes)), source="test")
        exists = (path / "config.yaml").exists()
        self.folder = RunFolder.open(path) if exists else RunFolder.create(path, config_yaml=dump_config(self.config))
        spec = make(self.config.env, num_envs=1).spec
        if exists:
            self.league = JournaledLeague.open(self.folder.journal_path, at_least_seq=0, wall_time=lambda: 0.0)
        else:
            self.league = JournaledLeague.create(self.folder.journal_path, wall_time=lambda: 0.0)
            self.league.execute(CreateLeague(self.config.seed, spec.num_seats, spec.teams, self.config.league))
            self.league.commit()
        network = build_network(spec, self.config.network, seed=0)
        kind = ExactFakeRuntime if exact else FakeRuntime
        self.runtime = kind(weights_in(network), players=tuple(self.league.state.players))
        self.said: list[str] = []
        self.warned: list[str] = []
        self.policies = PolicyStore(
            self.config,
            snapshots=LocalSnapshotStore(self.folder.snapshots_path),
            checkpoints=CheckpointStore(self.folder.checkpoints_path),
            warn=self.warned.append,
        )
        self.seen: list[DaemonStatus] = []
        self._open()

    def _open(self) -> None:
        """What a start of the daemon makes anew."""
        self.commander = Commander(self.league)
        runtime, state = self.config.runtime, self.league.state
        self.fleet = Fleet(self.runtime, runtime, state, ask=self.commander.ask, say=self.said.append)
        self.operator = Operator(self.folder, self.league, self.config, self.fleet)
        self._is_used = False

    def daemon(self, limits: Limits) -> Daemon:
        if self._is_used:
            self._open()
        self._is_used = True
        return Daemon(
            self.config,
            league=self.league,
            runtime=self.runtime,
            fleet=self.fleet,
            commander=self.commander,
            policies=self.policies,
            account=BudgetAccount(
                self.config.budget,
                Meter(Spent(), monotonic=lambda: self.runtime.now),
                limits=limits,
                begun=Spent(env_steps=self.league.state.totals.env_steps),
            ),
            observe=self.seen.append,
            operator=self.operator,
            say=self.said.append,
        )

    def run(self, *, env_steps: int) -> str:
        return self.daemon(Limits(env_steps=env_steps)).run()
