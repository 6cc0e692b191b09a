"""Effects of durable events: leases go to actor hosts, directives to learner hosts, learners are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from league.agents.learner.config import LearnerConfig
from league.agents.restart_state import Arrays, counters_in, ema_in, weights_in, with_weights
from league.core.pbt.pbt import pinned_checkpoints
from league.core.state.commands import Command, ConfirmTransplant, DropTransplant, ExpireLease, ReportProgress
from league.core.state.events import (
    CheckpointSaved,
    DirectiveIssued,
    Event,
    LeaseGranted,
    PlayerAdded,
    PlayerTransplanted,
    SettingsChanged,
)
from league.core.state.records import Directive, DirectiveKind, Lease, Parent, Progress
from league.core.state.state import LeagueState
from league.errors import CorruptSnapshot, MissingSnapshot
from league.hosts.learners.hyperparameters import LEARNER_VALUES, tuned
from league.hosts.protocol import LearnerProgress, PlayLease, Reconfigure, ResetPlayer, Runtime, TakeSnapshot
from league.policies.policy_store import PolicyStore
from league.run.checkpointing import restored_progress
from league.run.frozen_weights import FrozenWeights
from league.store.journaled_league import JournaledLeague


@dataclass
class HostTable:
    """The state of the hosts, as the daemon knows it.

    Fields:
      actors: actor hosts that are there. idle: those without a lease, in the order in which they became free.
      leased: newest lease of each actor host; it may have ended since.
      installed: players whose learner is in place.
      progress: newest report of each player's learner.
    """

    actors: set[str] = field(default_factory=set)
    idle: dict[str, None] = field(default_factory=dict)
    leased: dict[str, int] = field(default_factory=dict)
    installed: set[str] = field(default_factory=set)
    progress: dict[str, LearnerProgress] = field(default_factory=dict)

    def free(self, host: str, leases: Mapping[int, Lease]) -> None:
        """An actor host may have a lease, unless it is gone or has one: answers come late and twice."""
        if host in self.actors and self.lease_of(host, leases) is None:
            self.idle[host] = None

    def note_leases(self, events: Iterable[Event]) -> None:
        """Take note of the leases that were granted in some events."""
        self.leased.update(
            {event.lease.host: event.lease.lease_id for event in events if isinstance(event, LeaseGranted)}
        )

    def lease_of(self, host: str, leases: Mapping[int, Lease]) -> int | None:
        """The open lease of an actor host. It has one at most: the newest, for only an idle host is given one."""
        lease_id = self.leased.get(host)
        return lease_id if lease_id in leases else None

    def forget(self, host: str) -> None:
        """An actor host is gone."""
        self.actors.discard(host)
        self.idle.pop(host, None)


class Effects:
    """Acts on events that are in the journal.

    Args:
      league: history of the run. runtime: where hosts run.
      policies: the stores. frozen: weights of snapshots.
      hosts: shared with the daemon.
      learner: settings of learners as they are now; the daemon keeps them up to date.
      execute: has the league decide on a command. say: tells the user one sentence.
    """

    def __init__(
        self,
        league: JournaledLeague,
        runtime: Runtime,
        policies: PolicyStore,
        frozen: FrozenWeights,
        hosts: HostTable,
        *,
        learner: LearnerConfig,
        execute: Callable[[Command], bool],
        say: Callable[[str], object],
    ) -> None:
        self._league = league
        self._runtime = runtime
        self._policies = policies
        self._frozen = frozen
        self._hosts = hosts
        self._execute = execute
        self._say = say
        self.learner = learner
        self._newest_checkpoint = {
            name: player.checkpoint.digest
            for name, player in league.state.players.items()
            if player.checkpoint is not None
        }

    def carry_out(self, event: Event) -> None:
        """Do what follows from one event."""
        if isinstance(event, LeaseGranted):
            self._submit_lease(event.lease)
        elif isinstance(event, DirectiveIssued):
            self._submit_directive(event.directive)
        elif isinstance(event, CheckpointSaved):
            self._prune_checkpoints(event.player)
        elif isinstance(event, PlayerTransplanted | PlayerAdded):
            self._prune_checkpoints(event.player)
            self.install(event.player)
        elif isinstance(event, SettingsChanged):
            self._reconfigure(event)
        else:
            self._frozen.keep_within_limits(event)

    def install(self, player: str) -> None:
        """Have a learner host hold a player as the journal and the stores know it."""
        self._hosts.installed.discard(player)
        self._hosts.progress.pop(player, None)  # of the learner before, which may have been further
        install = self._frozen.installation(player)
        if install.saved is None:  # what could not be read is not kept as the restart state before the next one
            self._newest_checkpoint.pop(player, None)
        known = self._league.state.players[player]
        self.report_progress(restored_progress(known, install, say=self._say))
        self._runtime.submit(replace(install, learner=self.learner))

    def report_progress(self, progress: Progress) -> None:
        """Tell the league of a learner's progress where that is news."""
        player = self._league.state.players.get(progress.player)
        if player is None or (player.version, player.trained_steps) != (progress.version, progress.trained_steps):
            self._execute(ReportProgress(progress))

    def _reconfigure(self, event: SettingsChanged) -> None:
        """Tell the learners whose settings an event changes."""
        keys = [change.key for change in event.changes]
        is_for_all = any(key.startswith("learner.") for key in keys)
        for player in self._league.state.players.values():
            own = any(key in keys for key in (f"players.{player.name}.{name}" for name in LEARNER_VALUES))
            if player.name in self._hosts.installed and (is_for_all or own):
                self._runtime.submit(Reconfigure(player.name, tuned(self.learner, player.hyperparameters)))

    def _prune_checkpoints(self, player: str) -> None:
        """Remove restart states but the one that the league names by now, and the one before; none while one is pinned.

        Donors of open transplants have theirs pinned.
        """
        state = self._league.state
        pointer = state.players[player].checkpoint
        before = self._newest_checkpoint.get(player)
        if pointer is None or pointer.digest == before:  # the player has been reset since, or has not learnt since
            return
        self._newest_checkpoint[player] = pointer.digest
        if not any(owner == player for owner, _ in pinned_checkpoints(state)):
            self._policies.prune_checkpoints(player, keep=(pointer.digest, *filter(None, [before])))

    def _submit_lease(self, lease: Lease) -> None:
        frozen = self._frozen.of_lease(lease, kept=self._runtime.keeps)
        if isinstance(frozen, str):
            self._execute(ExpireLease(lease.lease_id, f"the weights of {frozen} cannot be had"))
            self._hosts.free(lease.host, self._league.state.leases)
            return
        self._runtime.submit(PlayLease(lease, frozen, self._frozen.networks_of(lease)))
        self._frozen.let_go(filter(self._runtime.keeps, frozen))

    def _submit_directive(self, directive: Directive) -> None:
        if directive.player not in self._hosts.installed or directive.directive_id not in self._league.state.directives:
            return
        {
            DirectiveKind.SNAPSHOT: self._take_snapshot,
            DirectiveKind.RESET: self._reset,
            DirectiveKind.TRANSPLANT: self._transplant,
        }[directive.kind](directive)

    def _take_snapshot(self, directive: Directive) -> None:
        self._runtime.submit(TakeSnapshot(directive.directive_id, directive.player))

    def _reset(self, directive: Directive) -> None:
        assert directive.source is not None
        weights = self._frozen.of(directive.source)
        if weights is not None:  # else the league has dropped the directive for another one
            self._runtime.submit(ResetPlayer(directive.directive_id, directive.player, weights))

    def _transplant(self, directive: Directive) -> None:
        """Give the player a copy of its donor's restart state; its learner takes it up once the journal says so."""
        assert directive.donor is not None and directive.checkpoint is not None
        try:
            saved = self._policies.get_checkpoint(directive.donor, directive.checkpoint)
            if directive.parents:
                saved = self._mean_of(directive.parents, saved)
        except (MissingSnapshot, CorruptSnapshot) as error:
            self._execute(DropTransplant(directive.directive_id, str(error)))
            return
        counters = counters_in(saved)
        digest = self._policies.put_checkpoint(directive.player, saved)
        has_ema = ema_in(saved) is not None
        confirm = ConfirmTransplant(directive.directive_id, digest, counters.version, counters.trained_steps, has_ema)
        if self._execute(confirm):
            self._hosts.installed.discard(directive.player)  # what its learner still answers is of the old weights

    def _mean_of(self, parents: tuple[Parent, ...], saved: Arrays) -> Arrays:
        """The donor's restart state with the weighted mean of the parents' weights, and a new optimizer for them.

        Raises:
          CorruptSnapshot, MissingSnapshot: as `get_checkpoint`; a parent that has another network is named.
        """
        mean = np.zeros(weights_in(saved).shape, np.float64)
        for parent in parents:
            weights = weights_in(self._policies.get_checkpoint(parent.player, parent.checkpoint))
            if weights.shape != mean.shape:
                raise MissingSnapshot(f"{parent.player} has {weights.size} weights, the mean {mean.size}")
            mean += parent.weight * weights
        return with_weights(saved, mean.astype(np.float32))


def open_again(state: LeagueState, player: str, unacted: Iterable[Event]) -> list[Event]:
    """The directives to submit once a player's learner was (re)installed: a lost host loses them.

    Args:
      unacted: events that will be acted on anyway.
    """
    pending = {event.directive.directive_id for event in unacted if isinstance(event, DirectiveIssued)}
    return [
        DirectiveIssued(directive)
        for directive in state.open_directives(player)
        if directive.directive_id not in pending
    ]
