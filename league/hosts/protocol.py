"""The interface between the daemon and a runtime: tasks go in, reports come out, and no truth lives in it.

A runtime owns the hosts: it starts them, notices when one is lost or hangs, and starts another in its place. Whatever a
lost host held is gone; the daemon rebuilds it from the journal and the stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from league.agents.acting.kinds.config import DEFAULT_ACTING
from league.agents.learner.config import LearnerConfig
from league.agents.learner.learner import UpdateReport
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import Weights
from league.config.deadlines import Deadlines
from league.config.player_settings import prefix_of
from league.core.state.commands import FinishLease
from league.core.state.records import Assignment, Hyperparameter, Lease, Progress
from league.envs.component_choice import Component
from league.envs.failures import GameFailure
from league.envs.protocol import EnvConfig, EnvSpec
from league.store.run_folder import WorkerStatus

Arrays = dict[str, NDArray[np.generic]]
"""A host's restart state as plain arrays by name."""


@dataclass(frozen=True)
class HostSetup:
    """Everything a host needs to build its env, its policies and its learners.

    Fields:
      run: name of the run.
      env, network, learner: settings.
      num_envs: games that an actor host steps at once. num_splits: parts of them that take turns.
      chunk_rows: unrolls sent to the learner in one piece.
      players: prefix of a group's ids -> setup of its players, where these have settings of their own.
      seed: of the run.
      teacher: weights of the policy that `learner.teacher_cost` is about.
      imported_networks: policy id -> network of each frozen policy from outside, where it need not be the run's.
      deadlines: how long hosts wait for each other.
      logs: folder for the hosts' logs; empty for none. rows: for the rows of replays in files; empty for none.
      games, wait_for_update: as in `actors`.
      acting, acting_frozen: how players and frozen policies act. recorded: the further fields that players record.
      actor_hosts: of the run at its start, at least 1.
      inference: name of the inference host's address, where policies act there; empty where they act at the actors.
    """

    run: str
    env: EnvConfig
    network: NetworkConfig
    learner: LearnerConfig
    num_envs: int
    chunk_rows: int
    seed: int
    teacher: Weights | None = None
    imported_networks: Mapping[str, NetworkConfig] = field(default_factory=dict)
    deadlines: Deadlines = field(default_factory=Deadlines)
    logs: str = ""
    rows: str = ""
    inference: str = ""
    num_splits: int = 1
    games: str = "host"
    wait_for_update: bool = False
    acting: Component = DEFAULT_ACTING
    acting_frozen: Component = DEFAULT_ACTING
    recorded: tuple[str, ...] = ()
    actor_hosts: int = 1
    players: Mapping[str, HostSetup] = field(default_factory=dict)

    def of(self, player: str) -> HostSetup:
        """The setup of a player or of its snapshots: this one, unless it has settings of its own."""
        return self.players.get(prefix_of(player), self)

    def unrolls_of(self, spec: EnvSpec, network: Network) -> UnrollSpec:
        """The spec of what players record. spec: of the game. network: of the players."""
        learner = self.learner
        return UnrollSpec.of(
            spec,
            network,
            unroll_length=learner.unroll_length,
            per_episode=learner.per_episode,
            recorded=self.recorded,
        )


@dataclass(frozen=True)
class PlayLease:
    """For an actor host: play under a lease.

    frozen: weights of the named snapshots, but for those that the runtime keeps. networks: of those from outside that
      joined after the host was built.
    """

    lease: Lease
    frozen: Mapping[str, Weights]
    networks: Mapping[str, NetworkConfig] = field(default_factory=dict)


@dataclass(frozen=True)
class InstallPlayer:
    """For a learner host: hold a player's learner, from a checkpoint, from weights, or (both None) from new ones.

    hyperparameters: (name, factor) of its tuned values, see `league.hosts.learners.hyperparameters`.
    trained_steps: those of the player when it was as in `weights`; a checkpoint holds its own.
    learner: settings of learners as they are now; None for those of the setup.
    generation: of the player's weights, see `Lease`; rows of another one in a replay are those of its past self.
    """

    player: str
    saved: Arrays | None = None
    weights: Weights | None = None
    hyperparameters: tuple[Hyperparameter, ...] = ()
    trained_steps: int = 0
    learner: LearnerConfig | None = None
    generation: int = 0


@dataclass(frozen=True)
class Reconfigure:
    """For a learner host: the player's learner has these settings from its next update on. No answer comes.

    learner: settings with the player's own hyperparameters in them.
    """

    player: str
    learner: LearnerConfig


@dataclass(frozen=True)
class TakeSnapshot:
    """For a learner host: answer with the player's weights as they are now."""

    directive_id: int
    player: str


@dataclass(frozen=True)
class ResetPlayer:
    """For a learner host: start the player again from these weights."""

    directive_id: int
    player: str
    weights: Weights


@dataclass(frozen=True)
class TakeCheckpoint:
    """For a learner host: answer with the player's restart state."""

    player: str


Task = PlayLease | InstallPlayer | Reconfigure | TakeSnapshot | ResetPlayer | TakeCheckpoint


@dataclass(frozen=True)
class HostStarted:
    """A host is there, empty. kind: "actor_host" or "learner_host"; players: whom a learner host is to hold."""

    host: str
    kind: str
    players: tuple[str, ...] = ()


@dataclass(frozen=True)
class HostLost:
    """A host died or hung and was ended; all it held and every task it had is lost.

    players: whom a learner host held.
    parked_s: where it was lost so often in a row that it is parked, the time after which it is tried again; else 0.
    for_good: whether its machine went with it, so that it does not come back.
    """

    host: str
    kind: str
    reason: str
    players: tuple[str, ...] = ()
    parked_s: float = 0.0
    for_good: bool = False


@dataclass(frozen=True)
class HostStuck:
    """A host is in a call that has not come back for long; it is not lost yet. text: which call, and for how long."""

    host: str
    text: str


@dataclass(frozen=True)
class Remark:
    """A sentence for the user."""

    text: str


@dataclass(frozen=True)
class PlayerInstalled:
    """Answer to `InstallPlayer`."""

    player: str


@dataclass(frozen=True)
class LeaseDone:
    """Answer to a lease, as the league is to have it. failures: of single games of the host since its last answer."""

    host: str
    answer: FinishLease
    failures: tuple[GameFailure, ...] = ()


@dataclass(frozen=True)
class LeaseLost:
    """A lease came to nothing although its host lives (its learner was lost)."""

    host: str
    lease_id: int
    reason: str


@dataclass(frozen=True)
class SnapshotTaken:
    """Answer to `TakeSnapshot`."""

    directive_id: int
    player: str
    weights: Weights
    trained_steps: int


@dataclass(frozen=True)
class ResetDone:
    """Answer to `ResetPlayer`."""

    directive_id: int


@dataclass(frozen=True)
class CheckpointTaken:
    """Answer to `TakeCheckpoint`."""

    progress: Progress
    saved: Arrays


@dataclass(frozen=True)
class LearnerProgress:
    """Progress of one player.

    Fields:
      update: the newest, None before the first. skipped: updates left out as not finite.
      refused: chunks that turned out to be damaged, since the host held the player first.
    """

    progress: Progress
    update: UpdateReport | None
    skipped: int
    refused: int = 0


Report = (
    HostStarted
    | HostLost
    | HostStuck
    | Remark
    | PlayerInstalled
    | LeaseDone
    | LeaseLost
    | SnapshotTaken
    | ResetDone
    | CheckpointTaken
    | LearnerProgress
)


@dataclass(frozen=True)
class HostState:
    """All that the actor hosts hold, for a runtime that can continue exactly; empty for one that cannot.

    Fields:
      arrays: games, unfinished unrolls and unsent ones, by name.
      assignments: those of the games in flight, by arena.
      generations: of the home player's weights, by arena; see `Lease`.
    """

    arrays: Arrays = field(default_factory=dict)
    assignments: Mapping[str, tuple[Assignment, ...]] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)

    @property
    def policies(self) -> frozenset[str]:
        """Everybody who plays in a game in flight."""
        return frozenset(
            policy for table in self.assignments.values() for assignment in table for policy in assignment.policies
        )


@dataclass(frozen=True)
class NodeInfo:
    """A machine of the runtime.

    Fields:
      name: for people. address: its IP address.
      cpus, gpus: that hosts may use. hosts: those that are up there.
    """

    name: str
    address: str
    cpus: float
    gpus: float
    hosts: tuple[str, ...] = ()


class Runtime(Protocol):
    """Runs hosts. Calls come from one thread."""

    def start(self) -> None:
        """Bring up every host; their `HostStarted` reports come with the first polls.

        Raises:
          LeagueError: it cannot be brought up; one sentence with what to do.
        """
        ...

    def submit(self, task: Task) -> None:
        """Give a task to the host that it concerns; its answer comes with a later poll unless the host is lost."""
        ...

    def poll(self, timeout_s: float, *, budget_fraction: float) -> list[Report]:
        """The reports since the last call; waits up to `timeout_s` for one.

        Args:
          budget_fraction: part of the budget spent, in [0, 1]; learners use the newest one that they were sent.
        """
        ...

    def keeps(self, snapshot: str) -> bool:
        """True if it has the weights of a snapshot: the next lease that names it need not bring them."""
        ...

    def workers(self) -> tuple[WorkerStatus, ...]:
        """The processes of the runtime."""
        ...

    def add_actor_host(self) -> str:
        """Start another actor host; returns its name, which no other has had. Its `HostStarted` comes with a poll.

        Raises:
          LeagueError: this runtime has one for good.
        """
        ...

    def remove_actor_host(self, name: str) -> None:
        """End an actor host and forget it; one that is gone already is no error. No report comes.

        A lease that it has is the caller's to give up. Where hosts follow the machines, no other takes its CPU.

        Raises:
          LeagueError: this runtime has one for good.
        """
        ...

    def remove_learner_host(self, name: str) -> tuple[str, ...]:
        """End a learner host and forget it; returns the players that it held. No report comes.

        Those belong to the other learner hosts from then on. `InstallPlayer` has one hold a player.

        Raises:
          LeagueError: this runtime has one for good.
        """
        ...

    def nodes(self) -> tuple[NodeInfo, ...]:
        """The machines of the runtime, as last seen."""
        ...

    def close(self) -> None:
        """End every host within a few seconds; may be called twice."""
        ...


@runtime_checkable
class DeterministicRuntime(Protocol):
    """A runtime that can also save what its actor hosts hold, so that a resumed run equals an uninterrupted one."""

    @property
    def has_work(self) -> bool:
        """True until every task has ended and reported: what is decided before depends on how long the tasks take."""
        ...

    def save_hosts(self) -> HostState | None:
        """The state of all actor hosts between two leases; None where an env cannot be saved, or within a task."""
        ...

    def load_hosts(self, state: HostState, frozen: Mapping[str, Weights]) -> None:
        """Continue from a saved state. frozen: weights of every snapshot in it."""
        ...

    def abandon(self) -> None:
        """Continue without the current task and the waiting leases: its env hangs and cannot be stopped."""
        ...
