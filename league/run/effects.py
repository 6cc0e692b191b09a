"""Effects of durable events: leases go to actor hosts, directives to learner hosts, learners are installed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from league.agents.nets.config import NetworkConfig
from league.agents.restart_state import Arrays, counters_in, ema_in, weights_in, with_weights
from league.agents.weights import Weights
from league.config.player_settings import settings_of
from league.config.run_config import RunConfig
from league.core.pbt.pbt import pinned_checkpoints
from league.core.quarantine import restart_sources
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
from league.core.state.records import Directive, DirectiveKind, Lease, Parent, Progress, is_bot, is_from_outside
from league.errors import CorruptSnapshot, MissingSnapshot
from league.hosts.learners.hyperparameters import LEARNER_VALUES, tuned
from league.hosts.protocol import InstallPlayer, PlayLease, Reconfigure, ResetPlayer, Runtime, TakeSnapshot
from league.policies.kept_snapshots import KeptSnapshots
from league.policies.policy_store import PolicyStore
from league.run.checkpointing import restored_progress
from league.run.fleet import Fleet
from league.store.journaled_league import JournaledLeague


class Effects:
    """Acts on events that are in the journal.

    Args:
      league: history of the run. runtime: where hosts run.
      policies: the stores.
      fleet: the hosts.
      config: of the run as it is now.
      ask: has the league decide on a command; False where it refuses. say: tells the user one sentence.

    Attributes:
      frozen: weights of snapshots.
    """

    def __init__(
        self,
        league: JournaledLeague,
        runtime: Runtime,
        policies: PolicyStore,
        fleet: Fleet,
        *,
        config: RunConfig,
        ask: Callable[[Command], bool],
        say: Callable[[str], object],
    ) -> None:
        self._league = league
        self._runtime = runtime
        self._policies = policies
        self.frozen = FrozenWeights(policies, league=league, ask=ask)
        self._fleet = fleet
        self._ask = ask
        self._say = say
        self._config = config
        self._newest_checkpoint = {
            name: player.checkpoint.digest
            for name, player in league.state.players.items()
            if player.checkpoint is not None
        }

    def carry_out(self, event: Event) -> None:
        """Do what follows from one event."""
        act = ACTS.get(type(event))
        if act is None:
            self.frozen.keep_within_limits(event)
        else:
            act(self, event)

    def use(self, config: RunConfig) -> None:
        """Work with the configuration that the journal has now."""
        self._config = config
        self._policies.use(config)

    def install(self, player: str) -> None:
        """Have a learner host hold a player as the journal and the stores know it."""
        self._fleet.installed.discard(player)
        self._fleet.progress.pop(player, None)  # of the learner before, which may have been further
        install = self.frozen.installation(player)
        if install.saved is None:  # what could not be read is not kept as the restart state before the next one
            self._newest_checkpoint.pop(player, None)
        known = self._league.state.players[player]
        self.report_progress(restored_progress(known, install, say=self._say))
        learner = settings_of(self._config, player).learner
        self._runtime.submit(replace(install, learner=learner, generation=known.generation + known.transplants))

    def report_progress(self, progress: Progress) -> None:
        """Tell the league of a learner's progress where that is news."""
        player = self._league.state.players.get(progress.player)
        if player is None or (player.version, player.trained_steps) != (progress.version, progress.trained_steps):
            self._ask(ReportProgress(progress))

    def _lease_granted(self, event: LeaseGranted) -> None:
        self._submit_lease(event.lease)

    def _directive_issued(self, event: DirectiveIssued) -> None:
        self._submit_directive(event.directive)

    def _checkpoint_saved(self, event: CheckpointSaved) -> None:
        self._prune_checkpoints(event.player)

    def _player_changed(self, event: PlayerTransplanted | PlayerAdded) -> None:
        self._prune_checkpoints(event.player)
        self.install(event.player)

    def _reconfigure(self, event: SettingsChanged) -> None:
        """Tell the learners whose settings an event changes."""
        keys = [change.key for change in event.changes]
        is_for_all = any(key.startswith("learner.") for key in keys)
        for player in self._league.state.players.values():
            own = any(key in keys for key in (f"players.{player.name}.{name}" for name in LEARNER_VALUES))
            if player.name in self._fleet.installed and (is_for_all or own):
                learner = settings_of(self._config, player.name).learner
                self._runtime.submit(Reconfigure(player.name, tuned(learner, player.hyperparameters)))

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
        self._fleet.leased[lease.host] = lease.lease_id
        frozen = self.frozen.of_lease(lease, kept=self._runtime.keeps)
        if isinstance(frozen, str):
            self._ask(ExpireLease(lease.lease_id, f"the weights of {frozen} cannot be had"))
            self._fleet.free(lease.host, self._league.state.leases)
            return
        self._runtime.submit(PlayLease(lease, frozen, self.frozen.networks_of(lease)))
        self.frozen.let_go(filter(self._runtime.keeps, frozen))

    def _submit_directive(self, directive: Directive) -> None:
        if directive.player not in self._fleet.installed or directive.directive_id not in self._league.state.directives:
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
        weights = self.frozen.of(directive.source)
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
            self._ask(DropTransplant(directive.directive_id, str(error)))
            return
        counters = counters_in(saved)
        digest = self._policies.put_checkpoint(directive.player, saved)
        has_ema = ema_in(saved) is not None
        confirm = ConfirmTransplant(directive.directive_id, digest, counters.version, counters.trained_steps, has_ema)
        if self._ask(confirm):
            self._fleet.installed.discard(directive.player)  # what its learner still answers is of the old weights

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


ACTS: Mapping[type[Event], Callable[[Effects, Any], None]] = {
    CheckpointSaved: Effects._checkpoint_saved,
    DirectiveIssued: Effects._directive_issued,
    LeaseGranted: Effects._lease_granted,
    PlayerAdded: Effects._player_changed,
    PlayerTransplanted: Effects._player_changed,
    SettingsChanged: Effects._reconfigure,
}
"""Kind of event -> the method that acts on it; every other one only matters to the weights of snapshots."""


class FrozenWeights(KeptSnapshots[Weights]):
    """The snapshots of a run as leases and learner hosts need them.

    Args: as of `KeptSnapshots`; policies: the stores.
    """

    def __init__(self, policies: PolicyStore, *, league: JournaledLeague, ask: Callable[[Command], bool]) -> None:
        super().__init__(policies, league=league, ask=ask)
        self._policies = policies

    def of_lease(self, lease: Lease, *, kept: Callable[[str], bool]) -> dict[str, Weights] | str:
        """The weights of every snapshot that a lease names; the id of the first one that cannot be had instead.

        kept: whether the runtime keeps a snapshot's weights, which are then left out.
        """
        frozen: dict[str, Weights] = {}
        for name in self._snapshots_in(lease):
            if kept(name) and self._league.state.is_present(name):
                continue
            weights = self.of(name)
            if weights is None:
                return name
            frozen[name] = weights
        return frozen

    def let_go(self, names: Iterable[str]) -> None:
        """Hold the weights of some snapshots no longer: the runtime keeps them."""
        for name in names:
            self._policies.let_go(self._league.state.snapshots[name])

    def networks_of(self, lease: Lease) -> dict[str, NetworkConfig]:
        """The networks of those in a lease that are from outside: they may differ from the run's."""
        snapshots = self._league.state.snapshots
        names = filter(is_from_outside, self._snapshots_in(lease))
        return {name: self._policies.network_of(snapshots[name]) for name in names}

    def _snapshots_in(self, lease: Lease) -> list[str]:
        """Each snapshot that a lease names, once."""
        return [name for name in lease.policies if not is_bot(name) and name in self._league.state.snapshots]

    def installation(self, player: str) -> InstallPlayer:
        """The starting state of a player's learner: its checkpoint, else the snapshot it descends from, else new
        weights.

        A fallback is always reported; only a player that never had weights starts with new ones.

        Raises:
          MissingSnapshot, CorruptSnapshot: of the player's weights nothing can be read any more.
        """
        known = self._league.state.players[player]
        problem: MissingSnapshot | CorruptSnapshot | None = None
        if known.checkpoint is not None:
            try:
                saved = self._policies.get_checkpoint(player, known.checkpoint.digest)
                return InstallPlayer(player, saved, None, known.hyperparameters, known.gate_steps)
            except (MissingSnapshot, CorruptSnapshot) as error:
                problem = error
        elif known.parent is None:
            return InstallPlayer(player, None, None, known.hyperparameters, known.gate_steps)
        for name in list(restart_sources(self._league.state, player)):
            weights = self.of(name)
            if weights is not None:
                if problem is not None or name != known.parent:
                    because = f"{problem} " if problem is not None else ""
                    self._policies.warn(f"{because}Learner {player} starts from its snapshot {name} instead.")
                return InstallPlayer(player, None, weights, known.hyperparameters, self.steps_at(player, name))
        if problem is None:
            problem = MissingSnapshot(f"snapshot {known.parent} cannot be had.")
        raise MissingSnapshot(
            f"{problem} Now nothing is left of {player} to start from: put one of its snapshots or its checkpoint back,"
            " or go back to an earlier point with `league rewind` or `league fork`."
        )
