"""Frozen policies of an untrained network, as they lie in the folders of snapshots."""

from __future__ import annotations

from pathlib import Path

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.policies.frozen import FrozenCopy
from league.policies.policy_store import network_plain, spec_hash
from league.store.snapshots import SnapshotManifest, sha256_hex, write_snapshot_files
from league.store.storage import Storage
from league.store.weights_file import encode_arrays
from tests.agents.learner.learner_cases import weights_in

NETWORK = NetworkConfig(hidden=(6,))


def frozen_copy(seed: int, env_id: str = "tic_tac_toe") -> FrozenCopy:
    """A policy of a game; equal seeds have equal weights."""
    spec = spec_of(EnvConfig(env_id))
    weights = encode_arrays(weights_in(build_network(spec, NETWORK, seed=seed), version=seed).named())
    manifest = SnapshotManifest(
        digest=sha256_hex(weights),
        player="main-0",
        role="main_agent",
        parent=None,
        version=seed,
        trained_steps=10 * seed,
        env_id=env_id,
        env_spec_hash=spec_hash(spec),
        network=network_plain(NETWORK),
    )
    return FrozenCopy(f"main-0-s{seed}", 1.0, weights, manifest)


def snapshot_folder(path: Path, seed: int, env_id: str = "tic_tac_toe") -> Path:
    """The folder of one snapshot."""
    path.mkdir(parents=True)
    copy = frozen_copy(seed, env_id)
    write_snapshot_files(Storage(), path, copy.weights, copy.manifest)
    return path
