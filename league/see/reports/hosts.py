"""The hosts of a live run: their processes, whether they work, and for whom."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from league.core.marks import WORKING
from league.core.state.state import LeagueState
from league.json_report import JsonReport
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder, RunStatus
from league.text_table import TextTable

LOST = "lost"
"""Of a host that the runtime has parked, as it was lost again and again."""


@dataclass(frozen=True)
class HostRow:
    """One host.

    Fields:
      state: "working", "parked", "drained", or "lost" where the runtime starts it again only now and then.
      pid: 0 where it has no process now. lease: number of the one in hand, 0 for none; player: whom that trains.
    """

    name: str
    kind: str
    state: str
    pid: int = 0
    lease: int = 0
    player: str = ""
    device: str = ""


@dataclass(frozen=True)
class HostsReport(JsonReport):
    """Every host of a run; none where it is not live."""

    run: str
    rows: tuple[HostRow, ...]

    def text(self) -> str:
        if not self.rows:
            return f"{self.run}: no host, as the run is not live"
        rows = [
            (row.name, row.kind, row.state, row.pid or "-", row.lease or "-", row.player or row.device)
            for row in self.rows
        ]
        return TextTable(("host", "kind", "state", "pid", "lease", "for"), rows, left=(0, 1, 2, 5)).text()


def read_hosts(path: Path) -> HostsReport:
    """The hosts of a run as of its last heartbeat.

    Raises:
      MissingRun, JournalError, StorageError.
    """
    folder = RunFolder.open(path)
    account = folder.account()
    return HostsReport(str(path), host_rows(state_of_run(folder), account.status) if account.live else ())


def host_rows(state: LeagueState, status: RunStatus) -> tuple[HostRow, ...]:
    """The hosts of a live run, by its league and its heartbeat."""
    leases = {lease.host: lease for lease in state.leases.values()}
    rows = []
    for worker in status.workers:
        lease = leases.get(worker.name)
        held = state.hosts.get(worker.name, WORKING)
        number, player = (0, "") if lease is None else (lease.lease_id, lease.home or "rating")
        rows.append(HostRow(worker.name, worker.kind, held, worker.pid, number, player, worker.device))
    there = {row.name for row in rows}
    rows += [HostRow(name, "actor_host", LOST) for name in status.parked if name not in there]
    return tuple(row for row in rows if row.name)
