"""Checks that a journal still holds, exactly once, every lease that an outside reader saw in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.core.state.events import EVENTS, LeaseExpired, LeaseFinished, LeaseGranted
from league.core.state.records import Lease
from league.core.state.state import Totals
from league.operate.chaos.follower import Noted
from league.see.reports.verify import verify_run
from league.store.journal_reader import JournalReader
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder


@dataclass(frozen=True)
class Audit:
    """The last look at the journal.

    Fields:
      lost: noted leases that are missing or differ. doubled: leases that finished twice, finished after they had
        expired, or under a token that was not theirs. off: totals of the league that are not the sum of its leases.
      leases, games: that finished.
    """

    lost: tuple[str, ...]
    doubled: tuple[str, ...]
    off: tuple[str, ...]
    leases: int
    games: int


def audit(noted: Sequence[Noted], events: Iterable[tuple[int, object]], *, totals: Totals) -> Audit:
    """Hold what an outside reader has noted, and the league's totals, against the whole journal.

    Args:
      noted: finished leases in the order in which they were seen.
      events: of the whole journal, with their numbers.
      totals: of the league's state.
    """
    leases: dict[int, Lease] = {}
    over: dict[int, str] = {}
    finished: dict[int, LeaseFinished] = {}
    doubled: list[str] = []
    for seq, event in events:
        if isinstance(event, LeaseGranted):
            leases[event.lease.lease_id] = event.lease
        elif isinstance(event, LeaseExpired):
            over[event.lease_id] = "expired"
        elif isinstance(event, LeaseFinished):
            finished[seq] = event
            lease = leases.get(event.lease_id)
            if lease is None or lease.token != event.token:
                doubled.append(f"event {seq}: lease {event.lease_id} was not granted under token {event.token}")
            if event.lease_id in over:
                doubled.append(f"event {seq}: lease {event.lease_id} had {over[event.lease_id]}")
            over[event.lease_id] = "finished"
    lost = [
        f"event {item.seq} is no longer {item.event!r:.120}" for item in noted if finished.get(item.seq) != item.event
    ]
    last, seen = max((item.seq for item in noted), default=0), {item.seq for item in noted}
    doubled += [f"event {seq} came in behind the reader" for seq in finished if seq <= last and seq not in seen]
    games = sum(outcome.games for event in finished.values() for outcome in event.outcomes)
    sums = {
        "games": (totals.games, games),
        "env_steps": (totals.env_steps, sum(event.env_steps for event in finished.values())),
        "leases_finished": (totals.leases_finished, len(finished)),
    }
    off = [
        f"{name}: the league says {said}, its leases {summed}"
        for name, (said, summed) in sums.items()
        if said != summed
    ]
    return Audit(tuple(lost), tuple(doubled), tuple(off), leases=len(finished), games=games)


def audit_run(run: Path, noted: Sequence[Noted]) -> Audit:
    """`audit` of a run folder."""
    folder = RunFolder.open(run)
    totals = state_of_run(folder).totals
    with JournalReader.open_readonly(folder.journal_path, events=EVENTS) as journal:
        return audit(noted, journal.replay(), totals=totals)


def verify(run: Path) -> list[str]:
    """Problems that `league verify` finds."""
    return list(verify_run(run).problems)
