"""Weights of the league's snapshots for leases, resets and starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from league.agents.nets.config import NetworkConfig
from league.agents.weights import Weights
from league.core.quarantine import restart_sources
from league.core.state.commands import Command
from league.core.state.records import Lease, is_bot, is_from_outside
from league.errors import CorruptSnapshot, MissingSnapshot
from league.hosts.protocol import InstallPlayer
from league.policies.kept_snapshots import KeptSnapshots
from league.policies.policy_store import PolicyStore
from league.store.journaled_league import JournaledLeague


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
