"""Tags and pins of names that stand for no single snapshot: the refusal says what they stand for, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.envs.protocol import EnvConfig
from league.run.operations.catalogue import plan_of
from league.run.operations.plans import OperationRefused, PlanInputs
from tests.league.judge.matches.eval_runs import MadeRun, constant_network
from tests.league.tiny_runs import state_of


@pytest.mark.parametrize("name", ["best", "last"])
def test_a_name_that_stands_for_a_restart_state_needs_a_snapshot_first(tmp_path: Path, name: str) -> None:
    made = MadeRun(tmp_path / "run", env=EnvConfig("connect_four"))
    network = constant_network(made.config, action=1)
    made.snapshot("main-0", network)
    made.save("main-0", network, trained_steps=5_000)
    inputs = PlanInputs(state_of(made.close()), made.config, "me", "", lambda number: None)
    words = f"{name} stands for main-0 as it was last saved, at 5,000 steps.*take one with `league snapshot`"
    with pytest.raises(OperationRefused, match=words):
        plan_of("tag", {"snapshot": name, "name": "release-1"}, inputs)
