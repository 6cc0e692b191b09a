"""Settings of tiny hosts, leases for them, and learners that answer from a table."""

from __future__ import annotations

from agents.learner.config import LearnerConfig
from agents.nets.config import NetworkConfig
from agents.nets.network import build_network
from agents.weights import Weights
from envs.protocol import EnvConfig
from envs.registry import make
from league.core.state.records import Assignment, Lease
from league.runtime.protocol import HostSetup
from tests.agents.learner.learner_cases import weights_in

TIC_TAC_TOE = EnvConfig("tic_tac_toe")


def setup_of(env: EnvConfig = TIC_TAC_TOE, *, chunk_rows: int = 8, num_envs: int = 6) -> HostSetup:
    """A host of tiny networks that learns from 8 unrolls of 4 decisions at a time."""
    return HostSetup(
        run="tests",
        env=env,
        network=NetworkConfig(hidden=(8,)),
        learner=LearnerConfig(unroll_length=4, batch_rows=8, precision="float32"),
        num_envs=num_envs,
        chunk_rows=chunk_rows,
        seed=3,
    )


def lease_of(
    *assignments: Assignment, lease_id: int = 1, home: str | None = "main-0", steps: int = 40, generation: int = 0
) -> Lease:
    """A lease for actor-0; without assignments the home player plays itself."""
    table = assignments or (Assignment(("main-0", "main-0"), (True, True), 1.0),)
    return Lease(lease_id, 7, "actor-0", home, table, steps, generation)


def paired(home: str, away: str, *, records: bool = True) -> tuple[Assignment, Assignment]:
    """Both ways to seat two policies."""
    return Assignment((home, away), (records, False), 0.5), Assignment((away, home), (False, records), 0.5)


def weights_of(setup: HostSetup, *, seed: int, version: int = 0) -> Weights:
    """Weights of a fresh network."""
    spec = make(setup.env, num_envs=1).spec
    return weights_in(build_network(spec, setup.network, seed=seed), version=version)
