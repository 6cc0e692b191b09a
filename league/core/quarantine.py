"""Snapshots without readable weights: they are no longer opponents, and open directives find another source."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from league.core.directives import start_again_from
from league.core.retention import RETIRED
from league.core.state.commands import QuarantineSnapshot, Refused, RestoreSnapshot
from league.core.state.events import (
    DirectiveDropped,
    DirectiveIssued,
    Event,
    SnapshotQuarantined,
    SnapshotRestored,
)
from league.core.state.records import Directive, DirectiveKind
from league.core.state.state import LeagueState

WEIGHTS_GONE = "cannot be had"
"""End of the reason for which a reset from a snapshot that is set aside is dropped."""


def quarantine_snapshot(state: LeagueState, command: QuarantineSnapshot, rng: np.random.Generator) -> list[Event]:
    """Set a snapshot aside; resets that were to start from it get another source.

    Leases that name it stay open: their hosts may hold its weights already.

    Raises:
      Refused: there is no such snapshot, or it is set aside already.
    """
    name = command.snapshot
    if name not in state.snapshots:
        raise Refused(f"no snapshot {name!r} in the league")
    if not state.is_present(name):
        raise Refused(f"snapshot {name} is set aside already")
    return [SnapshotQuarantined(name, command.reason), *_replaced_resets(state, name)]


def restore_snapshot(state: LeagueState, command: RestoreSnapshot, rng: np.random.Generator) -> list[Event]:
    """Take a snapshot back into the league.

    Raises:
      Refused: it is not set aside.
    """
    if command.snapshot not in state.snapshots or state.is_present(command.snapshot):
        raise Refused(f"snapshot {command.snapshot!r} is not set aside")
    return [SnapshotRestored(command.snapshot)]


def apply_quarantined(state: LeagueState, event: SnapshotQuarantined) -> None:
    """The snapshot is no longer an opponent."""
    state.population.set_aside(state.population.index[event.snapshot], reason=event.reason)


def apply_restored(state: LeagueState, event: SnapshotRestored) -> None:
    """The snapshot can be met again."""
    state.population.take_back(state.population.index[event.snapshot])


def quarantined(state: LeagueState) -> dict[str, str]:
    """Snapshot -> why its weights cannot be read, of every one that is set aside and was not retired on purpose."""
    population = state.population
    return {
        population.names[number]: reason
        for number, reason in population.absent.items()
        if not reason.startswith(RETIRED) and population.names[number] in state.snapshots
    }


def restart_sources(state: LeagueState, player: str) -> Iterator[str]:
    """Snapshots whose weights a player without a restart state can continue from, the best choice first.

    The one that it descends from, then that one's ancestors from the nearest on, then the player's own from the newest
    on. Those that are set aside are left out.
    """
    seen: dict[str, None] = {}
    name = state.players[player].parent
    while name is not None and name not in seen:
        seen[name] = None
        name = state.snapshots[name].parent if name in state.snapshots else None
    own = (name for name, snapshot in reversed(state.snapshots.items()) if snapshot.player == player)
    for name in dict.fromkeys((*seen, *own)):
        if state.is_present(name):
            yield name


def _replaced_resets(state: LeagueState, snapshot: str) -> list[Event]:
    """Resets from the snapshot are dropped, and issued again from what `start_again_from` finds without it."""
    events: list[Event] = []
    directive_id = state.next_directive_id
    for order in state.directives.values():
        if order.kind != DirectiveKind.RESET or order.source != snapshot:
            continue
        source = start_again_from(state, state.players[order.player], without=snapshot)
        events.append(DirectiveDropped(order.directive_id, f"the weights of {snapshot} {WEIGHTS_GONE}"))
        if source is not None:
            reason = f"{order.reason}; from {source}, as the weights of {snapshot} {WEIGHTS_GONE}"
            events.append(
                DirectiveIssued(Directive(directive_id, DirectiveKind.RESET, order.player, reason, source=source))
            )
            directive_id += 1
    return events
