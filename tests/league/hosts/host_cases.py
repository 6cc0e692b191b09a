"""Settings of tiny hosts, leases for them, and learners that answer from a table."""

from __future__ import annotations

import dataclasses

import numpy as np

from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.agents.weights import Weights
from league.core.state.records import Assignment, Lease
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.hosts.setup import HostSetup
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


def rows_of(rows: int, *, seed: int) -> Unrolls:
    """Unrolls of nobody's games."""
    spec = make(TIC_TAC_TOE, num_envs=1).spec
    return synthetic_unrolls(UnrollSpec(spec, 4), rows=rows, seed=seed)


def chunk_of(rows: int = 8, *, seed: int = 0, player: str = "main-0", version: int = 0) -> bytes:
    """Such unrolls under one version, as a chunk."""
    versions = np.full((rows, 4), version, np.int32)
    return encoded(dataclasses.replace(rows_of(rows, seed=seed), versions=versions), player)


def encoded(unrolls: Unrolls, player: str = "main-0") -> bytes:
    """A chunk of the run "tests"."""
    least, most = int(unrolls.versions.min()), int(unrolls.versions.max())
    return Lz4Codec().encode(unrolls, ChunkHeader(run="tests", player=player, version_min=least, version_max=most))
