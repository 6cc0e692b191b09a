"""A daemon and a learner do not load what they have no use for: torch's compiler takes 75 MiB, scipy's solvers 36."""

from __future__ import annotations

import subprocess
import sys

UPDATE = """
import sys
import torch
import league.run.launch, league.run.daemon, league.run.operations.catalogue, league.hosts.on_ray.runtime
from league.agents.learner.build import build_learner
from league.agents.learner.step.optimizers import try_optimizer
from league.agents.nets.network import build_network
from tests.agents.learner.learner_cases import BOARD_GAME, MLP, small_config, unrolls_of

try_optimizer(small_config())
unrolls = unrolls_of(BOARD_GAME, build_network(BOARD_GAME, MLP, seed=1), rows=12, steps=5, seed=0)
learner = build_learner(BOARD_GAME, MLP, small_config(), seed=1, dtype=torch.float32)
assert not learner.update(unrolls, budget_fraction=0.0).skipped
learner.load(learner.save())
learner.update(unrolls, budget_fraction=0.0)
print(sorted({"torch._dynamo", "sympy", "scipy", "pandas", "wandb", "fastapi"} & set(sys.modules)))
"""


def test_neither_a_daemon_nor_an_update_loads_a_compiler_or_a_solver() -> None:
    command = [sys.executable, "-c", UPDATE]
    found = subprocess.run(command, capture_output=True, text=True, timeout=120.0, check=True)
    assert found.stdout.strip() == "[]"
