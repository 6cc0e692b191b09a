"""The league as a pure state machine: `decide` answers a command with events, `apply` folds an event into the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from league.core import directives as orders
from league.core import leases, quarantine, retention
from league.core import lifecycle as runs
from league.core.metagame import meta_game
from league.core.pbt import pbt as tuning
from league.core.state import commands, events
from league.core.state.bounds import check_numbers
from league.core.state.commands import Command, CreateLeague, FinishLease, Refused, RequestLease
from league.core.state.events import Event
from league.core.state.state import LeagueState

Decider = Callable[[LeagueState, Any, np.random.Generator], list[Event]]
Applier = Callable[[LeagueState, Any], None]

DECIDERS: dict[type[Command], Decider] = {
    commands.CreateLeague: runs.create_league,
    commands.StartRun: runs.start_run,
    commands.StopRun: runs.stop_run,
    commands.RequestLease: leases.request_lease,
    commands.FinishLease: leases.finish_lease,
    commands.ExpireLease: leases.expire_lease,
    commands.ReportProgress: orders.report_progress,
    commands.RequestSnapshot: orders.request_snapshot,
    commands.ConfirmSnapshot: orders.confirm_snapshot,
    commands.ConfirmReset: orders.confirm_reset,
    commands.SaveCheckpoint: orders.save_checkpoint,
    commands.ConfirmTransplant: tuning.confirm_transplant,
    commands.DropTransplant: tuning.drop_transplant,
    commands.AddOutsider: runs.add_outsider,
    commands.QuarantineSnapshot: quarantine.quarantine_snapshot,
    commands.RestoreSnapshot: quarantine.restore_snapshot,
    commands.RetireSnapshots: retention.retire_snapshots,
    commands.NoteFork: runs.note_fork,
    commands.NoteRewind: runs.note_rewind,
    commands.ChangeConfig: runs.change_config,
}

APPLIERS: dict[type[Event], Applier] = {
    events.LeagueCreated: runs.apply_created,
    events.PlayerAdded: runs.apply_added,
    events.RunStarted: runs.apply_started,
    events.RunStopped: runs.apply_stopped,
    events.LeaseGranted: leases.apply_granted,
    events.LeaseFinished: leases.apply_finished,
    events.LeaseExpired: leases.apply_expired,
    events.ProgressReported: orders.apply_progress,
    events.OrderIssued: orders.apply_order,
    events.SnapshotAdded: orders.apply_snapshot,
    events.PlayerReset: orders.apply_reset,
    events.CheckpointSaved: orders.apply_checkpoint,
    events.PlayerTransplanted: orders.apply_transplanted,
    events.OrderDropped: orders.apply_dropped,
    events.OutsiderAdded: runs.apply_outsider,
    events.SnapshotQuarantined: quarantine.apply_quarantined,
    events.SnapshotRestored: quarantine.apply_restored,
    events.SnapshotRetired: retention.apply_retired,
    events.MixtureSolved: meta_game.apply_mixture,
    events.LeagueForked: runs.apply_forked,
    events.LeagueRewound: runs.apply_rewound,
    events.ConfigChanged: runs.apply_config,
}


def decide(state: LeagueState, command: Command, rng: np.random.Generator, now: float) -> list[Event]:
    """What happens when `command` is given in `state`; changes nothing.

    Args:
      rng: the only source of chance. A generator seeded by (league seed, number of the next event) makes a resumed
        league equal to one that never stopped.
      now: seconds since the epoch, for rules that depend on time; today none does.
    Returns:
      Events in order; the caller writes them to the journal and then applies each.
    Raises:
      Refused: the command does not fit the state.
    """
    if state.settings is None and not isinstance(command, CreateLeague):
        raise Refused("there is no league yet; found one first")
    if not isinstance(command, CreateLeague | RequestLease | FinishLease):  # not from a host, or with bounds of its own
        check_numbers(command)
    return DECIDERS[type(command)](state, command, rng)


def apply(state: LeagueState, event: Event) -> LeagueState:
    """Fold one event into the state, in place; returns the same object.

    Events come from `decide` on this very state (or from the journal in order), so that none can fail.
    """
    APPLIERS[type(event)](state, event)
    return state
