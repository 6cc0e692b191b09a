"""Frozen policies from other runs: found, checked against this run's game, and copied into the run's own store.

All of it happens before the first lease, after which the run no longer needs the folders that they came from.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.config.player_settings import own_settings, settings_of
from league.config.run_config import RunConfig
from league.core.state.commands import ImportPolicy
from league.core.state.league_config import PlayerConfig
from league.core.state.population_config import FixedOpponentConfig
from league.core.state.records import IMPORTED_PREFIX
from league.core.state.state import LeagueState
from league.envs.guard.settings import working_folder
from league.envs.protocol import EnvConfig, EnvSpec
from league.envs.registry import spec_of
from league.errors import CorruptSnapshot, LeagueError, MissingRun, MissingSnapshot
from league.policies.frozen import FrozenCopy
from league.policies.loading import PolicyMismatch, build_policy, copies_at, find_source
from league.policies.policy_store import fits, network_of
from league.policies.trust import trust_places
from league.store.journaled_league import JournaledLeague
from league.store.snapshots import SnapshotStore


@dataclass(frozen=True)
class ImportedPolicy:
    """A frozen policy that is to join. fixed_opponent: its entry in the league, one policy alone; copy: what is stored
    of it."""

    opponent: FixedOpponentConfig
    copy: FrozenCopy


def find_imported(config: RunConfig, spec: EnvSpec, *, folder: Path) -> tuple[RunConfig, tuple[ImportedPolicy, ...]]:
    """The imported policies that a new run is to have.

    Args:
      spec: of the run's game.
      folder: of the configuration's file, where sources are looked for that are not found from the current folder.
    Returns:
      The configuration as it is noted in the run, and the imported policies. In it sources are absolute, "best" and the
      like are the snapshots that they stood for, and members of a mixture stand one by one.
    Raises:
      LeagueError: a source is missing, damaged, or of another game, or the name of a mixture's member is another
        fixed opponent's; one sentence. EnvError: its game cannot be made.
    """
    fixed_opponents: list[FixedOpponentConfig] = []
    found: list[ImportedPolicy] = []
    likeliest: dict[str, ImportedPolicy] = {}
    for opponent in config.league.fixed_opponents:
        joining = _imported_of(opponent, spec, folder=folder) if _is_imported(opponent) else ()
        fixed_opponents.extend([policy.opponent for policy in joining] if _is_imported(opponent) else [opponent])
        found.extend(joining)
        if joining:
            likeliest[opponent.policy] = max(joining, key=lambda policy: policy.copy.weight)
    if not found:
        return config, ()
    try:
        players = tuple(_starting(group, config, likeliest) for group in config.league.players)
        league = dataclasses.replace(config.league, fixed_opponents=tuple(fixed_opponents), players=players)
    except ValueError as error:
        raise LeagueError(f"The members of a mixture cannot join: {error}.") from error
    return dataclasses.replace(config, league=league), tuple(found)


def _starting(group: PlayerConfig, config: RunConfig, likeliest: Mapping[str, ImportedPolicy]) -> PlayerConfig:
    """The group, whose players start from the likeliest member where they are to start from a mixture.

    Args:
      likeliest: of each imported fixed opponent.
    Raises:
      LeagueError: that has another network than the group.
    """
    if not group.starts_from:
        return group
    source = likeliest[group.starts_from]
    if network_of(source.copy.manifest) != settings_of(config, group.player_id(0)).network:
        raise LeagueError(
            f"The players of {group.prefix} cannot start from {group.starts_from}: it has another network. Give the run"
            f" the network of {source.copy.manifest.env_id} in {source.opponent.source}, or leave starts_from out."
        )
    return dataclasses.replace(group, starts_from=source.opponent.policy)


def absent_imported(config: RunConfig, state: LeagueState, spec: EnvSpec) -> tuple[ImportedPolicy, ...]:
    """Those that a run should have and has not, because it ended before they were added. Raises as above."""
    absent = [
        opponent
        for opponent in config.league.fixed_opponents
        if _is_imported(opponent) and not _is_there(opponent, state)
    ]
    return tuple(policy for opponent in absent for policy in _imported_of(opponent, spec, folder=working_folder()))


FromOutside = Callable[[RunConfig, FixedOpponentConfig], tuple[ImportedPolicy, ...]]


def policies_from_outside(config: RunConfig, opponent: FixedOpponentConfig) -> tuple[ImportedPolicy, ...]:
    """The policies that a fixed opponent of a running league stands for. Raises as `find_imported`."""
    if not Path(opponent.source).is_absolute():
        raise LeagueError(f"source {opponent.source!r} must be an absolute path: the daemon works in another folder.")
    return _imported_of(opponent, spec_of(config.env), folder=Path(opponent.source))


def fits_running_hosts(config: RunConfig, joining: Sequence[ImportedPolicy]) -> str:
    """The rule by which hosts that are running cannot play a policy; empty where they can.

    Their games hold room for the core states of the networks that they were built with.
    """
    spec = spec_of(config.env)
    networks = (config.network, *(own.network for own in own_settings(config).values()))
    room = max(build_network(spec, network, seed=0).core_size for network in networks)
    for policy in joining:
        needed = build_network(spec, network_of(policy.copy.manifest), seed=0).core_size
        if needed > room:
            return (
                f"{policy.opponent.policy} has a core state of {needed} numbers, for which the hosts of this run hold "
                f"{room}; `league train` a new run with it in league.fixed_opponents"
            )
    return ""


def trust_sources(config: RunConfig, *, folder: Path) -> None:
    """Trust the folders that fixed opponents and the teacher come from, see `league.policies.trust`."""
    written = (config.teacher.source, *(opponent.source for opponent in config.league.fixed_opponents))
    trust_places(path for source in written if source and (path := find_source(source, folder=folder)) is not None)


def admit(imported: Sequence[ImportedPolicy], *, league: JournaledLeague, store: SnapshotStore) -> None:
    """Store the imported policies and note down that they joined, durable with the league's next commit."""
    for policy in imported:
        digest = store.put(policy.copy.weights, policy.copy.manifest)
        league.execute(ImportPolicy(policy.opponent.policy, digest, policy.copy.manifest.version))


def remarks(imported: Sequence[ImportedPolicy], env: EnvConfig) -> list[str]:
    """One sentence for each imported policy whose own game is called or set otherwise than the run's, alike as they
    look."""
    return [
        f"{policy.opponent.policy} was trained on {_game(policy.copy.manifest.env_id, policy.copy.manifest.env)} and"
        f" plays {_game(env.id, env.kwargs)} here, which has the same observations and actions."
        for policy in imported
        if (policy.copy.manifest.env_id, policy.copy.manifest.env) != (env.id, dict(env.kwargs))
    ]


def imported_networks(state: LeagueState, store: SnapshotStore) -> dict[str, NetworkConfig]:
    """Policy id -> network of every imported policy of a league but those that cannot be read: the league sets them
    aside."""
    networks = {}
    for name, info in state.snapshots.items():
        if name.startswith(IMPORTED_PREFIX):
            with contextlib.suppress(CorruptSnapshot, MissingSnapshot):
                networks[name] = network_of(store.get(info.digest)[1])
    return networks


def _imported_of(opponent: FixedOpponentConfig, spec: EnvSpec, *, folder: Path) -> tuple[ImportedPolicy, ...]:
    source = _source_of(opponent, folder)
    copies = copies_at(source, opponent.player)
    for copy in copies:
        _require_same_game(opponent, copy, source, spec)
        build_policy(copy.name, copy.weights, copy.manifest, spec, source=source)
    names = [opponent.policy] if len(copies) == 1 else [f"{opponent.policy}-{number}" for number in range(len(copies))]
    return tuple(
        ImportedPolicy(
            dataclasses.replace(
                opponent,
                policy=name,
                probability=opponent.probability * copy.weight,
                source=str(source),
                player=copy.name,
            ),
            copy,
        )
        for name, copy in zip(names, copies, strict=True)
    )


def _source_of(opponent: FixedOpponentConfig, folder: Path) -> Path:
    """The absolute path of a fixed opponent's source."""
    path = find_source(opponent.source, folder=folder)
    if path is not None and path.is_dir():
        return path
    if path is not None:
        raise LeagueError(
            f"The source of {opponent.policy}, {path}, is a file: give a run folder, or the folder of one snapshot"
            " (weights.safetensors with its manifest.json); nothing else is read."
        )
    raise MissingRun(
        f"The source of {opponent.policy}, {opponent.source!r}, does not exist here or beside the configuration: give "
        "a run folder (runs/NAME) or the folder of a snapshot."
    )


def _require_same_game(opponent: FixedOpponentConfig, copy: FrozenCopy, source: Path, spec: EnvSpec) -> None:
    if not fits(copy.manifest, spec):
        raise PolicyMismatch(
            f"{opponent.policy} ({copy.name} in {source}) was trained on {copy.manifest.env_id} and cannot play"
            f" {spec.env_id}: seats, observations, actions or the mask differ. Choose a run of the same game."
        )


def _game(env_id: str, kwargs: Mapping[str, object]) -> str:
    return env_id + (f" with {dict(kwargs)}" if kwargs else "")


def _is_imported(opponent: FixedOpponentConfig) -> bool:
    return opponent.policy.startswith(IMPORTED_PREFIX)


def _is_there(opponent: FixedOpponentConfig, state: LeagueState) -> bool:
    return opponent.policy in state.population.index
