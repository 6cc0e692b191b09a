"""Policies on disk: snapshots as safetensors with a manifest, learners' restart states as checked arrays."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec
import numpy as np

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.weights import Layout, Weights, WeightsError, from_named, layout_of
from league.config.game_kind import kind_of_run
from league.config.player_settings import own_settings, prefix_of, settings_of
from league.config.run_config import RunConfig
from league.core.retention import most_snapshots
from league.core.state.records import SnapshotInfo
from league.core.state.state import LeagueState, PlayerState
from league.envs.protocol import ActionSpec, ArraySpec, EnvConfig, EnvSpec
from league.envs.registry import spec_of
from league.envs.seat_plan import SeatPlan
from league.errors import CorruptSnapshot, LeagueError, MissingSnapshot
from league.hosts.learners.hyperparameters import tuned
from league.hosts.protocol import Arrays
from league.policies.trust import names_of_manifest, require_trusted
from league.store.checkpoints import CheckpointStore
from league.store.snapshots import CANONICAL_SPEC_HASH, SnapshotManifest, SnapshotStore
from league.store.weights_file import ArraysError, decode_arrays, encode_arrays, stored_arrays

MANIFEST_BYTES = 4_096
"""About what a manifest and the header of the weights take."""

MAX_HELD, MAX_HELD_BYTES = 64, 512 << 20
"""Snapshots whose weights are kept in memory, and their size; the one used last is kept whatever its size."""


class PolicyStore:
    """Weights in and out of a run's stores.

    Args:
      config: of the run.
      snapshots, checkpoints: its stores.
      warn: called with one sentence where something had to be fallen back on.
    """

    def __init__(
        self,
        config: RunConfig,
        *,
        snapshots: SnapshotStore,
        checkpoints: CheckpointStore,
        warn: Callable[[str], None],
    ) -> None:
        self._config = config
        self._snapshots = snapshots
        self._checkpoints = checkpoints
        self.warn = warn
        self._spec = spec_of(config.env)
        self._spec_hash = spec_hash(self._spec)
        self._kind = kind_of_run(config, self._spec)
        self._layouts: dict[bytes, Layout] = {}
        self._own_networks = {prefix: own.network for prefix, own in own_settings(config).items()}
        self._held: OrderedDict[str, Weights] = OrderedDict()
        self._networks: dict[str, NetworkConfig] = {}

    def use(self, config: RunConfig) -> None:
        """Take over a changed configuration of the same game and network."""
        self._config = config

    def snapshot(self, info: SnapshotInfo) -> Weights:
        """The weights of a snapshot, verified when they were read.

        Raises:
          MissingSnapshot, CorruptSnapshot.
        """
        if info.digest not in self._held:
            payload, manifest = self._snapshots.get(info.digest)
            try:
                layout = self._layout_of(self._network_of_player(info.player) if info.player else network_of(manifest))
                weights = from_named(decode_arrays(payload), layout, version=info.version)
            except (ArraysError, WeightsError) as error:
                raise LeagueError(f"snapshot {info.snapshot_id} cannot be used with this network: {error}.") from error
            self._hold(info.digest, weights)
        self._held.move_to_end(info.digest)
        return self._held[info.digest]

    def _hold(self, digest: str, weights: Weights) -> None:
        """Keep weights, and let go of those that were not used for longest where they are too many or too large."""
        self._held[digest] = weights
        num_bytes = sum(held.vector.nbytes for held in self._held.values())
        while len(self._held) > MAX_HELD or (len(self._held) > 1 and num_bytes > MAX_HELD_BYTES):
            _, gone = self._held.popitem(last=False)
            num_bytes -= gone.vector.nbytes

    def let_go(self, info: SnapshotInfo) -> None:
        """Read the weights again where they are asked for again."""
        self._held.pop(info.digest, None)

    def network_of(self, info: SnapshotInfo) -> NetworkConfig:
        """The network of a policy from outside, whose weights were read before. Raises as `snapshot`."""
        if info.digest not in self._networks:
            self._networks[info.digest] = network_of(self._snapshots.get(info.digest)[1])
        return self._networks[info.digest]

    def _network_of_player(self, player: str) -> NetworkConfig:
        return self._own_networks.get(prefix_of(player), self._config.network)

    def _layout_of(self, network: NetworkConfig) -> Layout:
        key = msgspec.json.encode(network)
        if key not in self._layouts:
            self._layouts[key] = layout_of(build_network(self._spec, network, seed=0))
        return self._layouts[key]

    def put_snapshot(self, player: PlayerState, weights: Weights, *, trained_steps: int) -> str:
        """Store weights durably; returns their digest."""
        payload = encode_arrays(weights.named())
        own = settings_of(self._config, player.name)
        manifest = SnapshotManifest(
            digest=hashlib.sha256(payload).hexdigest(),
            player=player.name,
            role=player.role,
            parent=player.parent,
            version=weights.version,
            trained_steps=trained_steps,
            env_id=self._config.env.id,
            env_spec_hash=self._spec_hash,
            env=dict(self._config.env.kwargs),
            network=network_plain(own.network),
            hyperparameters=dataclasses.asdict(tuned(own.learner, player.hyperparameters)),
            tuned={item.name: item.value for item in player.hyperparameters},
            seat_plan=SeatPlan.of(self._config.env).plain(),
            kind=self._kind,
        )
        return self._snapshots.put(payload, manifest)

    def drop_snapshot(self, snapshot: str, state: LeagueState) -> None:
        """Remove the weights of a snapshot that is retired, unless something else is of the very same weights.

        Raises:
          StorageError: they could not be removed.
        """
        digest = state.snapshots[snapshot].digest
        if digest == self._config.teacher.digest or any(
            info.digest == digest and state.is_present(name) for name, info in state.snapshots.items()
        ):
            return
        self._held.pop(digest, None)
        self._snapshots.remove(digest)

    @property
    def snapshot_bytes(self) -> int:
        """Size of the weights of one policy of the run, the largest where they differ."""
        networks = (self._config.network, *self._own_networks.values())
        return max(snapshot_bytes(self._layout_of(network)) for network in networks)

    @property
    def max_snapshots(self) -> int:
        """Snapshots that the league may hold so that their weights, with those retired last, keep within the limits."""
        retention = self._config.retention
        num_bytes = retention.snapshots_gib * 2**30
        return most_snapshots(retention.snapshots, num_bytes, snapshot_bytes=self.snapshot_bytes)

    def put_checkpoint(self, player: str, saved: Arrays) -> str:
        """Store a learner's restart state durably; returns its digest."""
        return self._checkpoints.put(player, encode_arrays(saved))

    def get_checkpoint(self, player: str, digest: str) -> Arrays:
        """A restart state.

        Raises:
          MissingSnapshot, CorruptSnapshot.
        """
        payload = self._checkpoints.get(player, digest)
        return stored_arrays(payload, source=self._checkpoints.path(player, digest))

    def prune_checkpoints(self, player: str, *, keep: tuple[str, ...]) -> None:
        """Remove all restart states of a player but those with the given digests."""
        self._checkpoints.prune(player, keep=keep)


def snapshot_bytes(layout: Layout) -> int:
    """Size of a snapshot of such weights on the disk, with its manifest."""
    return 4 * layout.size + MANIFEST_BYTES


def network_plain(network: NetworkConfig) -> dict[str, object]:
    """A network's settings as plain values, for a manifest."""
    plain: dict[str, object] = msgspec.to_builtins(network)
    return plain


def network_of(manifest: SnapshotManifest) -> NetworkConfig:
    """The settings of a snapshot's network.

    Raises:
      msgspec.ValidationError: the manifest holds none. Untrusted: it names code that may not be loaded here.
    """
    names = [found for found in names_of_manifest(manifest) if found.kind != "env"]
    require_trusted(names, what=f"The snapshot {manifest.digest[:12]} of {manifest.player or 'a file'}")
    return msgspec.convert(manifest.network, NetworkConfig)


def env_of(manifest: SnapshotManifest) -> EnvConfig:
    """The game that a snapshot was trained on, with the seats as they were planned.

    Raises:
      CorruptSnapshot: it describes no seats.
    """
    try:
        plan = msgspec.convert(manifest.seat_plan, SeatPlan)
    except msgspec.ValidationError as error:
        raise CorruptSnapshot(Path(manifest.digest), f"its manifest describes no seats ({error})") from error
    return plan.put_into(EnvConfig(manifest.env_id, dict(manifest.env)))


def spec_hash(spec: EnvSpec) -> str:
    """sha256 (hex) over what a network must fit: seats, observations, actions; not over the id.

    Over the facts as JSON with sorted keys, so that it is the same whichever versions of Python and numpy compute it.
    """
    facts = {
        "actions": _stated(spec.actions),
        "has_mask": spec.has_mask,
        "num_seats": spec.num_seats,
        "observations": _shapes(spec.observations),
    }
    if spec.seat_groups:
        facts["seat_groups"] = [
            [group.name, group.seats, _shapes(group.observations), _stated(group.actions)] for group in spec.seat_groups
        ]
    canonical = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=_plain_number)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _shapes(observations: Mapping[str, ArraySpec]) -> dict[str, list[object]]:
    return {name: [array.shape, array.dtype] for name, array in observations.items()}


def _stated(actions: ActionSpec) -> dict[str, object]:
    """The fields of an action spec that say something: one that is added some day changes no hash of today."""
    plain = dataclasses.asdict(dataclasses.replace(actions, low=float(actions.low), high=float(actions.high)))
    silent = {field.name: field.default for field in dataclasses.fields(actions)}
    return {name: value for name, value in plain.items() if value != silent[name]}


def fits(manifest: SnapshotManifest, spec: EnvSpec) -> bool:
    """True if the snapshot was trained on a game with the same seats, observations, actions and mask."""
    if manifest.schema_version < CANONICAL_SPEC_HASH:
        return manifest.env_spec_hash == _hash_of_text(spec)
    return manifest.env_spec_hash == spec_hash(spec)


def snapshot_manifest(state: LeagueState, store: SnapshotStore) -> SnapshotManifest | None:
    """The manifest of a league's oldest snapshot that is whole; None where none is."""
    for digest in dict.fromkeys(info.digest for info in state.snapshots.values()):
        with contextlib.suppress(MissingSnapshot, CorruptSnapshot):
            return store.get(digest)[1]
    return None


def is_game_of(state: LeagueState, store: SnapshotStore, spec: EnvSpec) -> bool:
    """True if a game has the teams of a league, and the form that its snapshots were trained on."""
    manifest = snapshot_manifest(state, store)
    return spec.teams == state.teams and (manifest is None or fits(manifest, spec))


def _hash_of_text(spec: EnvSpec) -> str:
    """As manifests of schema version 1 hold it: over the text that Python prints of the facts."""
    facts = (
        spec.num_seats,
        sorted((name, array.shape, array.dtype) for name, array in spec.observations.items()),
        dataclasses.astuple(spec.actions),
        spec.has_mask,
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def _plain_number(value: object) -> object:
    """A number of numpy, which JSON does not know, as Python's own.

    Raises:
      TypeError: it is none.
    """
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"a spec holds {value!r}, which is no plain value")
