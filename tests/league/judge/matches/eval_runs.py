"""Small run folders and rules of play for the tests: a real journal, real snapshots of tiny networks, no training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray

from league.agents.acting.policy import ActInputs, ActOutputs
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.config.game_kind import kind_of_run
from league.config.run_config import EvaluationConfig, RunConfig, dump_config
from league.core.state.commands import (
    BeginProbe,
    ConfirmSnapshot,
    CreateLeague,
    EndProbe,
    FinishLease,
    RequestLease,
    RequestSnapshot,
    SaveCheckpoint,
    StartRun,
)
from league.core.state.events import LeaseGranted
from league.core.state.league_config import LeagueConfig, PlayerConfig
from league.core.state.records import Assignment, AssignmentOutcome, Directive, ProbeOutcome, ProbeReading
from league.envs.protocol import EnvConfig
from league.envs.registry import spec_of
from league.policies.loaded_policy import LoadedMixture, LoadedPolicy
from league.policies.policy_store import network_plain, spec_hash
from league.store.checkpoints import CheckpointStore
from league.store.journaled_league import JournaledLeague
from league.store.run_folder import RunFolder
from league.store.snapshots import LocalSnapshotStore, SnapshotManifest, sha256_hex
from tests.agents.learner.learner_cases import weights_in

TINY = NetworkConfig(hidden=(8,))
TINY_LSTM = NetworkConfig(hidden=(8,), core="lstm", core_size=4)

FOUR = EnvConfig("connect_four")
EMPTY_BOARD = np.zeros((2, 6, 7), np.bool_)

ActionRule = Callable[[ActInputs], NDArray[np.generic]]


class RulePolicy:
    """A seat policy that follows a rule and remembers all inputs that it was asked about."""

    version = 0

    def __init__(self, rule: ActionRule, *, core_size: int = 0) -> None:
        self.core_size = core_size
        self.asked: list[tuple[int, ...]] = []
        self._rule = rule

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        self.asked.append(tuple(inputs.turn.env_index[inputs.slots].tolist()))
        return ActOutputs(self._rule(inputs), np.zeros(len(inputs.slots), np.float32), inputs.core + 1)


def first_legal(inputs: ActInputs) -> NDArray[np.int64]:
    assert inputs.turn.action_mask is not None
    return inputs.turn.action_mask[inputs.slots].argmax(axis=1)


def always(action: int) -> ActionRule:
    return lambda inputs: np.full(len(inputs.slots), action, np.int64)


def network_of(config: RunConfig, *, seed: int) -> Network:
    return build_network(spec_of(config.env), config.network, seed=seed)


def constant_network(config: RunConfig, *, action: int) -> Network:
    """A network whose policy puts nearly everything on one action."""
    network = network_of(config, seed=0)
    linear = network.blocks[-1].module.linear
    linear.weight.data.zero_()
    linear.bias.data.zero_()
    linear.bias.data[action] = 30.0
    return network


def scaled(network: torch.nn.Module) -> torch.nn.Module:
    """Larger policy weights, so that the memory decides between actions."""
    network.blocks[-1].module.linear.weight.data.mul_(300.0)  # type: ignore[operator, union-attr]
    return network


def column_of(policy: LoadedPolicy | LoadedMixture) -> int:
    action = policy.act({"board": EMPTY_BOARD})
    assert isinstance(action, int)
    return action


class MadeRun:
    """A run folder in the making. Main agents from `main-0` on and one `main-exploiter-0`."""

    def __init__(
        self,
        path: Path,
        *,
        env: EnvConfig,
        network: NetworkConfig = TINY,
        main_agents: int = 1,
        evaluation: EvaluationConfig | None = None,
    ) -> None:
        settings = LeagueConfig(players=(PlayerConfig(count=main_agents), PlayerConfig(role="main_exploiter")))
        self.config = RunConfig(env=env, network=network, league=settings, evaluation=evaluation or EvaluationConfig())
        self.folder = RunFolder.create(path, config_yaml=dump_config(self.config))
        self.path = path
        self._store = LocalSnapshotStore(self.folder.snapshots_path)
        self._league = JournaledLeague.create(self.folder.journal_path, wall_time=lambda: 0.0)
        spec = spec_of(env)
        self._league.execute(CreateLeague(0, spec.num_seats, spec.teams, settings, kind=kind_of_run(self.config, spec)))
        self._league.execute(StartRun())
        self._league.commit()

    def snapshot(self, player: str, network: Network, *, version: int = 0, trained_steps: int = 0) -> str:
        """Carry out the player's open snapshot order, or one made for it; returns the snapshot's id."""
        if not self._open_directives(player):
            self._league.execute(RequestSnapshot(player, "manual"))
        directive = self._open_directives(player)[0]
        weights = weights_in(network, version=version)
        payload = safetensors.numpy.save(weights.named())
        manifest = SnapshotManifest(
            digest=sha256_hex(payload),
            player=player,
            role=self._league.state.players[player].role,
            parent=None,
            version=version,
            trained_steps=trained_steps,
            env_id=self.config.env.id,
            env_spec_hash=spec_hash(spec_of(self.config.env)),
            env=self.config.env.kwargs,
            network=network_plain(self.config.network),
        )
        self._store.put(payload, manifest)
        self._league.execute(ConfirmSnapshot(directive.directive_id, manifest.digest, version, trained_steps))
        self._league.commit()
        return list(self._league.state.snapshots)[-1]

    def save(self, player: str, network: Network, *, trained_steps: int) -> None:
        """Store a restart state of the player's learner."""
        payload = safetensors.numpy.save({"values": weights_in(network).vector})
        digest = CheckpointStore(self.folder.checkpoints_path).put(player, payload)
        self._league.execute(SaveCheckpoint(player, digest, 1, trained_steps))
        self._league.commit()

    def snapshot_folder(self, snapshot_id: str) -> Path:
        return self._store.folder(self._league.state.snapshots[snapshot_id].digest)

    def measure(self, snapshot_id: str, reading: ProbeReading) -> None:
        """A probe of a snapshot found this."""
        self._league.execute(BeginProbe("mean_return", snapshot_id))
        self._league.execute(EndProbe(ProbeOutcome(self._league.state.probes.begun, (reading,), 1.0)))
        self._league.commit()

    def rate(self, strength: Callable[[str], float]) -> None:
        """Rating matches in which the policy of greater strength wins every game, equal ones draw."""
        self._rate(lambda first, second: np.sign(strength(first) - strength(second)))

    def rate_cycle(self, hands: Mapping[str, int]) -> None:
        """Rating matches of policies that each always show one hand: 1 beats 0, 2 beats 1, 0 beats 2."""
        self._rate(lambda first, second: (0, 1, -1)[(hands[first] - hands[second]) % 3])

    def _rate(self, winner: Callable[[str, str], float], *, leases: int = 12, games: int = 20) -> None:
        for _ in range(leases):
            granted = [
                event
                for event in self._league.execute(RequestLease("host-0", "rate"))
                if isinstance(event, LeaseGranted)
            ]
            lease = granted[0].lease
            outcomes = tuple(_outcome(assignment, winner, games) for assignment in lease.assignments)
            self._league.execute(FinishLease(lease.lease_id, lease.token, 100, outcomes))
        self._league.commit()

    def close(self) -> Path:
        self._league.close()
        return self.path

    def _open_directives(self, player: str) -> list[Directive]:
        return self._league.state.open_directives(player)


def _outcome(assignment: Assignment, winner: Callable[[str, str], float], games: int) -> AssignmentOutcome:
    """winner(first, second) is 1 where the first seat's policy wins every game, -1 where it loses them, else 0."""
    result = winner(*assignment.policies)
    return AssignmentOutcome(
        policies=assignment.policies,
        games=games,
        aborted=0,
        decisions=games * 10,
        wins=((0, games * int(result > 0)), (games * int(result < 0), 0)),
        draws=((0, games * int(result == 0)), (games * int(result == 0), 0)),
        return_sums=(0.0, 0.0),
    )
