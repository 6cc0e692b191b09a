"""`league fork`: a new run that begins as another's past, up to any event of its journal. The other is only read."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

import numpy as np

from league.config.changes import differences
from league.config.commented import recommented
from league.config.plugin_names import OutsideName, outside_names
from league.config.run_config import RunConfig, config_plain
from league.core.league import apply, decide
from league.core.pbt.pbt import pinned_checkpoints
from league.core.state.commands import ChangeConfig, Command, NoteFork, QuarantineSnapshot
from league.core.state.events import EVENTS
from league.core.state.records import IMPORTED_PREFIX
from league.core.state.state import LeagueState
from league.envs.guard.settings import working_folder
from league.envs.plugins import is_admitted
from league.envs.registry import spec_of
from league.errors import ConfigError, CorruptSnapshot, MissingSnapshot
from league.json_report import JsonReport
from league.operate.history.event_ref import point_at
from league.operate.history.learner_resume import RestartPoint, lost_players, restart_points
from league.policies.trust import mark, names_of_manifest, open_config
from league.run.config_changes import noted_config, plays_the_same
from league.run.resume_files import clock_at, files_to_note, hosts_at
from league.store.checkpoints import CheckpointStore
from league.store.journal_branch import BranchJournal
from league.store.journal_reader import JournalReader
from league.store.journaled_league import LEAGUE_FOLD
from league.store.run_folder import CLOCK_FILE, HOSTS_FILE, RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.store.staging import require_apart, staged_run
from league.store.storage import Storage
from league.wording import counted


@dataclass(frozen=True)
class ForkReport(JsonReport):
    """A fork as it was made.

    Fields:
      run, source: folders. at: as asked for.
      event, chain: the last event taken over, and the chain hash after it.
      games, env_steps, snapshots: of the league at that event.
      same_games: whether the games in flight continue too, so that the fork plays on as the source would have.
      players: the state that each learner continues from.
      set_aside: snapshots whose weights the source could not give; the fork continues without them.
    """

    run: str
    source: str
    at: str
    event: int
    chain: str
    games: int
    env_steps: int
    snapshots: int
    same_games: bool
    players: tuple[RestartPoint, ...]
    set_aside: tuple[str, ...] = ()

    def json_extras(self) -> Mapping[str, object]:
        """`warnings`: how many there are."""
        return {"warnings": sum(point.is_warning for point in self.players)}

    def text(self) -> str:
        games = "continue as they were" if self.same_games else "start again"
        return "\n".join(
            [
                f"{self.run}: begins with the first {self.event:,} events of {self.source} "
                f"({counted(self.games, 'game')}, {counted(self.env_steps, 'env step')}, "
                f"{counted(self.snapshots, 'snapshot')})",
                *(f"  {point.text()}" for point in self.players),
                *(f"  snapshot {name} cannot be read and is set aside" for name in self.set_aside),
                f"  games in flight {games}",
                f"Continue with: league resume {self.run}",
            ]
        )


def fork_run(
    source: Path,
    new: Path,
    *,
    at: str,
    overrides: Sequence[str] = (),
    wall_time: Callable[[], float] = time.time,
    storage: Storage | None = None,
) -> ForkReport:
    """Make a run that begins with the events of another one up to a point; that one may be live.

    Args:
      new: its folder, which must not be there yet.
      at: see `league.operate.history.event_ref.FORMS`.
      overrides: "dotted.key=value" each, over the configuration of the source.
    Raises:
      LeagueError, EnvError: one sentence for the user; nothing is at `new`.
    """
    origin = RunFolder.open(source)
    require_apart(source, new)
    opened = open_config(origin)
    before, config = opened.config(), opened.config(overrides)
    with JournalReader.open_readonly(origin.journal_path, events=EVENTS) as journal, journal.one_moment():
        point = point_at(journal, at)
        state = LEAGUE_FOLD.read(journal, until=point.seq)
        if problems := [*_contradictions(config, before, state, LocalSnapshotStore(origin.snapshots_path))]:
            raise ConfigError("fork", problems)
        if config.teacher != before.teacher:
            config = _with_new_teacher(config, before)
        text = recommented(config, origin.read_config())
        with staged_run(new, config_yaml=text, storage=storage or Storage()) as folder:
            unreadable = _take_snapshots(origin, folder, state, teacher=config.teacher.digest)
            points = _take_restart_states(origin, folder, state)
            note = NoteFork(str(origin.path), point.seq, point.chain, lost_players(points))
            mark(folder, _names(config, folder, state))
            hosts = hosts_at(origin, state) if plays_the_same(config, before) else None
            if hosts is not None:
                folder.write_resume_file(HOSTS_FILE, hosts)
            folder.write_resume_file(CLOCK_FILE, clock_at(origin, state).encode())
            with branch_journal(folder) as branch:
                branch.take_over(journal, to_seq=point.seq)
                commands: list[Command] = [note, *_new_config(text, (before, config), state), *unreadable]
                _note_down(branch, state, commands, now=wall_time())
                branch.note_files(files_to_note(folder))
    return ForkReport(
        run=str(new),
        source=str(source),
        at=at,
        event=point.seq,
        chain=point.chain,
        games=state.totals.games,
        env_steps=state.totals.env_steps,
        snapshots=len(state.snapshots),
        same_games=hosts is not None,
        players=points,
        set_aside=tuple(command.snapshot for command in unreadable),
    )


def _names(config: RunConfig, folder: RunFolder, state: LeagueState) -> Iterator[OutsideName]:
    """The code from outside that the fork loads, which this user has trusted or marked in the source."""
    yield from outside_names(config_plain(config))
    store = LocalSnapshotStore(folder.snapshots_path)
    for info in state.snapshots.values():
        if info.snapshot_id.startswith(IMPORTED_PREFIX):
            with contextlib.suppress(MissingSnapshot, CorruptSnapshot):  # the fork sets it aside
                names = names_of_manifest(store.get(info.digest)[1])
                yield from (found for found in names if found.kind != "env" and is_admitted(found.entry))


def branch_journal(folder: RunFolder) -> BranchJournal:
    """A new, empty journal that can begin as another one."""
    return cast(BranchJournal, BranchJournal.create(folder.journal_path, events=EVENTS, storage=folder.storage))


def _contradictions(
    config: RunConfig, before: RunConfig, state: LeagueState, snapshots: LocalSnapshotStore
) -> Iterator[str]:
    """Changes that the inherited past does not allow, one sentence each. snapshots: of the source."""
    assert state.config is not None, "a point of a journal lies behind the creating of its league"
    if config.league != before.league:
        created, wanted = (_leaves(replace(config, league=league)) for league in (state.config, config.league))
        for path in sorted(key for key in created.keys() | wanted.keys() if created.get(key) != wanted.get(key)):
            yield (
                f"{path}: the league in the journal was created with {created.get(path)!r}, not {wanted.get(path)!r}; "
                "a fork continues that league, `league train` creates another"
            )
    if config.network != before.network:
        yield f"network: the {len(state.snapshots)} snapshots and the learners are of the network that the source has"
    if config.env != before.env:
        yield from _other_game(config, before, state, snapshots)


def _other_game(
    config: RunConfig, before: RunConfig, state: LeagueState, snapshots: LocalSnapshotStore
) -> Iterator[str]:
    """As the snapshots say it: the game of the source may be gone, as that of a file that was moved."""
    from league.policies.policy_store import is_game_of  # brings in torch, needed for another game alone

    new = spec_of(config.env)
    if not is_game_of(state, snapshots, new):
        yield f"env: seats, teams, observations, actions or the mask of {new.env_id} differ from {before.env.id}'s"


def _leaves(config: RunConfig) -> dict[str, object]:
    """Dotted path -> value of every setting of the league."""
    found: dict[str, object] = {}
    stack: list[tuple[str, object]] = [("league", config_plain(config)["league"])]
    while stack:
        path, value = stack.pop()
        if isinstance(value, dict):
            stack.extend((f"{path}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            stack.extend((f"{path}.{place}", item) for place, item in enumerate(value))
        else:
            found[path] = value
    return found


def _with_new_teacher(config: RunConfig, before: RunConfig) -> RunConfig:
    """The configuration with the digest of the teacher that it names now; the fork copies it when it starts."""
    from league.policies.teacher import (
        find_teacher,  # brings in torch, which is not needed where the teacher is the same
    )

    settings = config.teacher
    if settings.digest == before.teacher.digest:
        settings = replace(settings, digest="")
    spec = spec_of(config.env)
    return find_teacher(replace(config, teacher=settings), spec, folder=working_folder())


def _take_snapshots(
    origin: RunFolder, folder: RunFolder, state: LeagueState, *, teacher: str
) -> list[QuarantineSnapshot]:
    """Share every snapshot that the league refers to; returns what sets those aside that cannot be read."""
    snapshots = LocalSnapshotStore(folder.snapshots_path, storage=folder.storage)
    held = LocalSnapshotStore(origin.snapshots_path)
    unreadable: dict[str, str] = {}
    for digest in dict.fromkeys(info.digest for info in state.snapshots.values()):
        try:
            snapshots.take_over(digest, held)
        except (MissingSnapshot, CorruptSnapshot) as error:
            unreadable[digest] = str(error)
    if teacher:
        with contextlib.suppress(MissingSnapshot):  # not copied there yet: the fork takes it from its source as well
            snapshots.take_over(teacher, held)
    return [
        QuarantineSnapshot(name, unreadable[info.digest])
        for name, info in state.snapshots.items()
        if info.digest in unreadable and state.is_present(name)
    ]


def _take_restart_states(origin: RunFolder, folder: RunFolder, state: LeagueState) -> tuple[RestartPoint, ...]:
    """Share every restart state that the league refers to and that is still there."""
    theirs = CheckpointStore(origin.checkpoints_path)
    checkpoints = CheckpointStore(folder.checkpoints_path, storage=folder.storage)
    for player, digest in sorted(pinned_checkpoints(state)):
        with contextlib.suppress(MissingSnapshot, CorruptSnapshot):  # the daemon drops the transplant and says so
            checkpoints.take_over(player, digest, theirs)
    return restart_points(state, lambda player, digest: checkpoints.take_over(player, digest, theirs))


def _new_config(text: str, records: tuple[RunConfig, RunConfig], state: LeagueState) -> Iterator[ChangeConfig]:
    """The fork's configuration where the journal that is taken over ends with another one. records: before, after."""
    if text != state.config_text:
        before, after = (config_plain(record) for record in records)
        yield noted_config(text, tuple(differences(before, after)))


def _note_down(branch: BranchJournal, state: LeagueState, commands: Sequence[Command], *, now: float) -> None:
    """The fork as the next events, durable, with the state after them, so that no start need replay the past again."""
    for command in commands:
        events = decide(state, command, np.random.default_rng(0))
        branch.append(events, wall_time=now)
        for event in events:
            apply(state, event)
    branch.commit()
    branch.save_state(LEAGUE_FOLD.encode(state))
