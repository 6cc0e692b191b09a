"""`league train` and `league resume`: all wiring of a run in one place.

A run is a folder. Starting it makes the folder, resuming it opens it; from there on both are the same.
"""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from agents.nets.config import NetworkConfig
from envs.plugins import admit as admit_names
from envs.plugins import first_line
from envs.protocol import EnvSpec
from envs.registry import spec_of
from league.alerts.watch import open_alerts
from league.config.auto.resolve import resolve
from league.config.checks import run_deadlines
from league.config.commented import dump_commented
from league.config.default_scoring import scoring_of
from league.config.game_kind import GameKind, game_kind
from league.config.plugin_checks import require_working_names
from league.config.plugin_names import OutsideName, outside_names
from league.config.run_config import BudgetConfig, RunConfig, config_plain
from league.control.page_process import page_process
from league.core.state.commands import CreateLeague
from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, JournalError, LeagueError, MissingSnapshot, StorageError
from league.monitor.console import RunConsole
from league.operations.disk_floor import DiskFloor
from league.operations.operator import Operator
from league.policies.imported import absent_imported, admit, find_imported, imported_networks, remarks, trust_sources
from league.policies.policy_store import PolicyStore, network_plain
from league.policies.teacher import find_teacher, teacher_weights
from league.policies.trust import mark, names_of_league, read_config, require_trusted, trust_folder
from league.pool.push import open_pusher
from league.probes.prober import open_prober
from league.run.budget import BUDGET, Limits, Meter, Spent
from league.run.config_changes import noted_config, settled_config
from league.run.daemon import Daemon
from league.run.metric_sinks import open_sinks, require_working_sinks
from league.run.observer import Observer
from league.run.precision import with_precision
from league.run.preset_remarks import preset_remarks
from league.run.resume_files import begun_at, files_to_note, read_clock, read_noted
from league.run.stop_signals import stopped_by_signals
from league.run.undeclared_teams import team_remark
from league.runtime.actor_state_file import decode_actor_state, encode_actor_state
from league.runtime.host_log import logged_to
from league.runtime.inprocess import InProcessRuntime
from league.runtime.protocol import DeterministicRuntime, HostSetup, Runtime
from league.store.checkpoints import CheckpointStore
from league.store.journaled_league import JournaledLeague
from league.store.known_runs import note_run
from league.store.run_folder import HOSTS_FILE, RunFolder, new_run_path, require_lasting
from league.store.snapshots import LocalSnapshotStore

MAX_CHUNK_BATCHES = 4
"""Batches in one chunk at most: larger chunks cost fewer calls, smaller ones keep the policy lag down."""


@dataclass(frozen=True)
class Ended:
    """The end of a run's session. reason: why; spent: by the run in all; seconds: of training in this session."""

    folder: RunFolder
    reason: str
    spent: Spent
    seconds: float


def train(
    source: Path | str, *, overrides: Sequence[str], run_dir: Path | None, limits: Limits, trust: bool = False
) -> Ended:
    """Start a new run, its open settings chosen by `league.config.auto`.

    Args:
      source: path of a configuration, or the id of an env.
      limits: of this command; they are the budget where the configuration has none.
      trust: whether code is loaded that the sources of fixed opponents and teacher name, see `league.policies.trust`.
    Raises:
      LeagueError, EnvError: one sentence for the user.
    """
    limit = BudgetConfig(limits.seconds, limits.core_seconds, limits.env_steps)
    found = resolve(str(source), overrides=overrides, limit=limit, ends_by_steps=limits.env_steps is not None)
    return start(found.config, found.reasons, source=Path(source), run_dir=run_dir, limits=limits, trust=trust)


def start(
    config: RunConfig,
    reasons: Mapping[str, str],
    *,
    source: Path,
    run_dir: Path | None,
    limits: Limits,
    trust: bool = False,
) -> Ended:
    """Start a new run with a whole configuration.

    Args:
      reasons: dotted key -> reason, of settings that were chosen.
      source: the file that the configuration is from; beside it imported policies are looked for.
    Raises: as `train`.
    """
    if trust:
        trust_sources(config, folder=source.parent)
    spec = spec_of(config.env)
    config, imported = find_imported(config, spec, folder=source.parent)
    config = find_teacher(config, spec, folder=source.parent)
    require_working_names(config, spec, source=str(source))
    require_working_sinks(config, source=str(source))
    measured = with_precision(config, spec)
    if measured is not config:
        config, reasons = measured, {**reasons, "learner.precision": "the fastest here"}
    scoring_of(config.league.payoff, spec)  # refused before a folder is made
    text = dump_commented(config, reasons)
    path = run_dir if run_dir is not None else new_run_path(config.name, now=datetime.now())
    require_lasting(path)
    folder = RunFolder.create(path, config_yaml=text)
    with folder.lock:
        league = JournaledLeague.create(folder.journal_path, wall_time=time.time, storage=folder.storage)
        league.execute(_create(config, spec))
        league.execute(noted_config(text))
        admit(imported, league=league, store=_snapshot_store(folder))
        league.commit()
        notes = [*preset_remarks(config.league), *remarks(imported, config.env)]
        notes += filter(None, [team_remark(config.env, spec)])
        note_run(folder.path)
        return _session(config, spec, folder=folder, league=league, limits=limits, notes=notes)


def resume(
    path: Path,
    *,
    limits: Limits,
    overrides: Sequence[str] = (),
    restore_config: bool = False,
    trust: bool = False,
) -> Ended:
    """Continue a run from its journal and stores.

    Args:
      trust: whether code is loaded that the run names although this user did not train it; from then on it is theirs.
      overrides: "dotted.key=value" each, a change of the configuration that the journal keeps.
      restore_config: write config.yaml again as the journal has it.
    Raises:
      LeagueError, EnvError: one sentence for the user.
    """
    folder = RunFolder.open(path)
    with folder.lock:
        status = folder.read_status()
        at_least = 0 if status is None else status.journal_seq
        league = JournaledLeague.open(
            folder.journal_path, at_least_seq=at_least, wall_time=time.time, storage=folder.storage
        )
        if trust:
            _trust_run(folder, league)
        config = settled_config(folder, league, overrides=overrides, restore=restore_config)
        require_trusted(names_of_league(league.state), what=str(folder.path))
        spec = spec_of(config.env)
        require_working_names(config, spec, source=str(folder.path))
        if league.state.config is None:
            league.execute(_create(config, spec))
            league.execute(noted_config(folder.read_config()))
        admit(absent_imported(config, league.state, spec), league=league, store=_snapshot_store(folder))
        league.commit()
        note_run(folder.path)
        return _session(config, spec, folder=folder, league=league, limits=limits, notes=league.notes)


def _create(config: RunConfig, spec: EnvSpec) -> CreateLeague:
    """The command that creates the league of a run."""
    kind = game_kind(config.env, spec)
    return CreateLeague(
        config.seed,
        spec.num_seats,
        spec.teams,
        config.league,
        scoring_of(config.league.payoff, spec),
        perfect_information=kind is GameKind.PERFECT,
        moves_at_once=kind is GameKind.AT_ONCE,
    )


def _trust_run(folder: RunFolder, league: JournaledLeague) -> None:
    """Trust a run folder, its journal, and the sources of its imported policies."""
    trust_folder(folder.path)
    admit_names(found.entry for found in names_of_league(league.state))
    trust_sources(read_config(folder), folder=Path.cwd())


def _names_of_run(config: RunConfig, fixed_opponents: Mapping[str, NetworkConfig]) -> Iterator[OutsideName]:
    """The code from outside that a run loads: its configuration's, and that of its fixed opponents' networks."""
    yield from outside_names(config_plain(config))
    for network in fixed_opponents.values():
        yield from outside_names({"network": network_plain(network)})


def has_spent_its_budget(folder: RunFolder) -> bool:
    """True if a run ended because its budget was used up."""
    status = folder.read_status()
    return status is not None and (status.phase, status.message) == ("stopped", BUDGET)


def host_setup(config: RunConfig, spec: EnvSpec, *, run: str) -> HostSetup:
    """The setup that the hosts of a run build from."""
    rows = config.actors.num_envs * spec.num_seats
    batches = min(max(rows // (2 * config.learner.batch_rows), 1), MAX_CHUNK_BATCHES)
    return HostSetup(
        run=run,
        env=config.env,
        network=config.network,
        learner=config.learner,
        num_envs=config.actors.num_envs,
        chunk_rows=batches * config.learner.batch_rows,
        seed=config.seed,
        deadlines=run_deadlines(config),
        inference=secrets.token_hex(16) if config.actors.inference == "central" else "",
    )


def _whole_setup(
    config: RunConfig, spec: EnvSpec, folder: RunFolder, fixed_opponents: Mapping[str, NetworkConfig]
) -> HostSetup:
    """The setup with what only the run folder has."""
    teacher = teacher_weights(config, spec, store=_snapshot_store(folder))
    setup = host_setup(config, spec, run=folder.path.name)
    return replace(setup, imported_networks=fixed_opponents, teacher=teacher, logs=str(folder.logs_path))


def make_runtime(config: RunConfig, setup: HostSetup, state: LeagueState) -> Runtime:
    """The runtime that the configuration names. Ray is imported only where it is used."""
    if config.runtime.kind == "inprocess":
        return InProcessRuntime(setup, players=tuple(state.players), deadline_s=config.runtime.lease_deadline_s)
    from league.runtime.ray_runtime import RayRuntime

    own_names = tuple(found.name for found in outside_names(config_plain(config)))
    return RayRuntime(setup, config.runtime, players=tuple(state.players), own_names=own_names)


def _session(
    config: RunConfig,
    spec: EnvSpec,
    *,
    folder: RunFolder,
    league: JournaledLeague,
    limits: Limits,
    notes: Sequence[str] = (),
) -> Ended:
    """Train until something ends it. notes: sentences for the user, said first."""
    with contextlib.ExitStack() as stack:
        stack.callback(league.close)
        stack.enter_context(logged_to(folder.logs_path, "daemon"))
        fixed_opponents = imported_networks(league.state, _snapshot_store(folder))
        setup = _whole_setup(config, spec, folder, fixed_opponents)
        runtime = stack.enter_context(contextlib.closing(make_runtime(config, setup, league.state)))
        console = stack.enter_context(RunConsole(sys.stdout, clock=time.monotonic))
        for note in (*notes, *mark(folder, _names_of_run(config, fixed_opponents))):
            console.say(note)
        sink = stack.enter_context(contextlib.closing(open_sinks(config, folder, console)))
        noted = league.noted_files
        clock = read_clock(folder, noted, say=console.say)
        begun = begun_at(clock, league.state, limits)
        policies = _policy_store(config, folder, console)
        operator = stack.enter_context(contextlib.closing(Operator(folder, league, config)))
        observer = Observer(
            folder=folder,
            league=league,
            runtime=runtime,
            console=console,
            sink=sink,
            env_steps_target=None if limits.env_steps is None else begun.env_steps + limits.env_steps,
            floor=DiskFloor(folder.path, operator, snapshot_bytes=policies.snapshot_bytes, say=console.say),
            alerts=stack.enter_context(contextlib.closing(open_alerts(config.alerts, folder, say=console.say))),
            pusher=stack.enter_context(open_pusher(config.pool, folder, say=console.say)),
        )
        observer.write_status(None, phase="starting")
        daemon = Daemon(
            config,
            league=league,
            runtime=runtime,
            policies=policies,
            meter=Meter(clock.spent, monotonic=time.monotonic),
            limits=limits,
            begun=begun,
            observe=observer.observe,
            operator=operator,
            prober=stack.enter_context(open_prober(config.probes, folder.path, league.state, say=console.say)),
            restore_hosts=lambda: _restore_hosts(runtime, folder, policies, league.state, noted, console),
        )
        daemon.say = console.say
        try:
            with stopped_by_signals(daemon, console), _doors(folder, operator, config, console):
                runtime.start()
                reason = run_and_keep(daemon, league)
        except BaseException as error:
            observer.write_status(None, phase="failed", message=first_line(error) or repr(error))
            raise
        _save_stop(daemon, observer, runtime, folder, league, reason=reason)
        return Ended(folder, reason, daemon.spent, daemon.spent.seconds - clock.spent.seconds)


@contextlib.contextmanager
def _doors(folder: RunFolder, operator: Operator, config: RunConfig, console: RunConsole) -> Iterator[None]:
    """The control door of the run and its page. The web server is imported only where there is one."""
    with contextlib.ExitStack() as stack:
        if config.control.door:
            from league.control.door import open_door

            stack.enter_context(open_door(folder, operator, config.control, say=console.say))
        if config.control.page:
            stack.enter_context(page_process(folder, say=console.say))
        yield


def _save_stop(
    daemon: Daemon, observer: Observer, runtime: Runtime, folder: RunFolder, league: JournaledLeague, *, reason: str
) -> None:
    """Store what the next start continues from."""
    if daemon.playing:  # stopped before that: the games kept at the last stop remain the ones to continue
        _save_hosts(runtime, folder, league.state)
    observer.write_clock(daemon.status("stopped"), durable=True)
    league.save_state()
    league.note_files(files_to_note(folder))
    observer.write_status(daemon.status("stopped"), phase="stopped", message=reason)


def run_and_keep(daemon: Daemon, league: JournaledLeague) -> str:
    """Run the daemon; whatever it had learnt and noted down when something broke becomes durable all the same."""
    try:
        return daemon.run()
    except BaseException as error:
        if isinstance(error, Exception) and not isinstance(error, StorageError | JournalError):
            daemon.rescue()
        with contextlib.suppress(LeagueError):
            league.commit()
        raise


def _snapshot_store(folder: RunFolder) -> LocalSnapshotStore:
    return LocalSnapshotStore(folder.snapshots_path, storage=folder.storage)


def _policy_store(config: RunConfig, folder: RunFolder, console: RunConsole) -> PolicyStore:
    snapshots = _snapshot_store(folder)
    checkpoints = CheckpointStore(folder.checkpoints_path, storage=folder.storage)
    snapshots.sweep()
    checkpoints.sweep()
    return PolicyStore(config, snapshots=snapshots, checkpoints=checkpoints, warn=console.say)


def _save_hosts(runtime: Runtime, folder: RunFolder, state: LeagueState) -> None:
    """Keep the games in flight of an exact runtime, so that the run continues as if it had not stopped."""
    saved = runtime.save_hosts() if isinstance(runtime, DeterministicRuntime) else None
    if saved is not None:
        payload = encode_actor_state(saved, next_lease_id=state.next_lease_id)
        folder.write_resume_file(HOSTS_FILE, payload)


def _restore_hosts(
    runtime: Runtime,
    folder: RunFolder,
    policies: PolicyStore,
    state: LeagueState,
    noted: Mapping[str, str],
    console: RunConsole,
) -> None:
    """Take the games in flight up again where they fit the league as it stands; after a crash they do not.

    noted: what the journal's mark said of the files before this start. Losing them costs exactness, not a result: it
    is reported, and new games begin.
    """
    if not isinstance(runtime, DeterministicRuntime):
        return
    try:
        hosts, next_lease_id = decode_actor_state(read_noted(folder, noted, HOSTS_FILE))
    except FileNotFoundError:
        return
    except StorageError as error:
        console.say(f"{folder.hosts_path} cannot be used ({error}): the games that were in flight start again.")
        return
    if next_lease_id == state.next_lease_id:
        try:
            frozen = {name: policies.snapshot(info) for name, info in state.snapshots.items() if name in hosts.policies}
        except (CorruptSnapshot, MissingSnapshot) as error:
            console.say(f"{error} The games that were in flight start again.")
            return
        runtime.load_hosts(hosts, frozen)
