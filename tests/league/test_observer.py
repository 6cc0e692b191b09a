"""What a run shows of itself while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.inspection import read_status
from league.monitor.jsonl_sink import decode_row
from league.monitor.names import HOSTS_LOST, METRICS, REFUSED, TRUNCATED, metric_of
from tests.league.tiny_runs import start, state_of, tiny

SEATS_CUT_OFF = {"id": "probe_simultaneous", "kwargs": {"num_seats": 2, "truncate": True}}


def test_every_metric_is_reported_and_nothing_that_is_no_metric(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("METRICS_EVERY_S", "RATINGS_EVERY_S"):
        monkeypatch.setattr(f"league.observer.{name}", 0.0)
    start(tmp_path, tiny(env=SEATS_CUT_OFF), env_steps=1_500)
    rows = [decode_row(line) for line in (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()]
    reported = {name for row in rows if row is not None for name in row.values}
    assert {metric_of(name) for name in reported} == set(METRICS.values())
    last = rows[-1]
    assert last is not None
    totals = state_of(tmp_path / "run").totals
    assert 0 < last.values[TRUNCATED.name] <= totals.truncated == totals.games
    assert last.values[REFUSED.name] == last.values[HOSTS_LOST.name] == 0.0
    assert read_status(tmp_path / "run").truncated == totals.truncated
