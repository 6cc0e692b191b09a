"""Equal seeds, equal histories: no cycle of the daemon, no clock and no thread decides what falls on a step."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.random_runs import random_configuration, run_record, slowed


@pytest.mark.parametrize("seed", range(6))
def test_equal_seeds_give_equal_histories_whatever_is_late(seed: int, tmp_path: Path) -> None:
    plain = random_configuration(seed, env_steps=500)
    with slowed(seed, sleep=lambda seconds: None):
        late = run_record(tmp_path, plain, run="late")
    assert late == run_record(tmp_path, plain, run="in-time")
