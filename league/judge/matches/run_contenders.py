"""Contenders of an evaluation: policies of the run, of a snapshot folder, and of other runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from league.config.contender_names import split_source
from league.core.state.state import LeagueState
from league.policies.auto_export import EXPORTS
from league.policies.exact.exports import ExportSearch, copies_to_play, open_to_play
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.loading import (
    OpenRun,
    load_copies,
    load_frozen,
    load_selection,
    open_frozen,
)
from league.policies.package import is_frozen_folder
from league.policies.select import UnknownPolicy


@dataclass(frozen=True)
class RunContender:
    """One of those who play.

    Fields:
      members: (weight, snapshot) of what stands for it, one for a single policy. reason: one sentence on why these.
      equals: other names that were asked for and stand for the same weights.
    """

    name: str
    policy: LoadedPolicy | LoadedMixture
    members: tuple[tuple[float, str], ...]
    reason: str
    equals: tuple[str, ...] = ()

    @property
    def weights(self) -> tuple[tuple[float, str], ...]:
        """(weight, sha256 of the weights) of its members, sorted: equal for equal policies."""
        return tuple(sorted((round(weight, 9), policy.digest) for weight, policy in self.policy.members))


def open_contenders(
    path: Path, players: Sequence[str], *, seed: int, search: ExportSearch | None = None
) -> tuple[OpenRun, tuple[RunContender, ...]]:
    """The run at `path`, or the snapshot as a run of its own, and those who play.

    Args:
      players: names as in `load_policy`, and FOLDER:NAME for one of another run or snapshot.
      search: for the least exploitable export of the run.
    Raises:
      LeagueError: a folder or a name stands for nothing, or a file cannot be used. EnvError: the game cannot be made.
    """
    if not players:
        raise UnknownPolicy(f"no policy was named to play: give auto, {', '.join(EXPORTS)}, a player or a snapshot.")
    frozen, single = None, None
    if is_frozen_folder(path):
        run, frozen = open_frozen(path)
        members = tuple((copy.weight, copy.manifest.digest[:8]) for copy in frozen.copies)
        single = RunContender(
            frozen.name, load_frozen(frozen, run.spec, seed=seed), members, "all that its folder holds"
        )
    else:
        run = open_to_play(path, players, search=search)
    contenders: dict[str, RunContender] = {}
    for asked in players:
        if _is_elsewhere(asked, run.state):
            contenders[asked] = _from_elsewhere(asked, run, seed=seed)
        elif frozen is not None and single is not None:  # whatever it is called, it is one policy
            frozen.require(asked)
            contenders[single.name] = single
        else:
            found = run.choose(asked)
            members = tuple((weight, snapshot.snapshot_id) for weight, snapshot in found.members)
            loaded = load_selection(run, found, seed=seed)
            contenders[asked] = RunContender(asked, loaded, members, found.reason)
    return run, _merged(tuple(contenders.values()))


def _merged(contenders: Sequence[RunContender]) -> tuple[RunContender, ...]:
    """Each policy once, under the first name that was asked for: it has no score against itself."""
    found: dict[tuple[tuple[float, str], ...], RunContender] = {}
    for one in contenders:
        first = found.setdefault(one.weights, one)
        if first is not one:
            found[one.weights] = replace(first, equals=(*first.equals, one.name))
    return tuple(found.values())


def _is_elsewhere(name: str, state: LeagueState) -> bool:
    folder, player = split_source(name)
    return bool(player) and name not in state.snapshots and (folder.exists() or os.sep in str(folder))


def _from_elsewhere(name: str, run: OpenRun, *, seed: int) -> RunContender:
    folder, player = split_source(name)
    copies = copies_to_play(folder, player)
    is_drawn = len(copies) > 1
    loaded = load_copies(
        name if is_drawn else copies[0].name, copies, run.spec, is_drawn=is_drawn, seed=seed, source=folder
    )
    return RunContender(name, loaded, tuple((copy.weight, copy.name) for copy in copies), f"{player} of {folder}")
