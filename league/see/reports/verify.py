"""Verifies a run from its folder alone: the journal, and every file that it names. Never imports torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from league.core.quarantine import quarantined
from league.core.state.events import EVENTS, LeaseFinished
from league.core.state.state import LeagueState
from league.errors import JournalError, StorageError
from league.json_report import JsonReport
from league.run.config_changes import config_problem
from league.run.resume_files import file_problems
from league.store.checkpoints import CheckpointStore
from league.store.journal_reader import JournalReader
from league.store.journaled_league import verified_state
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore
from league.wording import counted

SCORE_ROUNDING = 1e-9
"""Share by which sums of scores may be off: they are added in floating point, one answer at a time."""


@dataclass(frozen=True)
class VerifyReport(JsonReport):
    """Result of verifying a run. checked: the things examined; problems: faults, one sentence each."""

    run: str
    events: int
    journal_hash: str
    checked: tuple[str, ...]
    problems: tuple[str, ...]

    def json_extras(self) -> Mapping[str, object]:
        """`ok`: true where nothing is wrong."""
        return {"ok": not self.problems}

    def text(self) -> str:
        verdict = "holds" if not self.problems else f"does NOT hold: {counted(len(self.problems), 'problem')}"
        return "\n".join(
            [
                f"{self.run}: {verdict}",
                *(f"  ok   {line}" for line in self.checked),
                *(f"  BAD  {line}" for line in self.problems),
            ]
        )


def verify_run(path: Path) -> VerifyReport:
    """Replay the journal from zero and read every snapshot and checkpoint that it names.

    Raises:
      MissingRun: there is no run.
    """
    folder = RunFolder.open(path)
    checked: list[str] = []
    problems: list[str] = []
    events, head = 0, ""
    try:
        status = folder.read_status()  # before the journal: a live daemon moves both on
        known = 0 if status is None else status.journal_seq
        with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
            events, head = journal.head().seq, journal.head().chain
            writers = [f"{version} from event {first:,}" for version, first in journal.programs()]
            if events < known:
                problems.append(f"the journal ends at event {events} although event {known} was durable")
            if mark := journal.mark_problem():
                problems.append(mark)
            noted = journal.noted_files()
            state = verified_state(journal)
            problems.extend(_miscounted(journal, state))
        written = f" (written by league {', '.join(writers)})" if writers else ""
        checked.append(f"{events:,} journal events: chain and replay from zero{written}")
        leases = counted(state.totals.leases_finished, "lease")
        checked.append(f"{counted(state.totals.games, 'game')} of {leases}, each answered once")
        problems.extend(_bad_snapshots(folder, state, checked))
        problems.extend(_bad_checkpoints(folder, state, checked))
        problems.extend(file_problems(folder, noted))
        if differs := config_problem(folder, state):
            problems.append(differs)
        checked.append("the mark of the last event, clock, games in flight and configuration")
    except (JournalError, StorageError) as error:
        problems.append(str(error))
    return VerifyReport(str(path), events, head, tuple(checked), tuple(problems))


def _miscounted(journal: JournalReader, state: LeagueState) -> Iterator[str]:
    """Results counted by hand from the journal against what the league made of them."""
    answered: set[int] = set()
    games = 0
    for _, event in journal.replay():
        if isinstance(event, LeaseFinished):
            if event.lease_id in answered:
                yield f"lease {event.lease_id} was answered twice"
            answered.add(event.lease_id)
            games += sum(outcome.games for outcome in event.outcomes)
    if games != state.totals.games:
        yield f"the journal holds {games} games, the league counts {state.totals.games}"
    recorded = int(state.payoff.totals.sum())
    if len(state.teams) == 2 == len(set(state.teams)):
        if recorded != 2 * games:
            yield f"{games} games of two sides make {2 * games} entries, the payoff holds {recorded}"
        scored = float(state.payoff.scores.sum())
        if abs(scored - games) > SCORE_ROUNDING * max(games, 1):
            yield f"the scores of both sides of {games} games sum to {scored:g}, not to their number"


def _bad_snapshots(folder: RunFolder, state: LeagueState, checked: list[str]) -> Iterator[str]:
    store = LocalSnapshotStore(folder.snapshots_path)
    present = set(store.digests())
    missing = [info.snapshot_id for info in state.snapshots.values() if info.digest not in present]
    for name in missing:
        if state.is_present(name):
            yield f"snapshot {name} is in the journal and not in the store"
    yield from (str(error) for error in store.problems())
    checked.append(f"{counted(len(state.snapshots) - len(missing), 'snapshot')}: sha256 of weights and manifest")
    checked.extend(
        f"snapshot {name} is set aside, as the journal says: {reason}" for name, reason in quarantined(state).items()
    )


def _bad_checkpoints(folder: RunFolder, state: LeagueState, checked: list[str]) -> Iterator[str]:
    store = CheckpointStore(folder.checkpoints_path)
    named = {name: player.checkpoint for name, player in state.players.items() if player.checkpoint is not None}
    for name, pointer in named.items():
        if not store.path(name, pointer.digest).exists():
            yield f"the checkpoint of {name} that the journal names is gone"
    yield from (str(error) for error in store.problems())
    checked.append(f"{counted(len(named), 'checkpoint')}: sha256")
