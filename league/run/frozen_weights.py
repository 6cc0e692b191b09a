"""Weights of the league's snapshots for leases, resets and starts; what cannot be read is quarantined, not fatal."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from league.agents.nets.config import NetworkConfig
from league.agents.weights import Weights
from league.core.quarantine import restart_sources
from league.core.retention import RETIRED
from league.core.state.commands import Command, QuarantineSnapshot, RestoreSnapshot, RetireSnapshots
from league.core.state.events import Event, SnapshotAdded, SnapshotRetired
from league.core.state.records import Lease, is_bot, is_from_outside
from league.errors import CorruptSnapshot, MissingSnapshot, StorageError
from league.hosts.protocol import InstallPlayer
from league.policies.policy_store import PolicyStore
from league.store.journaled_league import JournaledLeague


class FrozenWeights:
    """Reads snapshots; one that is damaged or gone is set aside in the journal, with a sentence for the user.

    Args:
      policies: the stores.
      league: history of the run.
      ask: has the league decide on a command.
    """

    def __init__(self, policies: PolicyStore, *, league: JournaledLeague, ask: Callable[[Command], bool]) -> None:
        self._policies = policies
        self._league = league
        self._ask = ask
        self._retired: list[str] = []

    def of(self, snapshot: str) -> Weights | None:
        """The weights of a snapshot; None where they cannot be had, which is in the journal then."""
        if not self._league.state.is_present(snapshot):
            return None
        try:
            return self._policies.snapshot(self._league.state.snapshots[snapshot])
        except (MissingSnapshot, CorruptSnapshot) as error:
            self._ask(QuarantineSnapshot(snapshot, str(error)))
            self._policies.warn(
                f"Snapshot {snapshot} is set aside, the league continues without it: {error} "
                "Put the file back as it was, and the next `league resume` takes the snapshot back."
            )
            return None

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
                return InstallPlayer(player, None, weights, known.hyperparameters, self._steps_at(player, name))
        if problem is None:
            problem = MissingSnapshot(f"snapshot {known.parent} cannot be had.")
        raise MissingSnapshot(
            f"{problem} Now nothing is left of {player} to start from: put one of its snapshots or its checkpoint back,"
            " or go back to an earlier point with `league rewind` or `league fork`."
        )

    def keep_within_limits(self, event: Event) -> None:
        """After a snapshot was added, remove the weights of those retired before, and retire what is too many.

        The weights of those that are retired now stay until then: games in flight may still be played with them.
        """
        state = self._league.state
        if isinstance(event, SnapshotRetired):
            self._retired.append(event.snapshot)
        elif isinstance(event, SnapshotAdded):
            gone, self._retired = self._retired, []
            for name in gone:
                self._drop(name)
            if len(state.population.snapshots()) > self._policies.max_snapshots:
                self._ask(RetireSnapshots(self._policies.max_snapshots))

    def _drop(self, snapshot: str) -> None:
        state = self._league.state
        if not state.is_present(snapshot):
            try:
                self._policies.drop_snapshot(snapshot, state)
            except StorageError as error:  # they take room and harm nobody
                self._policies.warn(f"The weights of {snapshot} are retired and still there: {error}")

    def take_back_mended(self) -> None:
        """Take quarantined snapshots back whose files are again what was written."""
        state = self._league.state
        absent = {state.population.names[number]: reason for number, reason in state.population.absent.items()}
        for name, reason in absent.items():
            if name not in state.snapshots:  # a player that has retired
                continue
            if reason.startswith(RETIRED):
                self._retired.append(name)
                continue
            try:
                self._policies.snapshot(state.snapshots[name])
            except (MissingSnapshot, CorruptSnapshot):
                continue
            self._ask(RestoreSnapshot(name))
            self._policies.warn(f"Snapshot {name} is whole again: the league meets it as before.")

    def _steps_at(self, player: str, snapshot: str) -> int:
        """Trained steps of a player when its weights were those of a snapshot.

        `gate_steps` counts from when they became those of its parent: from its last snapshot or reset.
        """
        state = self._league.state
        known, info = state.players[player], state.snapshots[snapshot]
        is_older = snapshot != known.parent and info.player == player
        return info.trained_steps if is_older else known.gate_steps
