"""One schedule: the production daemon, core, journal and stores over simulated hosts, with faults drawn from a seed.

A schedule is a few sessions of one run. Each but the last may die between any two steps; then the files are what a
killed process leaves, and the next session resumes the run as `league resume` does. After every turn of the daemon's
loop an outside reader follows the journal and holds the league against it.
"""

from __future__ import annotations

import functools
import random
import shutil
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

import yaml

from benchmarks.durability.simulated.fake_hosts import zero_weights
from benchmarks.durability.simulated.hosts import Chances, SimulatedRuntime, VirtualClock
from benchmarks.durability.simulated.kept_answers import kept_answers, one_of_equals
from benchmarks.durability.simulated.schedule import LEAGUES, OPERATIONS, SHARED, Schedule
from league.agents.weights import Weights
from league.config.loading import parse_config
from league.config.run_config import RunConfig, dump_config
from league.core.state.commands import CreateLeague
from league.core.state.events import EVENTS
from league.envs.registry import spec_of
from league.errors import DiskFull, LeagueError, StorageError
from league.hosts.protocol import PlayLease, Report, ResetPlayer, TakeSnapshot, Task
from league.operate.chaos.journal_model import JournalModel
from league.policies.policy_store import PolicyStore
from league.run.budget import Limits, Meter, Spent
from league.run.budget_account import BudgetAccount
from league.run.commander import Commander
from league.run.config_changes import noted_config, settled_config
from league.run.daemon import Daemon
from league.run.daemon_status import DaemonStatus
from league.run.fleet import Fleet
from league.run.operations.operator import Done, Operator
from league.run.session import rescued
from league.store.checkpoints import CheckpointStore
from league.store.journal_reader import JournalHead, JournalReader
from league.store.journaled_league import JournaledLeague, verified_state
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.store.storage import Storage

MAX_TURNS = 3_000
"""Turns of the daemon's loop after which a session without an end counts as stuck."""


class Died(BaseException):
    """Stands for the end of the process: no handler may catch it."""


class Broken(AssertionError):  # noqa: N818  a verdict, not an accident
    """A rule that always holds was broken; the message says which and where."""


def broken(sentence: str) -> None:
    """Raise `Broken`."""
    raise Broken(sentence)


def require(holds: bool, sentence: str) -> None:
    """Raise `Broken` unless it holds."""
    if not holds:
        broken(sentence)


@dataclass(frozen=True)
class Ran:
    """The end of a schedule.

    Fields:
      deaths: sessions that died. events: in its journal. turns: of the daemon's loop.
      chain: value (hex) after the last event of its journal, the same wherever the schedule is repeated.
    """

    deaths: int
    events: int
    turns: int
    chain: str


def run_schedule(schedule: Schedule, folder: Path) -> Ran:
    """Run a schedule in a new folder.

    Raises:
      Broken: a rule did not hold.
    """
    with kept_answers():
        return _Run(schedule, folder).run()


@functools.cache
def _template(league: str) -> tuple[RunConfig, str, Weights]:
    config = _parsed(yaml.safe_dump({**SHARED, "league": LEAGUES[league]}))
    return config, dump_config(config), zero_weights(config)


@functools.lru_cache(maxsize=1_000)
def _parsed(text: str) -> RunConfig:
    return one_of_equals(parse_config(text, source="the simulation"))


class _VirtualMeter(Meter):
    """Counts no processor time: it would be that of this machine."""

    def start(self) -> None:
        """Nothing to look at."""

    def read(self, *, env_steps: int) -> Spent:
        return Spent(self.now(), 0.0, env_steps)


class _OutsideReader(JournalReader):
    """Follows the journal over a connection of its own."""

    _version = -1

    def has_changed(self) -> bool:
        """True if somebody has written to the file since the last call, and at the first call."""
        version = self._connection.execute("PRAGMA data_version").fetchone()[0]
        before, self._version = self._version, version
        return bool(version != before)


class _Run:
    def __init__(self, schedule: Schedule, folder: Path) -> None:
        self._schedule = schedule
        self._path = folder / "run"
        self._clock = VirtualClock()
        self._rng = random.Random(f"faults {schedule.seed}")
        self._operator_rng = random.Random(f"operator {schedule.seed}")
        self._config, self._text, self._weights = _template(schedule.league)
        self._model = JournalModel(note=broken)
        self._known = JournalHead(0, "")
        self._steps_left: float = 0
        self._disk_in: float = 0
        self._turns = 0
        self._left_over: list[Report] = []
        self._asked: list[Future[Done]] = []
        self._done: list[Done] = []
        self._reader: _OutsideReader | None = None
        self._league: JournaledLeague | None = None

    def run(self) -> Ran:
        for death in self._schedule.deaths:
            self._session(death, disk=self._schedule.disk, last=False)
        self._session(0, disk=0, last=True)
        return Ran(len(self._schedule.deaths), self._model.seq, self._turns, self._known.chain)

    def _step(self, point: str) -> None:
        """A step between which and the next the process may die, or at which the disk may fail."""
        self._steps_left -= 1
        if self._steps_left == 0:
            raise Died(point)
        if point not in ("submit", "poll"):
            self._disk_in -= 1
            if self._disk_in == 0:
                raise OSError(28 if self._rng.random() < 0.5 else 5, "the disk fails")

    def _session(self, death: int, *, disk: int, last: bool) -> None:
        self._steps_left = death or float("inf")
        self._disk_in = disk or float("inf")
        try:
            self._live(last=last)
        except Died:
            self._bury()
        except (DiskFull, StorageError):
            require(disk > 0, "a storage error although the disk is well")
            self._end_session()

    def _bury(self) -> None:
        """Leave the journal as a killed process does, its write-ahead log included, and forget everything else."""
        copies = []
        for path in self._path.glob("journal.*"):
            if path.suffix != ".db-shm":
                copy = path.with_name(f"dead-{path.name}")
                shutil.copyfile(path, copy)
                copies.append((copy, path))
        self._end_session()
        for path in self._path.glob("journal.*"):
            path.unlink()
        for copy, path in copies:
            copy.replace(path)

    def _end_session(self) -> None:
        for open_file in (self._reader, self._league):
            if open_file is not None:
                open_file.close()
        self._reader = self._league = None
        for request in self._asked:
            request.cancel()
        self._asked.clear()

    def _live(self, *, last: bool) -> None:
        storage = Storage(hook=self._step)
        folder = self._opened(storage)
        league = self._league
        assert league is not None
        self._reader = _OutsideReader.open_readonly(folder.journal_path, events=EVENTS)
        self._check_nothing_was_lost()
        config = self._settled(folder, league)
        snapshots = LocalSnapshotStore(folder.snapshots_path, storage=storage)
        checkpoints = CheckpointStore(folder.checkpoints_path, storage=storage)
        snapshots.sweep()
        checkpoints.sweep()
        policies = PolicyStore(config, snapshots=snapshots, checkpoints=checkpoints, warn=self._warn)
        runtime = self._runtime(league)
        commander = Commander(league)
        fleet = Fleet(runtime, config.runtime, league.state, ask=commander.ask, say=lambda sentence: None)
        operator = Operator(folder, league, config, fleet)
        runtime.on_poll = lambda: self._ask(operator)
        turns = self._turns
        begun = Spent(env_steps=league.state.totals.env_steps)

        def observe(seen: DaemonStatus) -> None:
            self._turns += 1
            require(self._turns - turns < MAX_TURNS, f"{MAX_TURNS} turns and the run has not ended: {seen.phase}")
            if self._turns - turns > MAX_TURNS // 2 and league.state.training_paused:
                operator.submit("unpause", {"what": "training"}, by="the simulation")
            self._follow(league)

        daemon = Daemon(
            config,
            league=league,
            runtime=runtime,
            fleet=fleet,
            commander=commander,
            policies=policies,
            account=BudgetAccount(
                config.budget,
                _VirtualMeter(Spent(), monotonic=self._clock.monotonic),
                limits=Limits(env_steps=self._schedule.env_steps),
                begun=begun,
            ),
            observe=observe,
            operator=operator,
        )
        try:
            with rescued(daemon, league):
                daemon.run()
        finally:
            self._left_over = runtime.in_flight()
        league.save_state()
        self._follow(league)
        self._check_the_end(league, snapshots, checkpoints)
        self._end_session()

    def _settled(self, folder: RunFolder, league: JournaledLeague) -> RunConfig:
        """The configuration of the journal; a file that differs is settled as a resume does it."""
        if folder.read_config() != league.state.config_text:
            settled_config(folder, league)
        require(folder.read_config() == league.state.config_text, "config.yaml is not what the journal says")
        return _parsed(league.state.config_text)

    def _opened(self, storage: Storage) -> RunFolder:
        """The run as a start or a resume of it finds it."""
        wall, config = self._clock.wall, self._config
        if not (self._path / "config.yaml").exists():
            shutil.rmtree(self._path, ignore_errors=True)
            folder = RunFolder.create(self._path, config_yaml=self._text, storage=storage)
        else:
            folder = RunFolder.open(self._path, storage=storage)
        if folder.journal_path.exists():
            self._league = JournaledLeague.open(
                folder.journal_path, at_least_seq=self._known.seq, wall_time=wall, storage=storage
            )
        else:
            require(self._known.seq == 0, "the journal is gone")
            self._league = JournaledLeague.create(folder.journal_path, wall_time=wall, storage=storage)
        if self._league.state.config is None:
            spec = spec_of(config.env)
            self._league.execute(CreateLeague(config.seed, spec.num_seats, spec.teams, config.league))
            self._league.execute(noted_config(folder.read_config()))
            self._league.commit()
        return folder

    def _runtime(self, league: JournaledLeague) -> SimulatedRuntime:
        plan = self._schedule
        chances = Chances(
            lost=0.05 * plan.lost,
            doubled=0.2 * plan.doubled,
            late=0.05 * plan.late,
            host_lost=0.01 * plan.hosts,
            jump=0.02 * plan.jumps,
        )
        return SimulatedRuntime(
            self._clock,
            self._rng,
            chances,
            weights=self._weights,
            players=tuple(league.state.players),
            step=self._step,
            watch=self._watch,
            marker_of=self._marker,
            left_over=self._left_over if plan.late else [],
        )

    def _marker(self, player: str) -> int:
        marker = self._model.resets.get(player, 0)
        return -1 if marker is None else marker

    def _ask(self, operator: Operator) -> None:
        """An operator's request now and then."""
        if self._schedule.operations and self._operator_rng.random() < 0.15:
            for _ in range(self._operator_rng.choice((1, 1, 2, 3))):
                name, arguments = self._operator_rng.choice(OPERATIONS)
                if name == "pause" and self._operator_rng.random() < 0.5:
                    name = "unpause"
                self._asked.append(operator.submit(name, dict(arguments), by="the simulation"))
            if self._model.changes and self._operator_rng.random() < 0.3:
                event = self._operator_rng.choice(list(self._model.changes))
                self._asked.append(operator.submit("undo", {"event": event}, by="the simulation"))

    def _watch(self, task: Task, runtime: SimulatedRuntime) -> None:
        """Nothing reaches a host before it is durable, and a learner has the weights that the journal says."""
        self._read()
        if isinstance(task, PlayLease):
            lease = task.lease
            require(
                self._model.leases.get(lease.lease_id) == lease, f"lease {lease.lease_id} is submitted and not durable"
            )
            learner = runtime.learners.get(lease.home or "")
            if learner is not None and learner.marker >= 0 and self._model.resets.get(lease.home or "", 0) is not None:
                require(
                    learner.marker == self._marker(lease.home or ""),
                    f"lease {lease.lease_id}: {lease.home} has the weights of reset {learner.marker}, "
                    f"the journal says {self._marker(lease.home or '')}",
                )
        elif isinstance(task, TakeSnapshot | ResetPlayer):
            require(
                task.directive_id in self._model.directives,
                f"directive {task.directive_id} is submitted and not durable",
            )

    def _read(self) -> None:
        assert self._reader is not None
        if self._reader.has_changed():
            self._model.advance(self._reader.replay(from_seq=self._model.seq + 1))
            self._known = self._reader.head()

    def _follow(self, league: JournaledLeague) -> None:
        """One look of the outside reader, and the answers to operators that came since."""
        assert self._reader is not None
        self._read()
        if league.next_seq == self._model.seq + 1:
            self._model.compare(league.state)
        for request in [request for request in self._asked if request.done()]:
            self._asked.remove(request)
            error = request.exception()
            if error is None:
                done = request.result()
                require(done.last_event <= self._known.seq, f"{done} was answered before it was durable")
            else:
                require(isinstance(error, LeagueError), f"an operation failed with {error!r}")

    def _check_nothing_was_lost(self) -> None:
        """The events that were durable at the last look are there, and are the same."""
        assert self._reader is not None
        if self._known.seq:
            require(self._reader.head().seq >= self._known.seq, f"event {self._known.seq} is lost")
            require(self._reader.head_at(self._known.seq) == self._known, f"event {self._known.seq} is another one")
        self._read()

    def _check_the_end(
        self, league: JournaledLeague, snapshots: LocalSnapshotStore, checkpoints: CheckpointStore
    ) -> None:
        """After an orderly stop nothing is open, a replay from zero gives the stored state, and every file holds."""
        assert self._reader is not None
        state = league.state
        require(not state.running and not state.leases, "leases are open after a stop")
        self._model.compare(verified_state(self._reader))
        for name, info in state.snapshots.items():
            if state.is_present(name):
                snapshots.get(info.digest)
        for player, digest in self._model.restart_states.items():
            checkpoints.get(player, digest)

    def _warn(self, sentence: str) -> None:
        raise Broken(f"a fallback that should not be needed: {sentence}")
