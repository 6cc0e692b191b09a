"""Everything that hosts build from: games, policies and learners of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from league.agents.acting.kinds.config import DEFAULT_ACTING
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import Weights
from league.config.deadlines import Deadlines
from league.config.player_settings import prefix_of
from league.envs.component_choice import Component
from league.envs.protocol import EnvConfig, EnvSpec


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
      actor_hosts: of the run at its start, at least 1. replay_hosts: that keep the rows of replays; 0 for the learners.
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
    replay_hosts: int = 0
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
