"""One session of a run: the wiring of its daemon, in one place, and its end.

A session lasts from a start of the run to its stop; `league.run.launch` begins the first one and those that resume.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import FrameType

from league.agents.nets.config import NetworkConfig
from league.config.plugin_names import OutsideName, outside_names
from league.config.run_config import RunConfig, config_plain
from league.core.state.state import LeagueState
from league.envs.protocol import EnvSpec
from league.errors import PREEMPTED, CorruptSnapshot, JournalError, LeagueError, MissingSnapshot, StorageError
from league.hosts.actors.actor_state_file import decode_actor_state, encode_actor_state
from league.hosts.host_log import logged_to
from league.hosts.on_ray.fork_server import early_fork
from league.hosts.protocol import DeterministicRuntime, Runtime
from league.hosts.setup import HostSetup
from league.judge.probes.prober import open_prober
from league.policies.imported import imported_networks
from league.policies.own_code import note_code
from league.policies.policy_store import PolicyStore, network_plain
from league.policies.teacher import teacher_weights
from league.policies.trust import mark
from league.processes.stop_signals import stop_signals
from league.run.budget import BUDGET, SIGNAL, Limits, Meter, Spent, train_on_command
from league.run.budget_account import BudgetAccount
from league.run.commander import Commander
from league.run.control.page_process import page_process
from league.run.daemon import Daemon
from league.run.fleet import Fleet
from league.run.host_setup import host_setup, make_runtime
from league.run.monitor.console import RunConsole
from league.run.monitor.heartbeat import Heartbeat
from league.run.monitor.metric_sinks import open_sinks
from league.run.monitor.observer import Observer
from league.run.monitor.sink import MetricSink
from league.run.monitor.watches import open_watches
from league.run.operations.disk_floor import DiskFloor
from league.run.operations.operator import Operator
from league.run.resume_files import begun_at, files_to_note, read_clock, read_noted
from league.stages import begin_stage
from league.store.checkpoints import CheckpointStore
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import HOSTS_FILE, RunFolder
from league.store.snapshots import LocalSnapshotStore


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready for a session.

    Fields:
      config, spec: settings and game. folder: of the run. league: its history, open for writing.
      notes: sentences for the user, said first.
      held: the lock of the folder and the open history; released at the end of the session.
    """

    config: RunConfig
    spec: EnvSpec
    folder: RunFolder
    league: JournaledLeague
    notes: Sequence[str]
    held: contextlib.ExitStack


@dataclass(frozen=True)
class Ended:
    """The end of a session. reason: why; spent: by the run in all; seconds: of training in this session."""

    folder: RunFolder
    reason: str
    spent: Spent
    seconds: float


@dataclass(frozen=True)
class _Wired:
    """The parts of a session that its loop needs. seconds: that the run had trained before."""

    daemon: Daemon
    runtime: Runtime
    operator: Operator
    heartbeat: Heartbeat
    console: RunConsole
    seconds: float


def run_session(run: PreparedRun, *, limits: Limits) -> Ended:
    """Train until something ends it."""
    config, folder, league = run.config, run.folder, run.league
    with run.held, contextlib.ExitStack() as stack:
        wired = _wire(run, limits, stack)
        daemon, heartbeat, runtime = wired.daemon, wired.heartbeat, wired.runtime
        with (
            heartbeat.failure_noted(),
            _drained_by_signals(daemon, wired.console),
            _doors(folder, wired.operator, config, wired.console),
        ):
            begin_stage("starting the hosts" if config.runtime.kind == "inprocess" else "starting Ray and the hosts")
            with _left_by_signals(heartbeat, wired.console):
                runtime.start()
            early_fork.close()  # of no use to hosts of this process, or of a cluster
            with rescued(daemon, league):
                reason = daemon.run()
        _save_stop(daemon, heartbeat, runtime, folder, league, reason=reason)
        return Ended(folder, reason, daemon.spent, daemon.spent.seconds - wired.seconds)


def _wire(run: PreparedRun, limits: Limits, stack: contextlib.ExitStack) -> _Wired:
    """Make the hosts and the stores, then everything that the daemon works with. stack: closes it all."""
    config, folder, league = run.config, run.folder, run.league
    stack.enter_context(logged_to(folder.logs_path, "daemon"))
    snapshots = LocalSnapshotStore(folder.snapshots_path, storage=folder.storage)
    fixed_opponents = imported_networks(league.state, snapshots)
    setup = _whole_setup(config, run.spec, folder, snapshots, fixed_opponents)
    runtime = stack.enter_context(contextlib.closing(make_runtime(config, setup, league.state)))
    console = stack.enter_context(RunConsole(sys.stdout, clock=time.monotonic))
    names = [*_names_of_run(config, fixed_opponents)]
    for note in (*run.notes, *mark(folder, names), *note_code(folder, names)):
        console.say(note)
    sink = stack.enter_context(contextlib.closing(open_sinks(config, folder, say=console.say)))
    policies = _policy_store(config, folder, snapshots, console)
    return _wire_daemon(run, policies, runtime, limits, stack, console=console, sink=sink)


def _wire_daemon(
    run: PreparedRun,
    policies: PolicyStore,
    runtime: Runtime,
    limits: Limits,
    stack: contextlib.ExitStack,
    *,
    console: RunConsole,
    sink: MetricSink,
) -> _Wired:
    """Make the daemon, observed and open to requests."""
    config, folder, league, say = run.config, run.folder, run.league, console.say
    clock = read_clock(folder, league.noted_files, say=say)
    begun = begun_at(clock, league.state, limits)
    account = BudgetAccount(config.budget, Meter(clock.spent, monotonic=time.monotonic), limits=limits, begun=begun)
    account.read(env_steps=league.state.totals.env_steps)
    if account.ended == BUDGET:
        command = train_on_command(shlex.quote(str(folder.path)), config.budget, account.spent)
        say(f"The budget of this run is spent: rating games are played, and nothing is trained. To train on: {command}")
    commander = Commander(league)
    fleet = Fleet(runtime, config.runtime, league.state, ask=commander.ask, say=say)
    operator = stack.enter_context(contextlib.closing(Operator(folder, league, config, fleet)))
    floor = DiskFloor(folder.path, operator, snapshot_bytes=policies.snapshot_bytes, say=say)
    watches = stack.enter_context(open_watches(config, folder, floor, say=say))
    target = limits.env_steps_target(begun)
    heartbeat = Heartbeat(
        folder,
        league=league,
        runtime=runtime,
        alerts=watches.alerts,
        seat_names=run.spec.seat_names,
        env_steps_target=target,
    )
    heartbeat.write(None, phase="starting")
    observer = Observer(
        folder.path,
        league=league,
        runtime=runtime,
        heartbeat=heartbeat,
        watches=watches,
        console=console,
        sink=sink,
        runtime_config=lambda: operator.config.runtime,
    )
    daemon = Daemon(
        config,
        league=league,
        runtime=runtime,
        fleet=fleet,
        commander=commander,
        policies=policies,
        account=account,
        observe=observer.observe,
        operator=operator,
        prober=stack.enter_context(open_prober(config.probes, folder.path, league.state, say=say)),
        restore_hosts=lambda: restore_games(runtime, folder, policies, league.state, league.noted_files, say=say),
        say=say,
    )
    return _Wired(daemon, runtime, operator, heartbeat, console, clock.spent.seconds)


def _whole_setup(
    config: RunConfig,
    spec: EnvSpec,
    folder: RunFolder,
    snapshots: LocalSnapshotStore,
    fixed_opponents: Mapping[str, NetworkConfig],
) -> HostSetup:
    """The setup with what only the run folder has."""
    teacher = teacher_weights(config, spec, store=snapshots)
    setup = host_setup(config, spec, run=folder.path.name)
    return replace(
        setup,
        imported_networks=fixed_opponents,
        teacher=teacher,
        logs=str(folder.logs_path),
        rows=str(folder.rows_path),
    )


def _names_of_run(config: RunConfig, fixed_opponents: Mapping[str, NetworkConfig]) -> Iterator[OutsideName]:
    """The code from outside that a run loads: its configuration's, and that of its fixed opponents' networks."""
    yield from outside_names(config_plain(config))
    for network in fixed_opponents.values():
        yield from outside_names({"network": network_plain(network)})


def _policy_store(
    config: RunConfig, folder: RunFolder, snapshots: LocalSnapshotStore, console: RunConsole
) -> PolicyStore:
    """The weights of the run, without what a crash left half written."""
    checkpoints = CheckpointStore(folder.checkpoints_path, storage=folder.storage)
    snapshots.sweep()
    checkpoints.sweep()
    return PolicyStore(config, snapshots=snapshots, checkpoints=checkpoints, warn=console.say)


@contextlib.contextmanager
def _drained_by_signals(daemon: Daemon, console: RunConsole) -> Iterator[None]:
    """First Ctrl-C, TERM or loss of the terminal drains and saves, the second leaves at once."""

    def handle(number: int, frame: FrameType | None) -> None:
        if daemon.stop_requested:
            _leave(128 + number)
        daemon.stop_requested = True
        console.say("Stopping: games in hand end and everything is saved, within seconds; once more to leave at once.")

    with stop_signals(handle):
        yield


@contextlib.contextmanager
def _left_by_signals(heartbeat: Heartbeat, console: RunConsole) -> Iterator[None]:
    """While hosts start nothing is in hand, and a start of Ray cannot be broken off: a signal ends the process at once.

    Whatever it has started ends with it, see `league.processes.reaper`.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        console.say("Stopped before training began, as it was asked to.")
        sys.stdout.flush()
        heartbeat.write(None, phase="stopped", message=SIGNAL)
        _leave(PREEMPTED)

    with stop_signals(handle):
        yield


def _leave(code: int) -> None:
    """End the process at once; in a notebook or a prompt, whose other variables must live, the call alone."""
    if hasattr(sys, "ps1"):
        raise KeyboardInterrupt
    os._exit(code)


@contextlib.contextmanager
def _doors(folder: RunFolder, operator: Operator, config: RunConfig, console: RunConsole) -> Iterator[None]:
    """The control door of the run and its page. The web server is imported only where there is one."""
    with contextlib.ExitStack() as stack:
        if config.control.door:
            from league.run.control.door import open_door

            stack.enter_context(open_door(folder, operator, config.control, say=console.say))
        if config.control.page:
            stack.enter_context(page_process(folder, say=console.say))
        yield


@contextlib.contextmanager
def rescued(daemon: Daemon, league: JournaledLeague) -> Iterator[None]:
    """Context of a running daemon: if it breaks, what it had learnt and noted down becomes durable all the same."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StorageError | JournalError):
            daemon.rescue()
        with contextlib.suppress(LeagueError):
            league.commit()
        raise


def _save_stop(
    daemon: Daemon, heartbeat: Heartbeat, runtime: Runtime, folder: RunFolder, league: JournaledLeague, *, reason: str
) -> None:
    """Store what the next start continues from."""
    if daemon.playing:  # stopped before that: the games kept at the last stop remain the ones to continue
        save_games(runtime, folder, league.state)
    heartbeat.write_clock(daemon.status("stopped"), durable=True)
    league.save_state()
    league.note_files(files_to_note(folder))
    heartbeat.write(daemon.status("stopped"), phase="stopped", message=reason)


def save_games(runtime: Runtime, folder: RunFolder, state: LeagueState) -> None:
    """Keep the games in flight of a deterministic runtime, so that the run continues as if it had not stopped."""
    saved = runtime.save_hosts() if isinstance(runtime, DeterministicRuntime) else None
    if saved is not None:
        payload = encode_actor_state(saved, next_lease_id=state.next_lease_id)
        folder.write_resume_file(HOSTS_FILE, payload)


def restore_games(
    runtime: Runtime,
    folder: RunFolder,
    policies: PolicyStore,
    state: LeagueState,
    noted: Mapping[str, str],
    *,
    say: Callable[[str], object],
) -> None:
    """Take the games in flight up again where they fit the league as it stands; after a crash they do not.

    Losing them costs exactness, not a result: it is reported, and new games begin.

    Args:
      noted: content of the files by the journal's mark, as it was before this start.
      say: tells the user one sentence.
    """
    if not isinstance(runtime, DeterministicRuntime):
        return
    try:
        hosts, next_lease_id = decode_actor_state(read_noted(folder, noted, HOSTS_FILE))
    except FileNotFoundError:
        return
    except StorageError as error:
        say(f"{folder.hosts_path} cannot be used ({error}): the games that were in flight start again.")
        return
    if next_lease_id == state.next_lease_id:
        try:
            frozen = {name: policies.snapshot(info) for name, info in state.snapshots.items() if name in hosts.policies}
        except (CorruptSnapshot, MissingSnapshot) as error:
            say(f"{error} The games that were in flight start again.")
            return
        runtime.load_hosts(hosts, frozen)
