"""Marks that stand in no configuration: tags and pins of snapshots, and hosts that are given no leases.

Each has a key like a setting has. `tags.NAME` is the snapshot of that name or null, `pins.SNAPSHOT` is true or false,
`hosts.NAME` is working, parked or drained.
"""

from __future__ import annotations

import re

from league.core.state.commands import Refused
from league.core.state.state import LeagueState

SECTIONS = ("tags", "pins", "hosts")

WORKING, PARKED, DRAINED = "working", "parked", "drained"
"""Of a host: it is given leases; it is given none; it is given none and its process ends."""

_TAG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_HOST = re.compile(r"[a-z0-9][a-z0-9_.-]{0,127}")


def is_mark(key: str) -> bool:
    """True for a key of this module."""
    section, dot, name = key.partition(".")
    return section in SECTIONS and bool(dot and name)


def mark_of(state: LeagueState, key: str) -> object:
    """The present value of a key.

    Raises:
      Refused: the league has no such snapshot, or the name can be none.
    """
    section, _, name = key.partition(".")
    if section == "pins":
        if name not in state.snapshots:
            raise Refused(f"no snapshot {name!r} in the league; the newest are {_newest(state)}")
        return name in state.pins
    if section == "hosts":
        if _HOST.fullmatch(name) is None:
            raise Refused(f"{name!r} can be no host: a name is of a-z, 0-9, -, _ and dots")
        return state.hosts.get(name, WORKING)
    if _TAG.fullmatch(name) is None:
        raise Refused(f"{name!r} can be no tag: it is 1 to 64 of a-z, 0-9, -, _ and dots, first a letter or a digit")
    return state.tags.get(name)


def check_mark(state: LeagueState, key: str, new: object) -> None:
    """Accept the value that a key is to have.

    Raises:
      Refused: it cannot have it; the sentence names the rule.
    """
    section, _, name = key.partition(".")
    if section == "pins":
        if not isinstance(new, bool):
            raise Refused(f"{key}: give true or false, not {new!r}")
        if new:
            _require_weights(state, name)
    elif section == "hosts":
        if new not in (WORKING, PARKED, DRAINED):
            raise Refused(f"{key}: give {WORKING}, {PARKED} or {DRAINED}, not {new!r}")
    elif new is not None:
        _check_tag(state, name, new)


def apply_mark(state: LeagueState, key: str, new: object) -> None:
    """The key has the value from here on."""
    section, _, name = key.partition(".")
    if section == "pins":
        others = tuple(pinned for pinned in state.pins if pinned != name)
        state.pins = (*others, name) if new else others
    elif section == "hosts":
        state.hosts.pop(name, None)
        if new != WORKING:
            state.hosts[name] = str(new)
    else:
        state.tags.pop(name, None)
        if new is not None:
            state.tags[name] = str(new)


def kept_for_users(state: LeagueState) -> set[str]:
    """Snapshots that somebody has tagged or pinned: their weights stay."""
    return {*state.tags.values(), *state.pins}


def _check_tag(state: LeagueState, tag: str, snapshot: object) -> None:
    if not isinstance(snapshot, str):
        raise Refused(f"tags.{tag}: give the name of a snapshot, or null, not {snapshot!r}")
    if tag in state.population.index:
        raise Refused(f"{tag} is a policy of the league; choose another tag")
    if tag in state.tags:
        raise Refused(f"{tag} is {state.tags[tag]} already; remove that tag first")
    _require_weights(state, snapshot)


def _require_weights(state: LeagueState, snapshot: str) -> None:
    if snapshot not in state.snapshots:
        raise Refused(f"no snapshot {snapshot!r} in the league; the newest are {_newest(state)}")
    if not state.is_present(snapshot):
        reason = state.population.absent[state.population.index[snapshot]]
        raise Refused(f"the weights of {snapshot} cannot be had: {reason}")


def _newest(state: LeagueState) -> str:
    return ", ".join(list(state.snapshots)[-5:]) or "none"
