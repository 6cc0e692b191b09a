"""`league rewind`: a run taken back to an earlier event of its journal; what came after is set aside, never destroyed.

The order of the writes: the whole run as it was is set aside under a folder of its own; heartbeat, games in flight and
clock are brought back; last, one transaction cuts the journal and notes that down. A crash after it leaves the run
taken back, a crash before it the run as it was, but for those three files. Their contents lie in the folder set aside,
from where the next rewind takes them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

import numpy as np

from league.core.league import apply, decide
from league.core.state.commands import Command, NoteRewind, QuarantineSnapshot
from league.core.state.events import EVENTS, Event
from league.core.state.state import LeagueState
from league.errors import JournalError, LeagueError
from league.json_report import JsonReport
from league.operate.history.event_ref import point_at
from league.operate.history.fork import branch_journal
from league.operate.history.learner_resume import RestartPoint, lost_players, restart_points
from league.policies.own_code import CODE_FILE
from league.policies.trust import MARK_FILE
from league.run.resume_files import clock_at, files_to_note, hosts_at
from league.store.checkpoints import CheckpointStore
from league.store.journal_branch import BranchJournal
from league.store.journal_reader import JournalHead, JournalReader
from league.store.journaled_league import LEAGUE_FOLD
from league.store.run_folder import CLOCK_FILE, HOSTS_FILE, RESUME_FILES, RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.store.staging import staged_run
from league.store.storage import TEMPORARY_PREFIX, Storage
from league.wording import counted

SET_ASIDE = "rewound-"
_CARRIED = (*RESUME_FILES, "status.json")


@dataclass(frozen=True)
class RewindReport(JsonReport):
    """A summary of everything that a rewind undoes.

    Fields:
      run: its folder. at: as asked for. event: the last one kept.
      events, games, env_steps, snapshots: how many are set aside.
      set_aside: folder that holds the whole run as it was; empty before it is made.
      same_games: whether the games in flight continue too, so that the run plays on as it did then.
      players: the state that each learner continues from.
    """

    run: str
    at: str
    event: int
    events: int
    games: int
    env_steps: int
    snapshots: int
    set_aside: str
    same_games: bool
    players: tuple[RestartPoint, ...]

    def json_extras(self) -> Mapping[str, object]:
        """`warnings`: how many there are."""
        return {"warnings": sum(point.is_warning for point in self.players)}

    def text(self) -> str:
        where = f"set aside in {self.set_aside}" if self.set_aside else "to be set aside"
        games = "continue as they were" if self.same_games else "start again"
        return "\n".join(
            [
                f"{self.run}: back to event {self.event:,}; {counted(self.events, 'event')}, "
                f"{counted(self.games, 'game')}, "
                f"{counted(self.env_steps, 'env step')}, {counted(self.snapshots, 'snapshot')} {where}",
                *(f"  {point.text()}" for point in self.players),
                f"  games in flight {games}",
            ]
        )


def rewind_run(
    path: Path,
    *,
    at: str,
    confirm: Callable[[RewindReport], bool],
    wall_time: Callable[[], float] = time.time,
    storage: Storage | None = None,
) -> RewindReport | None:
    """Take a run back to an event of its journal, after which it can be resumed from there.

    Args:
      at: see `league.operate.history.event_ref.FORMS`.
      confirm: shown what will happen; nothing does where it answers no.
      wall_time: seconds since 1970, for the folder's name and a label in the journal.
    Returns: what was taken back; None where `confirm` said no.
    Raises:
      RunInUse: its daemon lives.
      LeagueError: one sentence for the user.
    """
    folder = RunFolder.open(path, storage=storage)
    with folder.lock:
        status = folder.read_status()
        at_least = 0 if status is None else status.journal_seq
        with _open(folder, at_least_seq=at_least) as journal:
            point, head = point_at(journal, at), journal.head()
            if point == head:
                raise LeagueError(f"{path} ends at event {head.seq}: there is nothing to take back.")
            state, last = LEAGUE_FOLD.read(journal, until=point.seq), LEAGUE_FOLD.read(journal, until=head.seq)
            made = _set_aside_before(folder, head)
            carried = folder if made is None else RunFolder.open(made)
            report = _plan(folder, at=at, point=point, head=head, state=state, last=last, carried=carried)
            if not confirm(report):
                return None
            now = wall_time()
            aside = made or _set_aside(folder, journal, head=head, now=now)
            _bring_back_files(folder, state, carried=RunFolder.open(aside), point=point, now=now)
            note = NoteRewind(
                event=point.seq,
                chain=point.chain,
                ended=head.seq,
                ended_chain=head.chain,
                token=last.token,
                set_aside=aside.name,
                lost=lost_players(report.players),
            )
            events = _decided(state, [note, *_absent_snapshots(folder, state, last)])
            journal.take_back(events, to_seq=point.seq, wall_time=now)
            journal.note_files(files_to_note(folder))
            return replace(report, set_aside=str(aside))


def _absent_snapshots(folder: RunFolder, state: LeagueState, last: LeagueState) -> Iterator[QuarantineSnapshot]:
    """Sets those aside that the league met at the point and whose weights are gone since, as retired ones are."""
    stored = set(LocalSnapshotStore(folder.snapshots_path).digests())
    population = last.population
    for name, known in state.snapshots.items():
        if state.is_present(name) and known.digest not in stored:
            reason = population.absent.get(population.index[name], "its weights are not in the store")
            yield QuarantineSnapshot(name, reason)


def _decided(state: LeagueState, commands: Sequence[Command]) -> list[Event]:
    """The events of commands, which `state` has folded afterwards."""
    events: list[Event] = []
    for command in commands:
        for event in decide(state, command, np.random.default_rng(0)):
            apply(state, event)
            events.append(event)
    return events


def _open(folder: RunFolder, *, at_least_seq: int) -> BranchJournal:
    journal = BranchJournal.open(folder.journal_path, events=EVENTS, storage=folder.storage, at_least_seq=at_least_seq)
    assert isinstance(journal, BranchJournal)
    return journal


def _plan(
    folder: RunFolder,
    *,
    at: str,
    point: JournalHead,
    head: JournalHead,
    state: LeagueState,
    last: LeagueState,
    carried: RunFolder,
) -> RewindReport:
    store = CheckpointStore(folder.checkpoints_path)

    def require(player: str, digest: str) -> None:
        store.get(player, digest)

    return RewindReport(
        run=str(folder.path),
        at=at,
        event=point.seq,
        events=head.seq - point.seq,
        games=last.totals.games - state.totals.games,
        env_steps=last.totals.env_steps - state.totals.env_steps,
        snapshots=len(last.snapshots) - len(state.snapshots),
        set_aside="",
        same_games=hosts_at(carried, state) is not None,
        players=restart_points(state, require),
    )


def _set_aside_before(folder: RunFolder, head: JournalHead) -> Path | None:
    """The folder of a rewind from this very event that was broken off before it cut the journal."""
    for path in folder.path.glob(f"{SET_ASIDE}*"):
        try:
            with JournalReader.open_readonly(path / folder.journal_path.name, events=EVENTS) as journal:
                if journal.head() == head:
                    return path
        except JournalError:
            continue
    return None


def _set_aside(folder: RunFolder, journal: JournalReader, *, head: JournalHead, now: float) -> Path:
    """The whole run as it is, as a run folder that can be read, checked and forked like any other."""
    storage = folder.storage
    for left in folder.path.glob(f"{TEMPORARY_PREFIX}{SET_ASIDE}*"):
        storage.remove_folder(left)
    numbers = [int(found.name.split("-")[1]) for found in folder.path.glob(f"{SET_ASIDE}[0-9]*-*")]
    path = folder.path / f"{SET_ASIDE}{max(numbers, default=0) + 1}-{datetime.fromtimestamp(now):%Y%m%d-%H%M%S}"
    with staged_run(path, config_yaml=folder.read_config(), storage=storage) as aside:
        with branch_journal(aside) as branch:
            branch.take_over(journal, to_seq=head.seq)
        for store in (folder.snapshots_path, folder.checkpoints_path):
            _link_all(store, aside.path / store.name, storage)
        for name in (*_CARRIED, MARK_FILE, CODE_FILE):
            if (folder.path / name).exists():
                storage.link(folder.path / name, aside.path / name)
    return path


def _link_all(source: Path, target: Path, storage: Storage) -> None:
    """Share every file below a folder whose files are never changed in place, but for what a crash left there."""
    for found in sorted(source.rglob("*")):
        inside = found.relative_to(source)
        if found.is_file() and not any(part.startswith(TEMPORARY_PREFIX) for part in inside.parts):
            storage.make_folder((target / inside).parent)
            storage.link(found, target / inside)


def _bring_back_files(
    folder: RunFolder, state: LeagueState, *, carried: RunFolder, point: JournalHead, now: float
) -> None:
    """Files of the run as they fit the event; `carried` holds heartbeat, games in flight and clock of the end."""
    if state.config_text:
        folder.write_config(state.config_text)
    status, clock = carried.read_status(), clock_at(carried, state)
    if status is not None:
        folder.write_status(
            replace(
                status,
                journal_seq=min(status.journal_seq, point.seq),
                heartbeat_at=now,
                phase="stopped",
                workers=(),
                games=state.totals.games,
                env_steps=state.totals.env_steps,
                players=len(state.players),
                snapshots=len(state.snapshots),
                message=f"taken back to event {point.seq}",
                trained_s=clock.spent.seconds,
                budget_spent=None,  # the next daemon reports it
            )
        )
    folder.write_resume_file(HOSTS_FILE, hosts_at(carried, state))
    folder.write_resume_file(CLOCK_FILE, clock.encode())
