"""Takes in the reports of hosts: answers become commands, and the fleet follows what is there and what not.

It is the counterpart of `league.run.effects`, which acts on events; what a report brings takes effect as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from league.agents.restart_state import ema_in
from league.core.state.commands import ConfirmReset, ConfirmSnapshot, ExpireLease, SaveCheckpoint
from league.hosts.protocol import (
    CheckpointTaken,
    HostLost,
    HostStarted,
    HostStuck,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    PlayerInstalled,
    Remark,
    Report,
    ResetDone,
    SnapshotTaken,
)
from league.policies.policy_store import PolicyStore
from league.run.checkpointing import RestartStates
from league.run.commander import Commander
from league.run.effects import Effects
from league.run.fleet import Fleet
from league.store.journaled_league import JournaledLeague


class HostReports:
    """Takes each report to what it concerns.

    Args:
      league: history of the run. policies: weights and restart states on disk.
      fleet, effects, restart_states: shared with the daemon.
      commander: has the league decide on commands.
      say: tells the user one sentence.
    """

    def __init__(
        self,
        league: JournaledLeague,
        policies: PolicyStore,
        *,
        fleet: Fleet,
        effects: Effects,
        restart_states: RestartStates,
        commander: Commander,
        say: Callable[[str], object],
    ) -> None:
        self._league = league
        self._policies = policies
        self._fleet = fleet
        self._effects = effects
        self._restart_states = restart_states
        self._ask, self._commander = commander.ask, commander
        self._say = say

    def take(self, report: Report) -> None:
        """Take in one report."""
        TAKERS[type(report)](self, report)

    def _lease_done(self, report: LeaseDone) -> None:
        self._fleet.losses.stuck = ""
        self._fleet.losses.failed(report, say=self._say)
        answer = report.answer
        if not self._ask(answer):
            lease = self._league.state.leases.get(answer.lease_id)
            if lease is not None and (lease.host, lease.token) == (report.host, answer.token):
                self._ask(ExpireLease(answer.lease_id, "its answer was refused"))
        self._fleet.free(report.host, self._league.state.leases)

    def _lease_lost(self, report: LeaseLost) -> None:
        self._ask(ExpireLease(report.lease_id, report.reason))
        self._fleet.free(report.host, self._league.state.leases)

    def _learner_progress(self, report: LearnerProgress) -> None:
        if report.progress.player not in self._fleet.installed:  # of the learner that another takes the place of
            return
        self._fleet.progress[report.progress.player] = report
        self._effects.report_progress(report.progress)

    def _snapshot_taken(self, report: SnapshotTaken) -> None:
        if report.directive_id not in self._league.state.directives:
            return
        player = self._league.state.players[report.player]
        digest = self._policies.put_snapshot(player, report.weights, trained_steps=report.trained_steps)
        self._ask(ConfirmSnapshot(report.directive_id, digest, report.weights.version, report.trained_steps))

    def _reset_done(self, report: ResetDone) -> None:
        self._ask(ConfirmReset(report.directive_id))

    def _checkpoint_taken(self, report: CheckpointTaken) -> None:
        progress = report.progress
        if progress.player not in self._fleet.installed:  # as in `_learner_progress`
            self._restart_states.forget((progress.player,))
            return
        digest = self._policies.put_checkpoint(progress.player, report.saved)
        self._restart_states.saved(progress)
        self._effects.report_progress(progress)
        has_ema = ema_in(report.saved) is not None
        self._ask(SaveCheckpoint(progress.player, digest, progress.version, progress.trained_steps, has_ema))

    def _player_installed(self, report: PlayerInstalled) -> None:
        self._fleet.installed.add(report.player)
        self._commander.issue_again(self._league.state.open_directives(report.player))

    def _host_started(self, report: HostStarted) -> None:
        self._fleet.losses.started(report.host)
        if report.kind == "actor_host":
            self._fleet.actors.add(report.host)
            self._fleet.free(report.host, self._league.state.leases)
            self._fleet.numbers.started(report.host)
            return
        for player in report.players:
            self._effects.install(player)

    def _host_stuck(self, report: HostStuck) -> None:
        self._fleet.losses.stuck = report.text
        self._say(f"{report.host}: {report.text}")

    def _remark(self, report: Remark) -> None:
        self._say(report.text)

    def _host_lost(self, report: HostLost) -> None:
        self._fleet.losses.lost(report, say=self._say)
        self._fleet.forget(report.host)
        if report.for_good:
            self._fleet.numbers.gone(report.host)
        self._fleet.installed.difference_update(report.players)
        self._restart_states.forget(report.players)
        lease_id = self._fleet.lease_of(report.host, self._league.state.leases)
        if lease_id is not None:
            self._ask(ExpireLease(lease_id, report.reason))


TAKERS: Mapping[type, Callable[[HostReports, Any], None]] = {
    CheckpointTaken: HostReports._checkpoint_taken,
    HostLost: HostReports._host_lost,
    HostStarted: HostReports._host_started,
    HostStuck: HostReports._host_stuck,
    LearnerProgress: HostReports._learner_progress,
    LeaseDone: HostReports._lease_done,
    LeaseLost: HostReports._lease_lost,
    PlayerInstalled: HostReports._player_installed,
    Remark: HostReports._remark,
    ResetDone: HostReports._reset_done,
    SnapshotTaken: HostReports._snapshot_taken,
}
"""Kind of report -> the method that takes it; one for each member of `Report`."""
