"""The fleet: hosts and their work, queues, throughput, failures, and the ends of the logs."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from league.core.state.events import DirectiveDropped, LeaseExpired, SnapshotQuarantined
from league.run.control.log_files import last_lines, log_names, log_path
from league.run.monitor import names
from league.see.page.runs.journal_fold import NotableEvent
from league.see.page.runs.metric_history import MetricSeries
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.hosts import HostRow, host_rows

MAX_FAILURES = 50
MAX_LEASES = 200
LOG_LINES = 60
CHARTS = (
    ("Env steps per second", names.STEPS_PER_S),
    ("Open leases", names.OPEN_LEASES),
    ("Hosts lost", names.HOSTS_LOST),
    ("Answers refused", names.REFUSED),
    ("Games thrown away", names.ABORTED),
    ("Disk free, bytes", names.DISK_FREE),
)


class FleetQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The choice of log: "daemon", "console" or a host's name; empty for none."""

    log: str = ""


class FleetChart(msgspec.Struct, frozen=True):
    """One metric over time."""

    title: str
    meaning: str
    series: MetricSeries


class LeaseRow(msgspec.Struct, frozen=True):
    """A lease in hand. home: the player it trains; "rating" of a rating match. steps: it is for; games: assignments."""

    lease_id: int
    host: str
    home: str
    steps: int
    assignments: int


class LostWork(msgspec.Struct, frozen=True):
    """Work that was lost or set aside. text: one sentence."""

    seq: int
    wall_time: float
    kind: str
    text: str


class FleetSection(msgspec.Struct, frozen=True):
    """The fleet.

    Fields:
      hosts: none where the run is not live. leases: in hand; num_leases: of them. directives: open ones.
      finished, expired: leases ever. refused, hosts_lost: since the daemon's start. failures: newest first.
      charts: of metrics that were ever above 0.
      logs: names of the log files. log: the one asked for; lines: its last ones.
    """

    is_live: bool
    hosts: tuple[HostRow, ...]
    leases: tuple[LeaseRow, ...]
    num_leases: int
    directives: int
    finished: int
    expired: int
    refused: int
    hosts_lost: int
    aborted: int
    steps_per_s: float
    charts: tuple[FleetChart, ...]
    failures: tuple[LostWork, ...]
    logs: tuple[str, ...]
    log: str
    lines: tuple[str, ...]


def read(run: OpenedRun, query: FleetQuery) -> FleetSection:
    """The fleet of a run.

    Raises:
      LeagueError: there is no such log.
    """
    state, account = run.state, run.account
    series = ((title, metric, run.metrics.series(metric.name)) for title, metric in CHARTS)
    leases = list(state.leases.values())
    return FleetSection(
        is_live=account.live,
        hosts=host_rows(state, account.status) if account.live else (),
        leases=tuple(
            LeaseRow(lease.lease_id, lease.host, lease.home or "rating", lease.steps, len(lease.assignments))
            for lease in leases[:MAX_LEASES]
        ),
        num_leases=len(leases),
        directives=len(state.directives),
        finished=state.totals.leases_finished,
        expired=state.totals.leases_expired,
        refused=account.status.refused,
        hosts_lost=account.status.hosts_lost,
        aborted=state.totals.aborted,
        steps_per_s=account.status.steps_per_s,
        charts=tuple(FleetChart(title, metric.meaning, found) for title, metric, found in series if any(found.values)),
        failures=tuple(_failures(run.notable)),
        logs=tuple(log_names(run.folder)),
        log=query.log,
        lines=tuple(last_lines(log_path(run.folder, query.log), LOG_LINES)) if query.log else (),
    )


def _failures(events: list[NotableEvent]) -> Iterator[LostWork]:
    left = MAX_FAILURES
    for noted in reversed(events):
        event = noted.event
        if isinstance(event, LeaseExpired):
            text = f"lease {event.lease_id} was lost: {event.reason}"
        elif isinstance(event, DirectiveDropped):
            text = f"directive {event.directive_id} was dropped: {event.reason}"
        elif isinstance(event, SnapshotQuarantined):
            text = f"{event.snapshot} was set aside: {event.reason}"
        else:
            continue
        yield LostWork(noted.seq, noted.wall_time, noted.kind, text)
        left -= 1
        if not left:
            return
