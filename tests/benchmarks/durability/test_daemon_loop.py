"""The benchmark of the daemon's loop: a small load is carried, and its figures are those of the run."""

from __future__ import annotations

import cProfile
from pathlib import Path

import pytest

from benchmarks.durability.daemon_loop import PARTS, carry, shares_of


def test_a_small_load_is_carried_with_its_losses(tmp_path: Path) -> None:
    found = carry(tmp_path / "run", hosts=5, lease_s=0.05, seconds=1.0, seed=0)
    assert 10.0 < found.leases <= 5 / 0.05 * 2
    assert len(found.delays) == pytest.approx(found.leases * 0.6, rel=0.5)
    assert 0.0 <= found.delay(0.5) <= found.delay(0.99)
    assert 0.0 < found.cpu_share <= 1.5
    assert found.shares == {}


def test_the_shares_of_a_profile_are_the_whole() -> None:
    profile = cProfile.Profile()
    profile.runcall(sorted, list(range(1000)), key=lambda number: -number)
    shares = shares_of(profile)
    assert set(shares) == {*PARTS, "everything else"}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["everything else"] == pytest.approx(1.0)
