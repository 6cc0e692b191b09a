"""A small run of Connect Four that several files play with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.league.judge.matches.eval_runs import FOUR, MadeRun, constant_network


@pytest.fixture
def four_run(tmp_path: Path) -> MadeRun:
    """A run whose main-0-s0 plays column 1, main-exploiter-0-s0 column 2, main-0-s1 column 3."""
    made = MadeRun(tmp_path / "run", env=FOUR)
    made.snapshot("main-0", constant_network(made.config, action=1))
    made.snapshot("main-exploiter-0", constant_network(made.config, action=2))
    made.snapshot("main-0", constant_network(made.config, action=3), version=5)
    return made
