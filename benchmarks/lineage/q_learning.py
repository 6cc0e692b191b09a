"""Learning by values of actions: DQN on CartPole and TD3 on Pendulum, by processor seconds of one process.

An actor host and a learner host of the shipped configuration take turns in this process, without a league around them.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from benchmarks.report import Report
from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import GREEDY, NetworkPolicy
from league.agents.nets.network import build_network
from league.agents.torch_runtime import prepare_process
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import Weights
from league.config.loading import load_config
from league.config.run_config import RunConfig
from league.core.state.records import Assignment, Lease
from league.envs.registry import make, spec_of
from league.hosts.actors.actor_host import ActorHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.run.host_setup import host_setup

CONFIGS = Path(__file__).parents[2] / "configs" / "lineage"
HOME = "main"
SEEDS = (0, 1)
GAMES = 20
"""Of one judgement, by the greedy policy."""
STEPS = 500
"""Of each of these games: the longest of CartPole, and more than one of Pendulum."""
EVERY_S = 5.0
"""Processor seconds between two judgements, which are not counted."""


@dataclass(frozen=True)
class Judged:
    """Mean return of greedy games after so many processor seconds and env steps."""

    core_s: float
    env_steps: int
    score: float


class _Learners:
    """The way from the actor host to the learner host."""

    def __init__(self, host: SyncLearnerHost) -> None:
        self._host = host

    def push(self, player: str, chunk: bytes) -> Weights | None:
        return self._host.push(player, chunk)

    def weights(self, player: str) -> Weights:
        return self._host.published(player)


def curve(config: RunConfig, *, core_s: float) -> Iterator[Judged]:
    """Train for so many processor seconds, and judge on the way."""
    spec = spec_of(config.env)
    setup = host_setup(config, spec, run="benchmark")
    learners = SyncLearnerHost(setup, dtype=torch.float32)
    learners.install(InstallPlayer(HOME))
    actors, client = ActorHost(setup, name="actor-0", dtype=torch.float32), _Learners(learners)
    table = (Assignment((HOME,) * spec.num_seats, (True,) * spec.num_seats, 1.0),)
    used, judged_at, env_steps, number = 0.0, 0.0, 0, 0
    with contextlib.closing(learners), contextlib.closing(actors):
        while used < core_s:
            start, number = time.process_time(), number + 1
            learners.budget_fraction = used / core_s
            lease = Lease(number, 0, "actor-0", HOME, table, config.league.lease_steps)
            env_steps += actors.play(lease, frozen={}, learners=client).env_steps
            used += time.process_time() - start
            if used - judged_at >= EVERY_S or used >= core_s:
                judged_at = used
                yield Judged(used, env_steps, score_of(config, client.weights(HOME)))


def score_of(config: RunConfig, weights: Weights) -> float:
    """Mean return of greedy games."""
    spec = spec_of(config.env)
    network = build_network(spec, config.network, seed=0)
    policy = NetworkPolicy(network, choice=GREEDY)
    policy.adopt(weights)
    arena = Arena(make(config.env, num_envs=GAMES), UnrollSpec.of(spec, network, unroll_length=1), seed=1)
    games, returns = 0, 0.0
    with contextlib.closing(arena):
        for _ in arena.run([Assignment((HOME,), (False,), 1.0)], {HOME: policy}, steps=STEPS):
            pass
        for totals in arena.take_outcomes():
            games, returns = games + totals.games, returns + float(totals.return_sums[0])
    return returns / max(games, 1)


def curves(name: str, *, core_s: float, enough: float | None = None) -> list[list[Judged]]:
    """The curves of a shipped configuration over the seeds, each until a judgement is good enough."""
    prepare_process()
    found: list[list[Judged]] = []
    for seed in SEEDS:
        config = replace(load_config(CONFIGS / f"{name}.yaml"), seed=seed)
        found.append([])
        for judged in curve(config, core_s=core_s):
            print(f"{name}, seed {seed}: {judged}", flush=True)
            found[-1].append(judged)
            if enough is not None and judged.score >= enough:
                break
    return found


def q_learning(folder: Path) -> Report:
    """The rows of this part."""
    del folder
    report = Report()
    for seed, judged in zip(SEEDS, curves("dqn", core_s=90.0, enough=475.0), strict=True):
        reached = judged[-1].core_s if judged[-1].score >= 475.0 else None
        report.add(f"DQN on CartPole, seed {seed}: core-seconds to a return of 475", reached, "s", at_most=90.0)
    for seed, judged in zip(SEEDS, curves("td3", core_s=300.0), strict=True):
        score = judged[-1].score
        report.add(f"TD3 on Pendulum, seed {seed}: return after 300 core-seconds", score, "", at_least=-250.0)
    return report
