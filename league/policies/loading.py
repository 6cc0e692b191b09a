"""Loads trained policies from a run folder, a snapshot's folder or a package, every byte verified on the way."""

from __future__ import annotations

import copy
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.nets.network_parts import UnknownPartError
from league.agents.restart_state import RestartStateError, ema_in, weights_in
from league.agents.weights import Layout, Weights, WeightsError, from_named, layout_of
from league.config.game_kind import kind_of_game
from league.config.player_settings import own_settings, prefix_of
from league.config.run_config import EvaluationConfig, RunConfig
from league.core.state.records import GameKind, SnapshotInfo
from league.core.state.state import LeagueState
from league.envs.guard.settings import working_folder
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import spec_of
from league.envs.seat_plan import SeatPlan
from league.errors import CorruptSnapshot, LeagueError, MissingRun, MissingSnapshot
from league.policies.auto_export import EMA, ExactExports
from league.policies.exact_file import read_exact
from league.policies.frozen import FrozenCopy, FrozenFolder, SingleFolder
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.package import is_frozen_folder, read_frozen_folder
from league.policies.policy_store import env_of, fits, network_of, network_plain, snapshot_manifest, spec_hash
from league.policies.select import Selection, choose
from league.policies.trust import names_of_manifest, read_config, require_trusted
from league.stages import begin_stage
from league.store.checkpoints import CheckpointStore
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, SnapshotStore, sha256_hex
from league.store.weights_file import encode_arrays, stored_arrays

DIFFERS = "seats, observations, actions or the mask differ"
MANY = 8
"""Policies whose loading may take seconds."""


class PolicyMismatch(LeagueError):  # noqa: N818
    """A snapshot or restart state is whole, but no policy for the game that it is to play."""


@dataclass(frozen=True)
class OpenRun:
    """The contents of an open run folder.

    Fields:
      path: of the folder.
      env: its game. spec: the game's facts.
      kind: of the game.
      network: of its policies; own_networks: prefix of a group's ids -> that of its players, where it is their own.
      state: the league.
      store: its snapshots. checkpoints: restart states of its learners.
      config: as it is written there; None for a folder of frozen policies.
      exact: exact values of its exports as they are now; None where none were computed.
      evaluation: its settings of evaluations; the defaults for a folder of frozen policies.
    """

    path: Path
    env: EnvConfig
    spec: EnvSpec
    kind: GameKind
    network: NetworkConfig
    state: LeagueState
    store: SnapshotStore
    checkpoints: CheckpointStore
    config: RunConfig | None = None
    exact: ExactExports | None = None
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    own_networks: Mapping[str, NetworkConfig] = field(default_factory=dict)

    def network_of(self, player: str) -> NetworkConfig:
        """The network of a player that learns."""
        return self.own_networks.get(prefix_of(player), self.network)

    def choose(self, player: str) -> Selection:
        """The policy that a name stands for. Raises UnknownPolicy."""
        return choose(self.state, player, exact=self.exact)

    def weights_of(self, snapshot: SnapshotInfo) -> tuple[bytes, SnapshotManifest]:
        """Weights and manifest of a snapshot. Raises MissingSnapshot, CorruptSnapshot."""
        try:
            return self.store.get(snapshot.digest)
        except MissingSnapshot as error:
            number = self.state.population.index[snapshot.snapshot_id]
            reason = self.state.population.absent.get(number, str(error).rstrip("."))
            raise MissingSnapshot(
                f"The weights of {snapshot.snapshot_id} cannot be had: {reason}. A backup may have them; "
                f"`league gc {self.path} --dry-run` lists the snapshots that have theirs."
            ) from error


def open_run(path: Path, *, env: EnvConfig | None = None) -> OpenRun:
    """Read a run: its configuration, and its journal up to the last durable event.

    Args:
      env: the caller's own game in place of the run's.
    Raises:
      Untrusted: it names code that may not be loaded here.
      MissingRun, ConfigError, JournalError: see there. EnvError: its game cannot be made here.
    """
    if not path.exists():
        raise MissingRun(f"{path} does not exist: give a run folder (runs/NAME) or the folder of a snapshot.")
    run = RunFolder.open(path)
    config = read_config(run, env=env)
    game = config.env if env is None else SeatPlan.of(config.env).put_into(env)
    state = state_of_run(run)
    return OpenRun(
        path=run.path,
        env=game,
        spec=spec_of(replace(game, workers=0)),  # child processes do not give the env's own format
        kind=state.kind,
        network=config.network,
        state=state,
        store=LocalSnapshotStore(run.snapshots_path),
        checkpoints=CheckpointStore(run.checkpoints_path),
        config=config,
        exact=read_exact(run, state),
        evaluation=config.evaluation,
        own_networks={prefix: own.network for prefix, own in own_settings(config).items()},
    )


def load_from_run(run: OpenRun, player: str, *, greedy: bool = False, seed: int = 0) -> LoadedPolicy | LoadedMixture:
    """As `load_policy`, from an open run."""
    return load_selection(run, run.choose(player), greedy=greedy, seed=seed)


def load_selection(
    run: OpenRun, selection: Selection, *, greedy: bool = False, seed: int = 0
) -> LoadedPolicy | LoadedMixture:
    """The policy that chosen snapshots make up.

    Raises:
      CorruptSnapshot, MissingSnapshot, PolicyMismatch: one of them cannot be used.
    """
    if selection.checkpoint is not None:
        return _load_checkpoint(run, selection, greedy=greedy, seed=seed)
    members, blanks = [], dict[bytes, Network]()
    if len(selection.members) >= MANY:
        begin_stage(f"loading {len(selection.members)} policies of {run.path}")
    for weight, snapshot in selection.members:
        weights, manifest = run.weights_of(snapshot)
        policy = build_policy(
            snapshot.snapshot_id, weights, manifest, run.spec, greedy=greedy, seed=seed, source=run.path, blanks=blanks
        )
        members.append((weight, policy))
    return LoadedMixture(selection.name, members, seed=seed) if selection.is_drawn else members[0][1]


def frozen_copies(run: OpenRun, selection: Selection) -> tuple[FrozenCopy, ...]:
    """The selected policies as snapshots on disk, one each.

    Raises:
      CorruptSnapshot, MissingSnapshot: one of them cannot be used.
    """
    if selection.checkpoint is not None:
        return (_copy_of_checkpoint(run, selection),)
    copies = []
    for weight, snapshot in selection.members:
        weights, manifest = run.weights_of(snapshot)
        copies.append(FrozenCopy(snapshot.snapshot_id, weight, weights, manifest))
    return tuple(copies)


def find_source(source: str, *, folder: Path) -> Path | None:
    """The absolute path of a source that a configuration names, from the current folder or else from `folder`."""
    starts = (working_folder(), folder.absolute())
    return next((path for start in starts if (path := start / Path(source).expanduser()).exists()), None)


def copies_at(source: Path, player: str) -> tuple[FrozenCopy, ...]:
    """The snapshots that `player` names in a run folder, or those of a snapshot's folder or a package.

    Raises:
      LeagueError: no such run or player, or a file of it cannot be used. EnvError: its game cannot be made.
    """
    if is_frozen_folder(source):
        frozen = read_frozen_folder(source)
        frozen.require(player)
        return frozen.copies
    run = open_run(source)
    return frozen_copies(run, run.choose(player))


def _copy_of_checkpoint(run: OpenRun, selection: Selection) -> FrozenCopy:
    player, pointer = selection.player, selection.checkpoint
    assert pointer is not None
    weights = _checkpoint_weights(run, selection, layout_of(build_network(run.spec, run.network_of(player), seed=0)))
    payload = encode_arrays(weights.named())
    known = run.state.players[player]
    manifest = SnapshotManifest(
        digest=sha256_hex(payload),
        player=player,
        role=known.role,
        parent=known.parent,
        version=pointer.version,
        trained_steps=pointer.trained_steps,
        env_id=run.env.id,
        env_spec_hash=spec_hash(run.spec),
        env=dict(run.env.kwargs),
        network=network_plain(run.network_of(player)),
        seat_plan=SeatPlan.of(run.env).plain(),
        kind=run.kind,
    )
    return FrozenCopy(player, 1.0, payload, manifest)


def _load_checkpoint(run: OpenRun, selection: Selection, *, greedy: bool, seed: int) -> LoadedPolicy:
    """A learning player as it was last saved."""
    network = build_network(run.spec, run.network_of(selection.player), seed=0)
    weights = _checkpoint_weights(run, selection, layout_of(network))
    name = f"{selection.player} ({EMA})" if selection.is_ema else selection.player
    return LoadedPolicy(name, network, weights, run.spec, greedy=greedy, seed=seed)


def _checkpoint_weights(run: OpenRun, selection: Selection, layout: Layout) -> Weights:
    player, pointer = selection.player, selection.checkpoint
    assert pointer is not None
    _require_game_of_snapshots(run, player)
    payload, path = run.checkpoints.get(player, pointer.digest), run.checkpoints.path(player, pointer.digest)
    try:
        arrays = stored_arrays(payload, source=path)
        vector = ema_in(arrays) if selection.is_ema else weights_in(arrays)
        if vector is None:
            raise CorruptSnapshot(path, "it holds no moving average, although the journal says so")
        return Weights(vector, layout, pointer.version)
    except RestartStateError as error:
        raise CorruptSnapshot(path, str(error)) from error


def _require_game_of_snapshots(run: OpenRun, player: str) -> None:
    """Refuse a game that the run's snapshots do not fit: a restart state does not say what it was trained on.

    Raises:
      PolicyMismatch: it is another game.
    """
    manifest = snapshot_manifest(run.state, run.store)
    if manifest is not None and not fits(manifest, run.spec):
        raise _mismatch(player, manifest, run.spec, run.path, DIFFERS)


def build_policy(
    name: str,
    weights_file: bytes,
    manifest: SnapshotManifest,
    spec: EnvSpec,
    *,
    greedy: bool = False,
    seed: int = 0,
    source: Path,
    blanks: MutableMapping[bytes, Network] | None = None,
) -> LoadedPolicy:
    """A policy from a snapshot's bytes.

    Args:
      weights_file: safetensors, float32 by parameter name.
      source: where they lie, for messages.
      blanks: networks of this game without weights, for policies that are loaded together.
    Raises:
      CorruptSnapshot: the bytes are no weights.
      PolicyMismatch: they do not fit the game, or need a network part that is not there.
    """
    if manifest.is_of_own_trainer:
        raise PolicyMismatch(
            f"{name} in {source} is a file of the program that trained it, which League cannot read: tournaments and "
            "matches play it where its `league.League` has a loader."
        )
    named = stored_arrays(weights_file, source=source)
    try:
        network = _blank_network(spec, manifest, {} if blanks is None else blanks)
        weights = from_named(named, layout_of(network), version=manifest.version)
    except (msgspec.ValidationError, UnknownPartError, WeightsError) as error:
        raise _mismatch(name, manifest, spec, source, str(error)) from error
    if not fits(manifest, spec):
        raise _mismatch(name, manifest, spec, source, DIFFERS)
    return LoadedPolicy(name, network, weights, spec, greedy=greedy, seed=seed)


def _blank_network(spec: EnvSpec, manifest: SnapshotManifest, blanks: MutableMapping[bytes, Network]) -> Network:
    """The network of a snapshot with any weights. To draw orthogonal ones takes far longer than to copy them."""
    key = msgspec.json.encode(manifest.network)
    if key not in blanks:
        blanks[key] = build_network(spec, network_of(manifest), seed=0)
    return copy.deepcopy(blanks[key])


def _mismatch(name: str, manifest: SnapshotManifest, spec: EnvSpec, source: Path, reason: str) -> PolicyMismatch:
    return PolicyMismatch(
        f"{name} in {source} was trained on {manifest.env_id} and does not fit {spec.env_id} here:"
        f" {reason}. Give the game that it was trained on as env=EnvConfig(id, kwargs)."
    )


def open_frozen(folder: Path, *, env: EnvConfig | None = None) -> tuple[OpenRun, FrozenFolder]:
    """The folder of a snapshot or a package as a run whose league has no players, with the policies in it.

    env: the game to make instead of the one that the folder names.
    Raises:
      CorruptSnapshot: a file is missing or not what was written. EnvError: the game cannot be made here.
      Untrusted: it names code that may not be loaded here.
    """
    frozen = read_frozen_folder(folder)
    manifest = frozen.copies[0].manifest
    if env is None:
        require_trusted(names_of_manifest(manifest), what=str(folder))
    game = env_of(manifest) if env is None else SeatPlan.of(env_of(manifest)).put_into(env)
    spec = spec_of(replace(game, workers=0))
    run = OpenRun(
        path=folder,
        env=game,
        spec=spec,
        kind=manifest.kind or kind_of_game(replace(game, workers=0), spec),
        network=network_of(manifest),
        state=LeagueState(),
        store=SingleFolder(folder),
        checkpoints=CheckpointStore(folder),
    )
    return run, frozen


def load_frozen(
    frozen: FrozenFolder, spec: EnvSpec, *, greedy: bool = False, seed: int = 0
) -> LoadedPolicy | LoadedMixture:
    """The policy that a folder of frozen policies makes up.

    Raises:
      PolicyMismatch: it does not fit the game. CorruptSnapshot: its weights are no arrays.
    """
    return load_copies(
        frozen.name, frozen.copies, spec, is_drawn=frozen.is_drawn, greedy=greedy, seed=seed, source=frozen.path
    )


def load_copies(
    name: str,
    copies: Sequence[FrozenCopy],
    spec: EnvSpec,
    *,
    is_drawn: bool,
    greedy: bool = False,
    seed: int = 0,
    source: Path,
) -> LoadedPolicy | LoadedMixture:
    """The policy that frozen copies make up.

    Args:
      name: of a mixture, and of the only copy; several keep their own names.
      is_drawn: whether it is a mixture, of which one is drawn for each game.
      source: where they lie, for messages.
    Raises:
      PolicyMismatch: one does not fit the game. CorruptSnapshot: its weights are no arrays.
    """
    members, blanks = [], dict[bytes, Network]()
    if len(copies) >= MANY:
        begin_stage(f"loading {len(copies)} policies of {source}")
    for each in copies:
        own_name = each.name if len(copies) > 1 else name
        policy = build_policy(
            own_name, each.weights, each.manifest, spec, greedy=greedy, seed=seed, source=source, blanks=blanks
        )
        members.append((each.weight, policy))
    return LoadedMixture(name, members, seed=seed) if is_drawn else members[0][1]
