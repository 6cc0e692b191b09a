"""One cell of the table of the whole lineage: a training for some core-seconds, and what its policy is worth.

An actor host and a learner host take turns in this process, without a league around them: every seat plays the newest
weights. Core-seconds are those of this process and of the replicas, and begin with the first update.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.lineage.q_learning import score_of
from benchmarks.lineage.systems import Cell
from benchmarks.strength.positions import moves_keep, stored_positions
from league.agents.acting.network_policy import GREEDY, NetworkPolicy
from league.agents.acting.policy import Policy
from league.agents.learner.learner import UpdateReport
from league.agents.nets.network import Network, build_network
from league.agents.weights import Weights, adopt
from league.config.run_config import RunConfig
from league.core.state.records import Assignment, Lease
from league.envs.registry import spec_of
from league.hosts.actors.actor_host import ActorHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.judge.contenders.bots import bot_policy
from league.judge.matches.match import Match
from league.policies.exact.behaviours import Fields, PolicyFunction
from league.policies.exact.exploitability import nash_conv
from league.processes.processor_time import children_cpu_seconds, cpu_seconds
from league.run.host_setup import host_setup

HOME = "main"
MATCH_GAMES = 100
YARDSTICKS: Mapping[str, Sequence[str]] = {"connect_four": ("tactical", "mcts:100"), "kuhn_poker": ()}
"""Game of two seats -> the bots that the greedy policy is measured against."""
EXACT = "kuhn_poker"
"""The game whose exploitability is computed."""

Figures = dict[str, float]


@dataclass
class Meter:
    """The way from the actor host to the learner host, with what went over it.

    Fields:
      chunk_bytes: of rows. sent_bytes: between replicas. updates: of the learner. lags: of each update, in updates, or
        of a server's steps where replicas run on clocks of their own.
    """

    host: SyncLearnerHost
    chunk_bytes: int = 0
    sent_bytes: float = 0.0
    updates: int = 0
    lags: list[float] = field(default_factory=list)

    def push(self, player: str, chunk: bytes) -> Weights | None:
        """As in the protocol."""
        weights = self.host.push(player, chunk)
        self.chunk_bytes += len(chunk)
        report = self.host.newest(player).update
        if report is not None and report.version > self.updates:
            self._count(report)
        return weights

    def weights(self, player: str) -> Weights:
        """As in the protocol."""
        return self.host.published(player)

    def restart(self) -> None:
        """Count from here on."""
        self.chunk_bytes, self.sent_bytes, self.lags = 0, 0.0, []

    def _count(self, report: UpdateReport) -> None:
        """Where a push made several updates, the last one stands for all."""
        self.sent_bytes += report.sent_bytes * (report.version - self.updates)
        self.lags.append(report.group.lag_mean if report.group.lags else report.lag_mean)
        self.updates = report.version


def measured(cell: Cell, *, core_seconds: float, match_games: int = MATCH_GAMES) -> Figures:
    """The figures of a cell.

    Raises:
      ConfigError: its algorithm makes no sense under its mode.
    """
    config = cell.config()
    spec = spec_of(config.env)
    setup = host_setup(config, spec, run="table")
    learners = SyncLearnerHost(setup, dtype=torch.float32)
    with contextlib.closing(learners):
        learners.install(InstallPlayer(HOME))
        actors, meter = ActorHost(setup, name="actor-0", dtype=torch.float32), Meter(learners)
        with contextlib.closing(actors):
            speeds = _spend(actors, meter, config, seats=spec.num_seats, core_seconds=core_seconds)
        weights = learners.published(HOME)
    return {**speeds, **_strength(config, weights, games=match_games)}


def _spend(actors: ActorHost, meter: Meter, config: RunConfig, *, seats: int, core_seconds: float) -> Figures:
    """Play and learn; returns speeds, traffic and lag."""
    table = (Assignment((HOME,) * seats, (True,) * seats, 1.0),)
    begun, number, plies, trained = _spent(), 0, 0, 0
    while _spent() - begun < core_seconds:
        meter.host.budget_fraction = (_spent() - begun) / core_seconds
        number += 1
        lease = Lease(number, 0, "actor-0", HOME, table, config.league.lease_steps)
        plies += actors.play(lease, frozen={}, learners=meter).env_steps
        if not trained and meter.updates:  # replicas have started, and kernels are built
            begun, plies, trained = _spent(), 0, _trained(meter)
            meter.restart()
    spent, decisions = _spent() - begun, _trained(meter) - trained
    per_decision = 1.0 / max(decisions, 1)
    return {
        "core_seconds": spent,
        "plies_per_core_s": plies / spent,
        "decisions_per_core_s": decisions / spent,
        "lag_updates": float(np.mean(meter.lags)) if meter.lags else 0.0,
        "row_bytes_per_decision": meter.chunk_bytes * per_decision,
        "replica_bytes_per_decision": meter.sent_bytes * per_decision,
    }


def _trained(meter: Meter) -> int:
    """Decisions learnt from so far, each once."""
    report = meter.host.newest(HOME).update
    return 0 if report is None else report.trained_steps


def _spent() -> float:
    """Processor seconds of this process and of all below it."""
    return cpu_seconds(os.getpid()) + children_cpu_seconds(os.getpid())


def _strength(config: RunConfig, weights: Weights, *, games: int) -> Figures:
    """Of the policy alone, by its likeliest actions, against what never changes."""
    if config.env.id not in YARDSTICKS:
        return {"mean_return": score_of(config, weights)}
    network = build_network(spec_of(config.env), config.network, seed=0)
    policy = NetworkPolicy(network, choice=GREEDY)
    policy.adopt(weights)
    found: Figures = {}
    if config.env.id == EXACT:
        adopt(network, weights)
        found["nash_conv"] = nash_conv(config.env, _function_of(network))
    else:
        found["critical_positions_kept"] = moves_keep(policy, stored_positions())
    for bot in YARDSTICKS[config.env.id]:
        seats: list[Policy] = [policy, bot_policy(bot, seed=0)]
        found[f"score_{bot}"] = Match(config.env, seats, seed=0, opening_plies=2).play(games).score().value
    return found


def _function_of(network: Network) -> PolicyFunction:
    """A network without memory as a `PolicyFunction`."""

    @torch.inference_mode()
    def probabilities(fields: Fields, legal: NDArray[np.bool_]) -> NDArray[np.floating]:
        output = network.step(
            {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in fields.items()},
            core=torch.zeros(len(legal), 0),
            action_mask=torch.from_numpy(legal),
        )
        probs = network.head.probabilities(output.logits)
        assert probs is not None, "numbered actions have probabilities"
        found: NDArray[np.float32] = probs.numpy()
        return found

    return probabilities
