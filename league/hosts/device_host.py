"""An actor host whose games, policies and unrolls are on the learner's device, in the learner's own process."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Protocol, cast

import torch

from league.agents.acting.kinds.acting_kinds import ActingKind
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.on_device.arena import DeviceArena
from league.agents.acting.policy import AdoptingPolicy
from league.agents.device_games.making import make_device_game
from league.agents.nets.config import NetworkConfig
from league.agents.unroll.device_unrolls import DeviceUnrolls
from league.agents.unroll.field_table import Record
from league.agents.weights import Weights
from league.core.state.commands import FinishLease
from league.core.state.records import Lease, is_bot
from league.envs.failures import GameFailure
from league.hosts.actors.actor_host import ActorHost, HostedArena, LearnerClient
from league.hosts.protocol import HostState
from league.hosts.setup import HostSetup


class DeviceLearnerClient(LearnerClient, Protocol):
    """The way to learners in the same process."""

    def push_rows(self, player: str, rows: DeviceUnrolls) -> Weights | None:
        """Hand over rows as they are; returns the newest weights of the player."""
        ...


class DeviceActorHost(ActorHost):
    """Plays leases on a device; one that names a policy of another kind is played by an actor host beside it.

    Those are scripted bots, policies from outside and players with settings of their own. Each of the two hosts keeps
    the games that it began.

    Args:
      setup, name, dtype: as of `ActorHost`. device: the learner's.
    """

    def __init__(self, setup: HostSetup, *, name: str, dtype: torch.dtype, device: torch.device) -> None:
        self._beside = ActorHost(setup, name=name, dtype=dtype)  # first: the base gives it its networks
        super().__init__(setup, name=name, dtype=dtype)
        self._device = device

    def play(self, lease: Lease, *, frozen: Mapping[str, Weights], learners: LearnerClient) -> FinishLease:
        """As `ActorHost.play`. Args: learners: a `DeviceLearnerClient`."""
        names = {policy for assignment in lease.assignments for policy in assignment.policies}
        if any(
            is_bot(name) or name in self._imported_networks or self._setup.of(name) is not self._setup for name in names
        ):
            return self._beside.play(lease, frozen=frozen, learners=learners)
        return super().play(lease, frozen=frozen, learners=learners)

    def add_networks(self, networks: Mapping[str, NetworkConfig]) -> None:
        """As `ActorHost.add_networks`, for the host beside it too."""
        super().add_networks(networks)
        self._beside.add_networks(networks)

    def take_failures(self) -> tuple[GameFailure, ...]:
        """As `ActorHost.take_failures`, of the host beside it."""
        return self._beside.take_failures()

    def save(self) -> HostState | None:
        """None: a resumed run begins new games."""
        return None

    def close(self) -> None:
        """As `ActorHost.close`."""
        super().close()
        self._beside.close()

    def _arena(self, key: str) -> HostedArena:
        if key not in self._arenas:
            setup = self._setup
            seed = zlib.crc32(f"{setup.seed}/{self._name}/{key}/{self._generations.get(key, 0)}".encode())
            self._arenas[key] = DeviceArena(
                make_device_game(setup.env, num_envs=setup.num_envs, device=self._device, seed=seed),
                setup.unrolls_of(self._spec, self._network),
                device=self._device,
                seed=seed + 1,
            )
        return self._arenas[key]

    def _begin_again(self, key: str) -> None:
        self._arenas.pop(key, None)

    def _network_policy(self, name: str, acting: ActingKind) -> AdoptingPolicy:
        policy = NetworkPolicy(self._network, dtype=self._dtype)
        policy.network.to(self._device)
        return policy

    def _send(self, player: str, recorded: Record | DeviceUnrolls, learners: LearnerClient) -> None:
        assert isinstance(recorded, DeviceUnrolls)
        self._adopt(player, cast(DeviceLearnerClient, learners).push_rows(player, recorded))
