"""The correlations of learnt with exact gains, against scipy's, and the policies that are measured."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from benchmarks.report import Report
from benchmarks.strength import best_response
from benchmarks.strength.best_response import add_rows, correlation, policies_of, ranks

LEARNT, EXACT = np.array([0.1, 0.5, 0.3, 0.9, 0.2]), np.array([0.2, 0.6, 0.7, 1.0, 0.25])


def test_correlations_are_pearsons_and_spearmans() -> None:
    assert correlation(LEARNT, EXACT) == pytest.approx(stats.pearsonr(LEARNT, EXACT).statistic)
    assert correlation(ranks(LEARNT), ranks(EXACT)) == pytest.approx(stats.spearmanr(LEARNT, EXACT).statistic)


def test_a_learnt_gain_above_the_exact_one_is_named() -> None:
    report = Report()
    add_rows(report, "kuhn", LEARNT, EXACT, np.full(5, 0.05))
    assert not report.failed
    add_rows(report, "kuhn", EXACT + 0.3, EXACT, np.full(5, 0.05))
    assert report.failed


def test_policies_are_spread_snapshots_and_mixtures_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshots = [SimpleNamespace(snapshot_id=f"main-0-s{number}") for number in range(30)]
    monkeypatch.setattr(best_response, "main_snapshots", lambda run: snapshots)
    found = policies_of(None, 15)  # type: ignore[arg-type]
    assert len(found) == len(set(found)) == 15
    assert found[0] == "main-0-s0" and found[8] == "main-0-s29"
    assert all("*" in name and 2 <= name.count("main-0-s") <= 4 for name in found[9:])
