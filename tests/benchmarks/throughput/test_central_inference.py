"""The benchmark of central inference: its arithmetic, on runs whose figures are given."""

from __future__ import annotations

import pytest

from benchmarks.report import Report
from benchmarks.throughput.central_inference import CASES, Measured, add_rows


def test_shares_are_of_the_local_run_of_the_same_round() -> None:
    """256 games: 0.5 of the rate means that 256 decisions took 256 times the cost of one decision longer."""
    report, case = Report(), CASES["MLP 128-128, 256 games"]
    local = [Measured(1_000_000, 10.0, 4_000, 0), Measured(2_000_000, 10.0, 8_000, 0)]
    central = {2: [Measured(500_000, 10.0, 2_000, 1_000), Measured(1_000_000, 10.0, 4_000, 2_000)]}
    add_rows(report, "case", case, local, central)
    found = {row.name: row.value for row in report.rows}
    assert found == {
        "case: local": 150_000.0,
        "case: central, 2 actors over local": 0.5,
        "case: central, 2 actors, rows of a batch": 500.0,
        "case: central, 2 actors, extra processor time of a request": pytest.approx((2560.0 + 1280.0) / 2),
    }
