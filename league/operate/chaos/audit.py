"""Checks that a journal still holds, exactly once, every lease that an outside reader saw in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.core.state.events import EVENTS, LeaseFinished
from league.core.state.state import LeagueState
from league.operate.chaos.follower import Noted
from league.operate.chaos.journal_model import JournalModel
from league.see.reports.verify import verify_run
from league.store.journal_reader import JournalReader
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder


@dataclass(frozen=True)
class Audit:
    """The last look at the journal.

    Fields:
      lost: noted leases that are missing or differ. doubled: leases that finished twice, finished after they had
        expired, or under a token that was not theirs, and every other rule that an event breaks. off: what the
        league's state says and its journal does not.
      leases, games: that finished.
    """

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    off: tuple[str, ...]
    leases: int
    games: int


def audit(noted: Sequence[Noted], events: Iterable[tuple[int, object]], *, state: LeagueState) -> Audit:
    """Hold what an outside reader has noted, and the league's state, against the whole journal.

    Args:
      noted: finished leases in the order in which they were seen.
      events: of the whole journal, with their numbers.
    """
    doubled, off = list[str](), list[str]()
    model = JournalModel(note=doubled.append)
    finished: dict[int, LeaseFinished] = {}
    for seq, event in events:
        model.advance([(seq, event)])
        if isinstance(event, LeaseFinished):
            finished[seq] = event
    lost = [
        f"event {item.seq} is no longer {item.event!r:.120}" for item in noted if finished.get(item.seq) != item.event
    ]
    last, seen = max((item.seq for item in noted), default=0), {item.seq for item in noted}
    doubled += [f"event {seq} came in behind the reader" for seq in finished if seq <= last and seq not in seen]
    model.note = off.append
    model.compare(state)
    return Audit(tuple(lost), tuple(doubled), tuple(off), leases=model.finished, games=model.games)


def audit_run(run: Path, noted: Sequence[Noted]) -> Audit:
    """`audit` of a run folder."""
    folder = RunFolder.open(run)
    state = state_of_run(folder)
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        return audit(noted, journal.replay(), state=state)


def verify(run: Path) -> list[str]:
    """Problems that `league verify` finds."""
    return list(verify_run(run).problems)
