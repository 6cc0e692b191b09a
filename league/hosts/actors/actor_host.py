"""An actor host: leases in, outcome totals out, unrolls to the learner on the way. Knows nothing of processes."""

from __future__ import annotations

import contextlib
import itertools
import logging
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import torch

from league.agents.acting.arena import Arena
from league.agents.acting.central.central_policy import CentralPolicy, InferenceClient, InferenceLost
from league.agents.acting.kinds.acting_kinds import FROZEN_PLACE, ActingKind, ActingPlace, make_acting
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.outcome_counter import AssignmentTotals, OutcomeCounter
from league.agents.acting.policy import AdoptingPolicy, BotPolicy, Policy
from league.agents.acting.split_arena import SplitArena
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.codec import ChunkError, ChunkHeader, Lz4Codec
from league.agents.unroll.device_unrolls import DeviceUnrolls
from league.agents.unroll.episodes import EpisodeRecorder, SeatEpisodes
from league.agents.unroll.field_table import Record
from league.agents.unroll.unroll import Unrolls, concatenate
from league.agents.weights import Weights
from league.config.player_settings import prefix_of
from league.core.state.commands import FinishLease
from league.core.state.records import Assignment, Lease, bot_name, is_bot
from league.envs.bots import make_bot
from league.envs.failures import GameFailure
from league.envs.protocol import BatchedEnv, EnvConfig, EnvError, EnvSpec
from league.envs.registry import make, spec_of
from league.hosts.actors.outcomes import outcome_of
from league.hosts.protocol import Arrays, HostState
from league.hosts.setup import HostSetup

logger = logging.getLogger(__name__)

RATING_ARENA = ""
"""Key of the arena in which rating matches are played; a player's arena has the player's id."""

MAX_FROZEN = 64
"""Frozen networks kept ready; older ones are built again when a lease names them."""


Connect = Callable[[EnvSpec, Network, int], InferenceClient]
"""Makes the way to an inference host, given the most rows of a request."""


class LearnerClient(Protocol):
    """An actor host's way to the learners."""

    def push(self, player: str, chunk: bytes) -> Weights | None:
        """Send a chunk; returns the newest weights of the player if any came since the last call."""
        ...

    def weights(self, player: str) -> Weights:
        """The newest weights of a player."""
        ...


class HostedArena(Protocol):
    """The arena of a home player; see `Arena`."""

    @property
    def num_envs(self) -> int: ...

    def run(
        self, assignments: Sequence[Assignment], policies: Mapping[str, Policy], *, steps: int
    ) -> Iterator[Record | DeviceUnrolls]: ...

    def take_outcomes(self) -> tuple[AssignmentTotals, ...]: ...

    def take_failures(self) -> tuple[GameFailure, ...]: ...

    def settle(self) -> None: ...

    def close(self) -> None: ...


@dataclass(frozen=True)
class _PolicyParts:
    """The network of a group of players, and the kinds of acting of them and of their snapshots."""

    network: Network
    acting: ActingKind
    acting_frozen: ActingKind


class ActorHost:
    """Plays leases.

    Args:
      setup: what to build.
      name: of this host; with the run's seed it seeds the games.
      dtype: compute type of the forward passes.
      connect: makes the way to the inference host; None for policies that act here.
    """

    def __init__(self, setup: HostSetup, *, name: str, dtype: torch.dtype, connect: Connect | None = None) -> None:
        self._setup = setup
        self._name = name
        self._dtype = dtype
        self._spec = spec_of(setup.env)
        self._network = build_network(self._spec, setup.network, seed=setup.seed)
        self._imported_networks = dict[str, Network]()
        self.add_networks(setup.imported_networks)
        rows = setup.num_envs * self._spec.num_seats
        self._plain = self._parts_of(setup, self._network)
        self._own = {
            prefix: self._parts_of(own, build_network(self._spec, own.network, seed=0))
            for prefix, own in setup.players.items()
        }
        self._inference = None if connect is None else connect(self._spec, self._network, rows)
        self._codec = Lz4Codec()
        self._arenas: dict[str, HostedArena] = {}
        self._generations: dict[str, int] = {}
        self._pending: dict[str, list[Record]] = {}
        self._core_tables: dict[tuple[str, int], int] = {}
        self._live: dict[str, AdoptingPolicy] = {}
        self._frozen: dict[str, Policy] = {}

    def add_networks(self, networks: Mapping[str, NetworkConfig]) -> None:
        """Build the networks of policies from outside that joined late, by policy id; known ones are passed over."""
        for name, network in networks.items():
            if name not in self._imported_networks:
                self._imported_networks[name] = build_network(self._spec, network, seed=0)

    def _parts_of(self, setup: HostSetup, network: Network) -> _PolicyParts:
        place = ActingPlace(_host_number(self._name) % setup.actor_hosts, setup.actor_hosts, setup.num_envs, setup.seed)
        acting = make_acting(setup.acting, self._spec, place)
        return _PolicyParts(network, acting, make_acting(setup.acting_frozen, self._spec, place, setting=FROZEN_PLACE))

    def _parts_for(self, name: str) -> _PolicyParts:
        """The parts of a player or of a snapshot."""
        return self._own.get(prefix_of(name), self._plain)

    def play(self, lease: Lease, *, frozen: Mapping[str, Weights], learners: LearnerClient) -> FinishLease:
        """Step the games of the lease's arena under its assignments.

        Args:
          lease: what to do.
          frozen: weights of the snapshots that the lease names and this host does not hold.
          learners: where unrolls go and live weights come from.
        Raises:
          EnvError: from the env.
          InferenceLost: the inference host was lost, and with it every game in flight.
        """
        try:
            return self._play(lease, frozen, learners)
        except InferenceLost:
            self.close()
            raise

    def _play(self, lease: Lease, frozen: Mapping[str, Weights], learners: LearnerClient) -> FinishLease:
        for begun in self._arenas.values():  # a lease that failed may have left it waiting
            begun.settle()
        policies = self._policies(lease.assignments, frozen, learners)
        key = lease.home if lease.home is not None else RATING_ARENA
        self._forget_before(key, lease.generation)
        arena = self._arena(key)
        for recorded in arena.run(lease.assignments, policies, steps=lease.steps):
            assert lease.home is not None, "a rating match recorded something"
            self._send(lease.home, recorded, learners)
        outcomes = tuple(outcome_of(totals) for totals in arena.take_outcomes())
        return FinishLease(lease.lease_id, lease.token, lease.steps * arena.num_envs, outcomes)

    def _send(self, player: str, recorded: Record | DeviceUnrolls, learners: LearnerClient) -> None:
        """Send what was recorded to the player's learner, and adopt the weights that come back."""
        assert not isinstance(recorded, DeviceUnrolls)
        for chunk in self._chunks(player, recorded):
            self._adopt(player, learners.push(player, chunk))

    def take_failures(self) -> tuple[GameFailure, ...]:
        """The failures of single games since the last call; each is in the log, with its traceback."""
        failures = tuple(failure for arena in self._arenas.values() for failure in arena.take_failures())
        for failure in failures:
            logger.info("%s\n%s", failure.text(), failure.traceback)
        return failures

    def missing(self, assignments: tuple[Assignment, ...]) -> list[str]:
        """Snapshots that these assignments name and whose weights this host does not hold."""
        names = dict.fromkeys(policy for assignment in assignments for policy in assignment.policies)
        return [name for name in names if not is_bot(name) and name not in self._frozen and name not in self._live]

    def save(self) -> HostState | None:
        """Everything that this host holds between two leases; None where an env, or one in parts, cannot be saved."""
        arrays: Arrays = {}
        assignments: dict[str, tuple[Assignment, ...]] = {}
        for key, arena in self._arenas.items():
            if not isinstance(arena, Arena):
                return None
            saved = arena.save()
            if saved is None:
                return None
            arrays.update({f"{key}/{name}": array for name, array in saved.items()})
            assignments[key] = tuple(
                Assignment(row.policies, row.records, row.probability) for row in arena.saved_assignments()
            )
            pending = self._pending.get(key)
            if pending:
                chunk = self._encoded(key, concatenate(pending))
                arrays[f"{key}/pending"] = np.frombuffer(chunk, np.uint8).copy()
        return HostState(arrays, assignments, dict(self._generations))

    def load(self, state: HostState, *, frozen: Mapping[str, Weights], learners: LearnerClient) -> None:
        """Continue from a saved state."""
        self._generations = dict(state.generations)
        for key, assignments in state.assignments.items():
            policies = self._policies(assignments, frozen, learners)
            prefix = f"{key}/"
            arrays = {n.removeprefix(prefix): a for n, a in state.arrays.items() if n.startswith(prefix)}
            pending = arrays.pop("pending", None)
            arena = self._arena(key)
            assert isinstance(arena, Arena), "the state of one arena for one in parts"
            arena.load(arrays, assignments, policies)
            if pending is not None:
                chunk, evolves = self._codec.open(pending.tobytes()), self._setup.of(key).learner.evolves
                self._pending[key] = [chunk.rows_of(SeatEpisodes) if evolves else chunk.rows_of(Unrolls)]

    def close(self) -> None:
        """Close every env; may be called twice."""
        for arena in self._arenas.values():
            arena.close()
        self._arenas.clear()

    def _forget_before(self, key: str, generation: int) -> None:
        """Throw away the games of a player's weights before a reset: their results say nothing about the new ones."""
        if self._generations.get(key, 0) != generation:
            self._generations[key] = generation
            self._pending.pop(key, None)
            self._begin_again(key)

    def _begin_again(self, key: str) -> None:
        """A new arena in the place of one; the games themselves stay: some are dear to make."""
        arena = self._arenas.get(key)
        if isinstance(arena, Arena | SplitArena):
            self._arenas[key] = self._new_arena(key, arena.release())

    def _arena(self, key: str) -> HostedArena:
        if key not in self._arenas:
            with contextlib.ExitStack() as made:
                envs = [made.enter_context(contextlib.closing(make(config, num_envs=n))) for config, n in self._parts()]
                self._arenas[key] = self._new_arena(key, envs)
                made.pop_all()  # the arena closes them from here on
        return self._arenas[key]

    def _parts(self) -> Iterator[tuple[EnvConfig, int]]:
        """The env's settings and the games of each part; child processes are divided too, at least one for each."""
        setup, splits = self._setup, self._setup.num_splits
        for part in range(splits):
            config, workers = setup.env, setup.env.workers
            if splits > 1 and isinstance(workers, int) and workers:
                config = replace(config, workers=max(_share(workers, part, splits), 1))
            yield config, _share(setup.num_envs, part, splits)

    def _new_arena(self, key: str, envs: Sequence[BatchedEnv]) -> Arena | SplitArena:
        counter = OutcomeCounter(self._spec.teams)
        firsts = itertools.accumulate((env.num_envs for env in envs), initial=0)
        parts = [
            self._new_part(key, part, env, counter, first_game=first)
            for part, (env, first) in enumerate(zip(envs, firsts, strict=False))
        ]
        return parts[0] if len(parts) == 1 else SplitArena(parts)

    def _new_part(self, key: str, part: int, env: BatchedEnv, counter: OutcomeCounter, *, first_game: int) -> Arena:
        place = f"{self._setup.seed}/{self._name}/{key}/{self._generations.get(key, 0)}" + (f"/{part}" if part else "")
        own = self._setup.of(key)
        others = (self._network, *(parts.network for parts in self._own.values()), *self._imported_networks.values())
        return Arena(
            env,
            own.unrolls_of(self._spec, self._parts_for(key).network),
            max_core=max(other.core_size for other in others),
            bootstrap_time_limits=own.learner.bootstrap_time_limits,
            seed=zlib.crc32(place.encode()),
            core_table=self._core_tables.setdefault((key, part), len(self._core_tables)),
            counter=counter,
            first_game=first_game,
            recorder=self._recorder(key, part, num_games=env.num_envs),
            staggered=not self._setup.wait_for_update,
        )

    def _recorder(self, key: str, part: int, *, num_games: int) -> EpisodeRecorder | None:
        """The counter of episodes of an evolving player; None for unrolls, and where nothing is recorded.

        Opposite perturbations are played in parts of the arena: their rounds have equal seeds.
        """
        if not self._setup.of(key).learner.evolves or key == RATING_ARENA:
            return None
        pair = part % max(self._setup.num_splits // 2, 1)
        place = f"{self._setup.seed}/{self._name}/{key}/{self._generations.get(key, 0)}/round/{pair}"
        num_rows = num_games * self._spec.num_seats
        return EpisodeRecorder(num_games=num_games, num_rows=num_rows, seed=zlib.crc32(place.encode()))

    def _policies(
        self, assignments: tuple[Assignment, ...], frozen: Mapping[str, Weights], learners: LearnerClient
    ) -> dict[str, Policy]:
        names = dict.fromkeys(policy for assignment in assignments for policy in assignment.policies)
        # first what is held: else one of them could make room for another
        held = {name: self._frozen_policy(name, frozen) for name in names if name in self._frozen}
        return {name: held[name] if name in held else self._policy(name, frozen, learners) for name in names}

    def _policy(self, name: str, frozen: Mapping[str, Weights], learners: LearnerClient) -> Policy:
        if name in frozen or name in self._frozen or is_bot(name):
            return self._frozen_policy(name, frozen)
        if name not in self._live:
            self._live[name] = self._network_policy(name, self._parts_for(name).acting)
        self._live[name].adopt(learners.weights(name))
        return self._live[name]

    def _frozen_policy(self, name: str, frozen: Mapping[str, Weights]) -> Policy:
        if name not in self._frozen:
            while len(self._frozen) >= MAX_FROZEN:
                del self._frozen[next(iter(self._frozen))]
            self._frozen[name] = self._build_frozen(name, frozen)
        self._frozen[name] = self._frozen.pop(name)
        return self._frozen[name]

    def _build_frozen(self, name: str, frozen: Mapping[str, Weights]) -> Policy:
        if is_bot(name):
            bot = bot_name(name)
            return BotPolicy(make_bot(bot, seed=zlib.crc32(f"{self._setup.seed}/{self._name}/{bot}".encode())))
        policy = self._network_policy(name, self._parts_for(name).acting_frozen)
        policy.adopt(frozen[name])
        return policy

    def _network_policy(self, name: str, acting: ActingKind) -> AdoptingPolicy:
        """A policy without weights; one with a network of its own acts here, by samples from its own distribution."""
        if name in self._imported_networks:
            return NetworkPolicy(self._imported_networks[name], dtype=self._dtype)
        parts = self._parts_for(name)
        if self._inference is not None and parts is self._plain:
            return CentralPolicy(name, self._inference)
        return acting.policy(parts.network, dtype=self._dtype)

    def _adopt(self, player: str, weights: Weights | None) -> None:
        if weights is not None and player in self._live:
            self._live[player].adopt(weights)

    def _chunks(self, player: str, recorded: Record) -> Iterator[bytes]:
        """Collect what was recorded; whole chunks of `chunk_rows` as bytes."""
        pending = self._pending.setdefault(player, [])
        pending.append(recorded)
        rows = self._setup.of(player).chunk_rows
        if sum(part.num_rows for part in pending) < rows:
            return
        everything = concatenate(pending)
        for stop in range(rows, everything.num_rows + 1, rows):
            # A chunk no longer waits once it is handed out: where its lease fails on the way, it is not sent again.
            pending[:] = [everything.rows(stop, everything.num_rows)] if stop < everything.num_rows else []
            yield self._encoded(player, everything.rows(stop - rows, stop))

    def _encoded(self, player: str, recorded: Record) -> bytes:
        """A chunk. Raises EnvError where the env showed or paid what is no number."""
        header = ChunkHeader(
            run=self._setup.run,
            player=player,
            version_min=int(recorded.versions.min()),
            version_max=int(recorded.versions.max()),
            noise=noise_table(self._setup.seed).checksum if self._setup.of(player).learner.evolves else 0,
        )
        try:
            return self._codec.encode(recorded, header)
        except ChunkError as error:
            raise EnvError(f"{self._spec.env_id}: what was recorded cannot be learnt from: {error}") from error


def _host_number(name: str) -> int:
    """The number at the end of an actor host's name; 0 for a host that is the only one."""
    number = name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _share(whole: int, part: int, parts: int) -> int:
    """The share of one part of several; the first ones have one more where they cannot be equal."""
    return whole // parts + (part < whole % parts)
