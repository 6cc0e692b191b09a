"""The league as a pure state machine: `decide` answers a command with events, `apply` folds an event into the state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from league.core import directives, leases, lifecycle, probes, quarantine, retention, settings
from league.core.metagame import meta_game
from league.core.pbt import pbt
from league.core.state import commands, events, probe_events
from league.core.state.bounds import check_numbers
from league.core.state.commands import Command, CreateLeague, FinishLease, Refused, RequestLease
from league.core.state.events import Event
from league.core.state.state import LeagueState

Decider = Callable[[LeagueState, Any, np.random.Generator], list[Event]]
Applier = Callable[[LeagueState, Any], None]

DECIDERS: dict[type[Command], Decider] = {
    commands.CreateLeague: lifecycle.create_league,
    commands.StartRun: lifecycle.start_run,
    commands.StopRun: lifecycle.stop_run,
    commands.RequestLease: leases.request_lease,
    commands.FinishLease: leases.finish_lease,
    commands.ExpireLease: leases.expire_lease,
    commands.ReportProgress: directives.report_progress,
    commands.RequestSnapshot: directives.request_snapshot,
    commands.ConfirmSnapshot: directives.confirm_snapshot,
    commands.ConfirmReset: directives.confirm_reset,
    commands.SaveCheckpoint: directives.save_checkpoint,
    commands.ConfirmTransplant: pbt.confirm_transplant,
    commands.DropTransplant: pbt.drop_transplant,
    commands.ImportPolicy: lifecycle.import_policy,
    commands.QuarantineSnapshot: quarantine.quarantine_snapshot,
    commands.RestoreSnapshot: quarantine.restore_snapshot,
    commands.RetireSnapshots: retention.retire_snapshots,
    commands.NoteFork: lifecycle.note_fork,
    commands.NoteRewind: lifecycle.note_rewind,
    commands.ChangeConfig: lifecycle.change_config,
    commands.ChangeLeague: settings.change_settings,
    commands.AddPlayer: settings.add_player,
    commands.RequestReset: settings.request_reset,
    commands.BeginProbe: probes.begin_probe,
    commands.SpendProbe: probes.spend_probe,
    commands.EndProbe: probes.end_probe,
}

APPLIERS: dict[type[Event], Applier] = {
    events.LeagueCreated: lifecycle.apply_created,
    events.PlayerAdded: lifecycle.apply_added,
    events.RunStarted: lifecycle.apply_started,
    events.RunStopped: lifecycle.apply_stopped,
    events.LeaseGranted: leases.apply_granted,
    events.LeaseFinished: leases.apply_finished,
    events.LeaseExpired: leases.apply_expired,
    events.ProgressReported: directives.apply_progress,
    events.DirectiveIssued: directives.apply_directive,
    events.SnapshotAdded: directives.apply_snapshot,
    events.PlayerReset: directives.apply_reset,
    events.CheckpointSaved: directives.apply_checkpoint,
    events.PlayerTransplanted: pbt.apply_transplant,
    events.DirectiveDropped: directives.apply_dropped,
    events.PolicyImported: lifecycle.apply_imported,
    events.SnapshotQuarantined: quarantine.apply_quarantined,
    events.SnapshotRestored: quarantine.apply_restored,
    events.SnapshotRetired: retention.apply_retired,
    events.MixtureSolved: meta_game.apply_mixture,
    events.LeagueForked: lifecycle.apply_forked,
    events.LeagueRewound: lifecycle.apply_rewound,
    events.ConfigChanged: lifecycle.apply_config,
    events.SettingsChanged: settings.apply_settings,
    probe_events.ProbeBegun: probes.apply_begun,
    probe_events.ProbeSpent: probes.apply_spent,
    probe_events.ProbeEnded: probes.apply_ended,
}


def decide(state: LeagueState, command: Command, rng: np.random.Generator) -> list[Event]:
    """Decides the events that follow from `command` in `state`; changes nothing.

    Args:
      rng: the only source of chance. A generator seeded by (league seed, number of the next event) makes a resumed
        league equal to one that never stopped.
    Returns:
      Events in order; the caller writes them to the journal and then applies each.
    Raises:
      Refused: the command does not fit the state.
    """
    if state.config is None and not isinstance(command, CreateLeague):
        raise Refused("there is no league yet; create one first")
    if not isinstance(command, CreateLeague | RequestLease | FinishLease):  # not from a host, or with bounds of its own
        check_numbers(command)
    return DECIDERS[type(command)](state, command, rng)


def apply(state: LeagueState, event: Event) -> LeagueState:
    """Fold one event into the state, in place; returns the same object.

    Events come from `decide` on this very state (or from the journal in order), so that none can fail.
    """
    APPLIERS[type(event)](state, event)
    return state
