"""Frozen policies from other runs: found, checked against this run's game, and copied into the run's own store.

All of it happens before the first lease, after which the run no longer needs the folders that they came from.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.nets.config import NetworkConfig
from envs.protocol import EnvConfig, EnvSpec
from league.config.run_config import LeagueConfig
from league.core.state.commands import AddOutsider
from league.core.state.population_config import GuestSettings
from league.core.state.records import OUTSIDE_PREFIX
from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, LeagueError, MissingRun, MissingSnapshot
from league.policies.loading import FrozenCopy, PolicyMismatch, build_policy, copies_at, find_source
from league.policies.policy_store import fits, network_of
from league.policies.trust import trust_folder
from league.store.journaled_league import Book
from league.store.snapshots import SnapshotStore


@dataclass(frozen=True)
class Outsider:
    """A frozen policy that is to join. guest: its place in the league, one policy alone; copy: what is stored of it."""

    guest: GuestSettings
    copy: FrozenCopy


def find_outsiders(config: LeagueConfig, spec: EnvSpec, *, folder: Path) -> tuple[LeagueConfig, tuple[Outsider, ...]]:
    """The outsiders that a new run is to have.

    Args:
      spec: of the run's game.
      folder: of the configuration's file, where sources are looked for that are not found from the current folder.
    Returns:
      The configuration as it is noted in the run, with absolute sources, the very snapshots that "best" and the like
      stood for, and every member of a mixture by itself; and the outsiders.
    Raises:
      LeagueError: a source is missing, damaged, or of another game, or the name of a mixture's member is another
        guest's; one sentence. EnvError: its game cannot be made.
    """
    guests: list[GuestSettings] = []
    found: list[Outsider] = []
    for guest in config.league.guests:
        joining = _outsiders_of(guest, spec, folder=folder) if _is_outside(guest) else ()
        guests.extend([outsider.guest for outsider in joining] if _is_outside(guest) else [guest])
        found.extend(joining)
    if not found:
        return config, ()
    try:
        league = dataclasses.replace(config.league, guests=tuple(guests))
    except ValueError as error:
        raise LeagueError(f"The members of a mixture cannot join: {error}.") from error
    return dataclasses.replace(config, league=league), tuple(found)


def absent_outsiders(config: LeagueConfig, state: LeagueState, spec: EnvSpec) -> tuple[Outsider, ...]:
    """Those that a run should have and has not, because it ended before they were added. Raises as above."""
    absent = [guest for guest in config.league.guests if _is_outside(guest) and not _is_there(guest, state)]
    return tuple(outsider for guest in absent for outsider in _outsiders_of(guest, spec, folder=Path.cwd()))


def trust_sources(config: LeagueConfig, *, folder: Path) -> None:
    """Trust the folders that guests and the teacher come from, see `league.policies.trust`."""
    for source in (config.teacher.source, *(guest.source for guest in config.league.guests)):
        path = find_source(source, folder=folder) if source else None
        if path is not None:
            trust_folder(path)


def admit(outsiders: Sequence[Outsider], *, book: Book, store: SnapshotStore) -> None:
    """Store the outsiders and note down that they joined, durable with the next commit of the book."""
    for outsider in outsiders:
        digest = store.put(outsider.copy.weights, outsider.copy.manifest)
        book.execute(AddOutsider(outsider.guest.policy, digest, outsider.copy.manifest.version))


def remarks(outsiders: Sequence[Outsider], env: EnvConfig) -> list[str]:
    """One sentence for each outsider whose own game is called or set otherwise than the run's, alike as they look."""
    return [
        f"{outsider.guest.policy} was trained on {_game(outsider.copy.manifest.env_id, outsider.copy.manifest.env)} and"
        f" plays {_game(env.id, env.kwargs)} here, which has the same observations and actions."
        for outsider in outsiders
        if (outsider.copy.manifest.env_id, outsider.copy.manifest.env) != (env.id, dict(env.kwargs))
    ]


def guest_networks(state: LeagueState, store: SnapshotStore) -> dict[str, NetworkConfig]:
    """Policy id -> network of every outsider of a league but those that cannot be read: the league sets them aside."""
    networks = {}
    for name, info in state.snapshots.items():
        if name.startswith(OUTSIDE_PREFIX):
            with contextlib.suppress(CorruptSnapshot, MissingSnapshot):
                networks[name] = network_of(store.get(info.digest)[1])
    return networks


def _outsiders_of(guest: GuestSettings, spec: EnvSpec, *, folder: Path) -> tuple[Outsider, ...]:
    source = _source_of(guest, folder)
    copies = copies_at(source, guest.player)
    for copy in copies:
        _require_same_game(guest, copy, source, spec)
        build_policy(copy.name, copy.weights, copy.manifest, spec, source=source)
    names = [guest.policy] if len(copies) == 1 else [f"{guest.policy}-{number}" for number in range(len(copies))]
    return tuple(
        Outsider(
            dataclasses.replace(
                guest, policy=name, share=guest.share * copy.weight, source=str(source), player=copy.name
            ),
            copy,
        )
        for name, copy in zip(names, copies, strict=True)
    )


def _source_of(guest: GuestSettings, folder: Path) -> Path:
    """The absolute path of a guest's source."""
    path = find_source(guest.source, folder=folder)
    if path is not None and path.is_dir():
        return path
    if path is not None:
        raise LeagueError(
            f"The source of {guest.policy}, {path}, is a file: give a run folder, or the folder of one snapshot"
            " (weights.safetensors with its manifest.json); nothing else is read."
        )
    raise MissingRun(
        f"The source of {guest.policy}, {guest.source!r}, does not exist here or beside the configuration: give a run"
        " folder (runs/NAME) or the folder of a snapshot."
    )


def _require_same_game(guest: GuestSettings, copy: FrozenCopy, source: Path, spec: EnvSpec) -> None:
    if not fits(copy.manifest, spec):
        raise PolicyMismatch(
            f"{guest.policy} ({copy.name} in {source}) was trained on {copy.manifest.env_id} and cannot play"
            f" {spec.env_id}: seats, observations, actions or the mask differ. Choose a run of the same game."
        )


def _game(env_id: str, kwargs: Mapping[str, object]) -> str:
    return env_id + (f" with {dict(kwargs)}" if kwargs else "")


def _is_outside(guest: GuestSettings) -> bool:
    return guest.policy.startswith(OUTSIDE_PREFIX)


def _is_there(guest: GuestSettings, state: LeagueState) -> bool:
    return guest.policy in state.population.index
