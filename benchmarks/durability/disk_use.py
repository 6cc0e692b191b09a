"""Disk use of a run of 30 days: bytes of every unit that grows, without and with the limits.

    python -m benchmarks.durability.disk_use --json

A lease of a league of twelve players is granted and answered again and again; the sizes of its events are those of a
real run. The rates (leases, snapshots, rows of metrics) are those that were measured on runs of today. "Without" is
what the same run would take if nothing were thinned, compressed or removed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from benchmarks.report import Report
from benchmarks.throughput.league_scale import COMMIT_EVERY, created, outcomes_of, spread_games
from league.config.run_config import RetentionConfig
from league.core.retention import most_snapshots
from league.core.state.commands import FinishLease, RequestLease
from league.core.state.events import EVENTS, LeaseGranted
from league.run.monitor.jsonl_sink import JsonlSink, MetricRow
from league.run.monitor.names import METRICS
from league.run.monitor.row_spacing import ROWS_PER_E_FOLD
from league.store.journal_reader import JournalReader
from league.store.journal_segments import PLAIN_EVENTS, SEGMENT
from league.store.storage import Storage

PLAYERS = 12
DAYS = 30
DAY_S = 86_400.0
LEASES_PER_S = 1.5
SNAPSHOTS_PER_DAY = 281
WEIGHTS_BYTES = 4_200_000
METRICS_EVERY_S = 2.0
LEASES = 30_000
ROW_BYTES = 120
"""Bytes of an event in a row of its own beside its body: chain hash, number, time, index."""
GIB = 2.0**30


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="end with one JSON line")
    parser.add_argument("--leases", type=int, default=LEASES, help="leases whose events are measured")
    options = parser.parse_args()
    report = Report()
    limits = RetentionConfig()
    with tempfile.TemporaryDirectory() as folder:
        plain, packed = journal_bytes_per_event(Path(folder) / "journal.db", options.leases)
        row = metrics_row()
        measure_metrics(report, Path(folder) / "metrics.jsonl", row, limits)
    events = 2.0 * LEASES_PER_S * DAYS * DAY_S
    single = min(events, PLAIN_EVENTS)
    report.add("journal, bytes of an event", plain, "B")
    report.add("journal, bytes of an event in a segment", packed, "B")
    report.add("journal, 30 days without", events * plain / GIB, "GiB")
    report.add("journal, 30 days with", (single * plain + (events - single) * packed) / GIB, "GiB")
    report.add("a row of metrics", len(row), "B")
    rows = DAYS * DAY_S / METRICS_EVERY_S
    report.add("metrics and spool, 30 days without", 2.0 * rows * len(row) / GIB, "GiB")
    report.add("metrics and spool, 30 days with", (limits.metrics_mib + limits.spool_mib) / 1_024.0, "GiB")
    until = ROWS_PER_E_FOLD * METRICS_EVERY_S
    thinned = ROWS_PER_E_FOLD * (1.0 + float(np.log(DAYS * DAY_S / until)))
    report.add("wandb's own file, 30 days without", rows * len(row) / GIB, "GiB")
    report.add("wandb's own file, 30 days with", thinned * len(row) / GIB, "GiB")
    snapshots = DAYS * SNAPSHOTS_PER_DAY
    most = most_snapshots(limits.snapshots, limits.snapshots_gib * GIB, snapshot_bytes=WEIGHTS_BYTES)
    report.add("snapshots, 30 days without", snapshots * WEIGHTS_BYTES / GIB, "GiB")
    report.add("snapshots, 30 days with", min(snapshots, most) * WEIGHTS_BYTES / GIB, "GiB")
    report.print(sys.stdout, as_json=options.json)
    return 0


def journal_bytes_per_event(path: Path, leases: int) -> tuple[float, float]:
    """Bytes of an event as a row of its own and in a segment, pages and index included in the first."""
    rng = np.random.default_rng(0)
    league = created(path, PLAYERS)
    spread_games(league, rng, leases=1)
    for number in range(leases):
        granted, *_ = league.execute(RequestLease("actor-0"))
        assert isinstance(granted, LeaseGranted)
        lease = granted.lease
        outcomes = tuple(
            replace(outcome, decisions=int(rng.integers(2_000)), return_sums=tuple(rng.normal(0.0, 9.0, 2).tolist()))
            for outcome in outcomes_of(lease, rng)
        )
        league.execute(FinishLease(lease.lease_id, lease.token, int(rng.integers(900)), outcomes))
        if number % COMMIT_EVERY == 0:
            league.commit()
    league.close()
    with JournalReader.open_readonly(path, events=EVENTS) as journal:
        sizes = {SEGMENT: [0, 0], "": [0, 0]}
        last = 0
        for seq, kind, body, *_ in journal.rows("events", to_seq=journal.head().seq):
            assert isinstance(seq, int) and isinstance(body, bytes)
            counted = sizes[SEGMENT if kind == SEGMENT else ""]
            counted[0] += len(body) + ROW_BYTES
            counted[1] += seq - last
            last = seq
    return sizes[""][0] / sizes[""][1], sizes[SEGMENT][0] / sizes[SEGMENT][1]


def metrics_row() -> bytes:
    """A line of metrics.jsonl with every metric of twelve players."""
    players = [f"league-exploiter-{number}" for number in range(PLAYERS)]
    values = {metric.of(player): 1.0 / 3.0 for metric in METRICS.values() for player in players}
    return msgspec.json.encode(MetricRow(step=10**10, time=1.7e9, values=values)) + b"\n"


def measure_metrics(report: Report, path: Path, row: bytes, limits: RetentionConfig) -> None:
    """That the file keeps within its limit, at a hundredth of its size so that it is quick to see."""
    limit = round(limits.metrics_mib * 2**20 / 100.0)
    sink = JsonlSink(path, storage=Storage(), clock=lambda: 1.7e9, warn=print, max_bytes=limit)
    values = msgspec.json.decode(row, type=MetricRow).values
    for step in range(1_000):
        sink.log(step, values)
    report.add("metrics.jsonl after 1,000 rows, over its limit", path.stat().st_size / limit, "", at_most=1.0)


if __name__ == "__main__":
    sys.exit(main())
