"""Takes in the reports of hosts: answers become commands, and the table of hosts follows what is there and what not.

It is the counterpart of `league.run.effects`, which acts on events; what a report brings takes effect as they do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from league.agents.restart_state import ema_in
from league.core.state.commands import Command, ConfirmReset, ConfirmSnapshot, ExpireLease, SaveCheckpoint
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
from league.run.effects import Effects, HostTable
from league.run.operations.host_numbers import HostNumbers
from league.store.journaled_league import JournaledLeague


@dataclass
class HostLosses:
    """Hosts and games lost since the start of the daemon.

    Fields:
      count: hosts lost, how many times; parked: those that are parked now.
      gone: host -> why, of those that are not back yet.
      quarantined: host -> its games that are not played any more.
    """

    count: int = 0
    quarantined: dict[str, int] = field(default_factory=dict)
    parked: dict[str, None] = field(default_factory=dict)
    gone: dict[str, str] = field(default_factory=dict)

    def lost(self, report: HostLost, *, say: Callable[[str], object]) -> None:
        """Count a loss; says once when a host is parked."""
        self.count += 1
        if report.for_good:
            self.started(report.host)  # nobody waits for it
        else:
            self.gone[report.host] = report.reason
        if report.parked_s and report.host not in self.parked:
            self.parked[report.host] = None
            say(f"{report.host} is parked, and tried again every {report.parked_s:g} s: {report.reason}")

    def failed(self, report: LeaseDone, *, say: Callable[[str], object]) -> None:
        """Count the games that a host gave up, and say which."""
        for failure in report.failures:
            if failure.quarantined:
                self.quarantined[report.host] = self.quarantined.get(report.host, 0) + 1
                say(f"{report.host}: {failure.text()}. Its traceback is under logs/ in the run folder.")

    def started(self, host: str) -> None:
        """The host is there (again), with all its games."""
        self.gone.pop(host, None)
        self.parked.pop(host, None)
        self.quarantined.pop(host, None)


class HostReports:
    """Takes each report to what it concerns.

    Args:
      league: history of the run. policies: weights and restart states on disk.
      hosts, effects, restart_states, numbers: shared with the daemon.
      execute: has the league decide on a command; False where it refuses.
      reopen: acts again on what is open of a player, whose learner is in place now.
      say: tells the user one sentence.

    Attributes:
      losses: hosts and games lost.
      stuck: the call of an env that has not come back for long, with its game; empty for none.
    """

    def __init__(
        self,
        league: JournaledLeague,
        policies: PolicyStore,
        *,
        hosts: HostTable,
        effects: Effects,
        restart_states: RestartStates,
        numbers: HostNumbers,
        execute: Callable[[Command], bool],
        reopen: Callable[[str], object],
        say: Callable[[str], object],
    ) -> None:
        self._league = league
        self._policies = policies
        self._hosts = hosts
        self._effects = effects
        self._restart_states = restart_states
        self._numbers = numbers
        self._execute = execute
        self._reopen = reopen
        self._say = say
        self.losses = HostLosses()
        self.stuck = ""

    def take(self, report: Report) -> None:
        """Take in one report."""
        TAKERS[type(report)](self, report)

    def _lease_done(self, report: LeaseDone) -> None:
        self.stuck = ""
        self.losses.failed(report, say=self._say)
        answer = report.answer
        if not self._execute(answer):
            lease = self._league.state.leases.get(answer.lease_id)
            if lease is not None and (lease.host, lease.token) == (report.host, answer.token):
                self._execute(ExpireLease(answer.lease_id, "its answer was refused"))
        self._hosts.free(report.host, self._league.state.leases)

    def _lease_lost(self, report: LeaseLost) -> None:
        self._execute(ExpireLease(report.lease_id, report.reason))
        self._hosts.free(report.host, self._league.state.leases)

    def _learner_progress(self, report: LearnerProgress) -> None:
        if report.progress.player not in self._hosts.installed:  # of the learner that another takes the place of
            return
        self._hosts.progress[report.progress.player] = report
        self._effects.report_progress(report.progress)

    def _snapshot_taken(self, report: SnapshotTaken) -> None:
        if report.directive_id not in self._league.state.directives:
            return
        player = self._league.state.players[report.player]
        digest = self._policies.put_snapshot(player, report.weights, trained_steps=report.trained_steps)
        self._execute(ConfirmSnapshot(report.directive_id, digest, report.weights.version, report.trained_steps))

    def _reset_done(self, report: ResetDone) -> None:
        self._execute(ConfirmReset(report.directive_id))

    def _checkpoint_taken(self, report: CheckpointTaken) -> None:
        progress = report.progress
        if progress.player not in self._hosts.installed:  # as in `_learner_progress`
            self._restart_states.forget((progress.player,))
            return
        digest = self._policies.put_checkpoint(progress.player, report.saved)
        self._restart_states.saved(progress)
        self._effects.report_progress(progress)
        has_ema = ema_in(report.saved) is not None
        self._execute(SaveCheckpoint(progress.player, digest, progress.version, progress.trained_steps, has_ema))

    def _player_installed(self, report: PlayerInstalled) -> None:
        self._hosts.installed.add(report.player)
        self._reopen(report.player)

    def _host_started(self, report: HostStarted) -> None:
        self.losses.started(report.host)
        if report.kind == "actor_host":
            self._hosts.actors.add(report.host)
            self._hosts.free(report.host, self._league.state.leases)
            self._numbers.started(report.host)
            return
        for player in report.players:
            self._effects.install(player)

    def _host_stuck(self, report: HostStuck) -> None:
        self.stuck = report.text
        self._say(f"{report.host}: {report.text}")

    def _remark(self, report: Remark) -> None:
        self._say(report.text)

    def _host_lost(self, report: HostLost) -> None:
        self.losses.lost(report, say=self._say)
        self._hosts.forget(report.host)
        if report.for_good:
            self._numbers.gone(report.host)
        self._hosts.installed.difference_update(report.players)
        self._restart_states.forget(report.players)
        lease_id = self._hosts.lease_of(report.host, self._league.state.leases)
        if lease_id is not None:
            self._execute(ExpireLease(lease_id, report.reason))


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
