"""Tests of one group run in one process: else each process makes what they share, a Ray or a Chromium, for itself."""

from __future__ import annotations

import os

import pytest


@pytest.mark.skipif("PYTEST_XDIST_WORKER" not in os.environ, reason="one process runs all tests")
@pytest.mark.xdist_group("groups")
def test_the_scheduler_sees_groups(request: pytest.FixtureRequest) -> None:
    """It knows a group by the end of the test's id, which not every version of pytest lets a plug-in write."""
    assert request.node.nodeid.endswith("@groups"), "groups have no effect: install the versions of constraints.txt"
