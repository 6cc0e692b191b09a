"""Weights and restart states in and out of a run's stores: exact, verified, and every fallback is told."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import Weights
from league.config.run_config import RunConfig
from league.core.league import apply
from league.core.state.events import SnapshotAdded
from league.core.state.records import Hyperparameter, SnapshotInfo
from league.core.state.state import CheckpointPointer, LeagueState, PlayerState
from league.envs.protocol import ActionSpec, ArraySpec, EnvConfig, EnvSpec
from league.envs.registry import make
from league.errors import CorruptSnapshot, LeagueError, MissingSnapshot
from league.hosts.protocol import InstallPlayer
from league.policies import policy_store as policies_module
from league.policies.policy_store import PolicyStore, spec_hash
from league.run.effects import FrozenWeights
from league.store.checkpoints import CheckpointStore
from league.store.snapshots import LocalSnapshotStore
from tests.agents.learner.learner_cases import weights_in
from tests.league.run.fake_runtime import Bench

CONFIG = RunConfig(env=EnvConfig("tic_tac_toe"), network=NetworkConfig(hidden=(8,)))


class Stores:
    """A policy store in a folder, and what it warned of."""

    def __init__(self, folder: Path) -> None:
        self.snapshots = LocalSnapshotStore(folder / "snapshots")
        self.checkpoints = CheckpointStore(folder / "checkpoints")
        self.warned: list[str] = []
        self.policies = PolicyStore(
            CONFIG, snapshots=self.snapshots, checkpoints=self.checkpoints, warn=self.warned.append
        )

    def add(self, weights: Weights, player: PlayerState, *, number: int = 0) -> SnapshotInfo:
        digest = self.policies.put_snapshot(player, weights, trained_steps=70)
        return SnapshotInfo(f"main-0-s{number}", digest, "main-0", "main_agent", None, weights.version, 70, "gate")


def weights_of(seed: int, *, version: int = 4) -> Weights:
    spec = make(CONFIG.env, num_envs=1).spec
    return weights_in(build_network(spec, CONFIG.network, seed=seed), version=version)


@pytest.fixture
def state(tmp_path: Path) -> LeagueState:
    """A league with its players, none of which has anything yet."""
    return Bench(tmp_path / "run").league.state


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)


def test_a_snapshot_is_read_as_it_was_stored(tmp_path: Path, state: LeagueState) -> None:
    stores, weights = Stores(tmp_path), weights_of(1)
    info = stores.add(weights, state.players["main-0"])
    read = Stores(tmp_path).policies.snapshot(info)
    assert np.array_equal(read.vector, weights.vector)
    assert (read.layout, read.version) == (weights.layout, 4)
    assert read.digest() == weights.digest()
    _, manifest = stores.snapshots.get(info.digest)
    assert (manifest.player, manifest.role, manifest.version) == ("main-0", "main_agent", 4)
    assert (manifest.env_id, manifest.trained_steps) == ("tic_tac_toe", 70)
    assert manifest.hyperparameters["entropy_cost"] == CONFIG.learner.entropy_cost


def test_equal_weights_are_stored_once(tmp_path: Path, state: LeagueState) -> None:
    stores = Stores(tmp_path)
    infos = [stores.add(weights_of(1), state.players["main-0"], number=number) for number in range(2)]
    assert infos[0].digest == infos[1].digest
    assert list(stores.snapshots.digests()) == [infos[0].digest]


def test_a_corrupt_or_missing_snapshot_is_never_handed_out(tmp_path: Path, state: LeagueState) -> None:
    stores = Stores(tmp_path)
    info = stores.add(weights_of(1), state.players["main-0"])
    flip(stores.snapshots.folder(info.digest) / "weights.safetensors")
    with pytest.raises(CorruptSnapshot):
        stores.policies.snapshot(info)
    with pytest.raises(MissingSnapshot):
        stores.policies.snapshot(replace(info, digest="f" * 64))


def test_weights_of_another_network_or_not_finite_are_refused_by_name(tmp_path: Path, state: LeagueState) -> None:
    stores = Stores(tmp_path)
    wide = build_network(make(CONFIG.env, num_envs=1).spec, NetworkConfig(hidden=(9,)), seed=0)
    other = weights_in(wide)
    broken = replace(weights_of(1), vector=np.full_like(weights_of(1).vector, np.nan))
    for number, weights in enumerate((other, broken)):
        info = stores.add(weights, state.players["main-0"], number=number)
        with pytest.raises(LeagueError, match=f"snapshot main-0-s{number} cannot be used with this network"):
            stores.policies.snapshot(info)


@pytest.mark.parametrize(("bound", "value"), [("MAX_HELD", 2), ("MAX_HELD_BYTES", 3 * weights_of(0).vector.nbytes - 1)])
def test_only_so_many_snapshots_are_held_the_oldest_goes_first(
    tmp_path: Path, state: LeagueState, monkeypatch: pytest.MonkeyPatch, bound: str, value: int
) -> None:
    monkeypatch.setattr(policies_module, bound, value)
    stores = Stores(tmp_path)
    infos = [stores.add(weights_of(seed), state.players["main-0"], number=seed) for seed in range(3)]
    first, second = (stores.policies.snapshot(info) for info in infos[:2])
    assert stores.policies.snapshot(infos[0]) is first
    stores.policies.snapshot(infos[2])
    assert stores.policies.snapshot(infos[0]) is first
    again = stores.policies.snapshot(infos[1])
    assert again is not second
    assert np.array_equal(again.vector, second.vector)
    monkeypatch.setattr(policies_module, bound, 1)
    newest = stores.policies.snapshot(infos[2])
    assert stores.policies.snapshot(infos[2]) is newest


def test_a_checkpoint_is_read_as_it_was_stored(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    saved = {"values": np.arange(5, dtype=np.float32), "counters": np.array([3, 4]), "scales": np.array([0.5])}
    digest = stores.policies.put_checkpoint("main-0", saved)
    read = stores.policies.get_checkpoint("main-0", digest)
    assert read.keys() == saved.keys()
    for name, array in saved.items():
        assert read[name].dtype == array.dtype
        assert np.array_equal(read[name], array)
    with pytest.raises(MissingSnapshot):
        stores.policies.get_checkpoint("main-0", "0" * 64)


def started_from(stores: Stores, path: Path, *, info: SnapshotInfo | None, checkpoint: str | None) -> InstallPlayer:
    """What main-0 starts from in a league in which it has this snapshot and this checkpoint."""
    league = Bench(path).league
    player = league.state.players["main-0"]
    if info is not None:
        apply(league.state, SnapshotAdded(next(iter(league.state.directives)), info))
    player.checkpoint = None if checkpoint is None else CheckpointPointer(checkpoint, 9, 90)
    return FrozenWeights(stores.policies, league=league, ask=lambda command: True).installation("main-0")


def test_a_learner_starts_from_its_checkpoint_else_its_snapshot_else_fresh_weights(
    tmp_path: Path, state: LeagueState
) -> None:
    stores = Stores(tmp_path)
    anew = started_from(stores, tmp_path / "0", info=None, checkpoint=None)
    assert (anew.saved, anew.weights) == (None, None)
    info = stores.add(weights_of(2), state.players["main-0"])
    from_snapshot = started_from(stores, tmp_path / "1", info=info, checkpoint=None)
    assert from_snapshot.saved is None
    assert from_snapshot.weights is not None
    assert from_snapshot.weights.digest() == weights_of(2).digest()
    assert from_snapshot.trained_steps == info.trained_steps
    digest = stores.policies.put_checkpoint("main-0", {"counters": np.array([9])})
    from_checkpoint = started_from(stores, tmp_path / "2", info=info, checkpoint=digest)
    assert from_checkpoint.saved is not None
    assert from_checkpoint.saved["counters"].tolist() == [9]
    assert from_checkpoint.weights is None
    assert stores.warned == []


@pytest.mark.parametrize("harm", [flip, Path.unlink])
def test_a_bad_checkpoint_falls_back_to_the_snapshot_and_says_so(tmp_path: Path, state: LeagueState, harm) -> None:  # type: ignore[no-untyped-def]
    stores = Stores(tmp_path)
    digest = stores.policies.put_checkpoint("main-0", {"counters": np.array([9])})
    harm(stores.checkpoints.path("main-0", digest))
    with pytest.raises(MissingSnapshot, match=f"{digest}.*nothing is left of main-0"):
        started_from(stores, tmp_path / "1", info=None, checkpoint=digest)
    info = stores.add(weights_of(2), state.players["main-0"])
    fallen = started_from(stores, tmp_path / "2", info=info, checkpoint=digest)
    assert fallen.saved is None
    assert fallen.weights is not None
    assert len(stores.warned) == 1
    assert digest in stores.warned[0]
    assert "starts from its snapshot main-0-s0 instead" in stores.warned[0]


def test_a_file_that_is_no_checkpoint_is_corrupt_although_its_digest_holds(tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    digest = stores.checkpoints.put("main-0", b"not safetensors")
    with pytest.raises(CorruptSnapshot):
        stores.policies.get_checkpoint("main-0", digest)
    assert safetensors.numpy.save({}) is not None


def test_the_hash_of_a_spec_covers_what_a_network_must_fit_and_not_the_id() -> None:
    spec = EnvSpec("a", 2, {"x": ArraySpec((3,), "float32")}, ActionSpec("categorical", 4), (0, 1), has_mask=True)
    assert spec_hash(replace(spec, env_id="b", max_turns=9)) == spec_hash(spec)
    for other in (
        replace(spec, has_mask=False),
        replace(spec, num_seats=3),
        replace(spec, actions=ActionSpec("categorical", 5)),
        replace(spec, observations={"x": ArraySpec((3,), "bool")}),
        replace(spec, observations={"y": ArraySpec((3,), "float32")}),
    ):
        assert spec_hash(other) != spec_hash(spec)


def test_the_hash_of_a_spec_is_over_json_with_sorted_keys_and_not_over_what_python_prints() -> None:
    spec = EnvSpec(
        "a",
        2,
        {"y": ArraySpec((), "bool"), "x": ArraySpec((3, 4), "float32")},
        ActionSpec("box", shape=(2,), low=-2.5),
        (0, 1),
        has_mask=False,
    )
    canonical = (
        '{"actions":{"kind":"box","low":-2.5,"shape":[2]},"has_mask":false,"num_seats":2,'
        '"observations":{"x":[[3,4],"float32"],"y":[[],"bool"]}}'
    )
    assert spec_hash(spec) == hashlib.sha256(canonical.encode()).hexdigest()


def test_numbers_of_numpy_in_a_spec_have_the_hash_of_plain_ones() -> None:
    spec = EnvSpec("a", 2, {"x": ArraySpec((3,), "float32")}, ActionSpec("box", shape=(2,), low=-2.0), (0, 1), False)
    of_numpy = replace(
        spec,
        num_seats=np.int64(2),
        observations={"x": ArraySpec((np.int64(3),), "float32")},
        actions=ActionSpec("box", shape=(np.int32(2),), low=np.float32(-2.0), high=np.float64(1.0)),
        has_mask=np.bool_(False),
    )
    assert spec_hash(of_numpy) == spec_hash(spec)


def test_a_manifest_of_the_first_schema_version_still_fits_its_game(tmp_path: Path, state: LeagueState) -> None:
    stores = Stores(tmp_path)
    info = stores.add(weights_of(1), state.players["main-0"])
    manifest = stores.snapshots.get(info.digest)[1]
    spec = make(CONFIG.env, num_envs=1).spec
    facts = (
        spec.num_seats,
        sorted((name, array.shape, array.dtype) for name, array in spec.observations.items()),
        dataclasses.astuple(spec.actions),
        spec.has_mask,
    )
    first = replace(manifest, schema_version=1, env_spec_hash=hashlib.sha256(repr(facts).encode()).hexdigest())
    other = replace(spec, num_seats=3)
    assert policies_module.fits(manifest, spec)
    assert policies_module.fits(first, spec)
    assert not policies_module.fits(manifest, other)
    assert not policies_module.fits(first, other)


def test_a_manifest_holds_the_hyperparameters_of_its_player_and_not_the_configured_ones(
    tmp_path: Path, state: LeagueState
) -> None:
    stores, player = Stores(tmp_path), state.players["main-0"]
    player.hyperparameters = (Hyperparameter("learning_rate", 0.5), Hyperparameter("pfsp_exponent", 3.0))
    info = stores.add(weights_of(1), player)
    manifest = stores.snapshots.get(info.digest)[1]
    assert manifest.hyperparameters["learning_rate"] == pytest.approx(0.5 * CONFIG.learner.learning_rate)
    assert manifest.hyperparameters["learning_rate_end"] == pytest.approx(0.5 * CONFIG.learner.learning_rate_end)
    assert manifest.hyperparameters["entropy_cost"] == CONFIG.learner.entropy_cost
    assert manifest.tuned == {"learning_rate": 0.5, "pfsp_exponent": 3.0}
