"""Evolution strategies: CartPole to a return of 475, and scaling to 1,440 workers, simulated from measured costs.

The processor seconds of CartPole are those of playing and learning in one process; judging every few updates is not
counted. An episode of the simulation takes a second, as 1,000 steps of a physical simulation of a millisecond do: the
costs of the strategy itself are measured here.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch

from benchmarks.lineage.cmaes_alone import add_rows
from benchmarks.lineage.es_workers import ESCosts, efficiency
from benchmarks.report import Report
from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import GREEDY, NetworkPolicy
from league.agents.learner.algorithms.objective import LossWeights
from league.agents.learner.config import LearnerConfig
from league.agents.learner.evolution.evolution_updater import make_evolving
from league.agents.learner.evolution.noise_table import noise_table
from league.agents.learner.evolution.published import EvolvedWeights
from league.agents.learner.evolution.step import EvolutionState
from league.agents.learner.step.updater import UpdateInputs
from league.agents.nets.network import build_network
from league.agents.unroll.episodes import SeatEpisodes
from league.agents.weights import Layout, Weights
from league.config.loading import load_config
from league.core.state.records import Assignment, Lease
from league.envs.registry import make, spec_of
from league.hosts.actors.actor_host import ActorHost
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.hosts.setup import HostSetup
from league.run.host_setup import host_setup

CONFIGS = Path(__file__).parents[2] / "configs" / "lineage"
PLAYER, SOLVED, JUDGED_GAMES, JUDGED_EVERY = "main-0", 475.0, 50, 4
SEEDS = (0, 1)
WORKERS, BESIDE = 1_440, 18
EPISODES, NUM_WEIGHTS, EPISODE_S = 10_000, 20_000, 1.0
REQUIRED_EFFICIENCY, REQUIRED_S = 0.85, 240.0


def evolution(folder: Path) -> Report:
    """Both figures. folder: unused."""
    del folder
    report = Report()
    report.add(
        f"es: efficiency of {WORKERS:,} simulated workers beside {BESIDE}",
        simulated_efficiency(),
        "of linear",
        at_least=REQUIRED_EFFICIENCY,
    )
    for kind in ("es", "cmaes"):
        times = [seconds_to_solve(CONFIGS / f"{kind}.yaml", seed=seed, longest=REQUIRED_S) for seed in SEEDS]
        for seed, seconds in zip(SEEDS, times, strict=True):
            name = f"{kind}: CartPole to a return of {SOLVED:g}, seed {seed}"
            if seconds is None:
                report.add(f"{name}: not reached in", REQUIRED_S, "core-s", at_most=0.0)
            else:
                report.add(name, seconds, "core-s", at_most=REQUIRED_S)
    add_rows(report, longest=REQUIRED_S)
    return report


def simulated_efficiency() -> float:
    """The part of linear scaling, from the measured costs of one update."""
    return efficiency(measured_costs(), workers=WORKERS, beside=BESIDE, updates=6)


def measured_costs() -> ESCosts:
    """Costs of an update of `NUM_WEIGHTS` weights from `EPISODES` episodes, here and now."""
    rng, values = np.random.default_rng(0), np.zeros(NUM_WEIGHTS, np.float32)
    options = {"kind": "es", "evaluations": EPISODES}
    updater = make_evolving(values, LearnerConfig(algorithm=options, max_policy_lag=0), seed=0)
    indices = rng.choice(1 << 20, size=EPISODES // 2, replace=False) + 1
    numbers = np.concatenate([indices, -indices]).astype(np.int32)
    ones = np.ones(EPISODES, np.int32)
    episodes = SeatEpisodes(
        perturbations=numbers, returns=rng.random(EPISODES).astype(np.float32), decisions=ones, versions=0 * ones
    )
    inputs = UpdateInputs(0.01, LossWeights(0.0, 1.0), 0, 1)
    most = episodes.rows(0, EPISODES - 1)
    take_s = _seconds(lambda: updater.update([most], inputs)) / EPISODES
    step_s = _seconds(lambda: updater.update([episodes.rows(EPISODES - 1, EPISODES)], inputs))
    published = updater.published(Weights(updater.weights(), Layout(("w",), ((NUM_WEIGHTS,),)), 1))
    assert isinstance(published, EvolvedWeights)
    state, (step,) = EvolutionState.of(values), published.steps
    rebuild_s = _seconds(lambda: state.after(step, noise_table(0)))
    return ESCosts(EPISODE_S, EPISODES, take_s=take_s, step_s=step_s, rebuild_s=rebuild_s)


def seconds_to_solve(path: Path, *, seed: int, longest: float) -> float | None:
    """Processor seconds until the unperturbed policy returns `SOLVED`; None where it does not within `longest`."""
    torch.set_num_threads(1)
    config = dataclasses.replace(load_config(path), seed=seed)
    spec = spec_of(config.env)
    setup = host_setup(config, spec, run="benchmark")
    learners = SyncLearnerHost(setup, dtype=torch.float32)
    learners.install(InstallPlayer(PLAYER))
    actor = ActorHost(setup, name="actor-0", dtype=torch.float32)
    table, spent, version = (Assignment((PLAYER,), (True,), 1.0),), 0.0, 0
    try:
        for number in range(1 << 20):
            lease = Lease(number, 0, "actor-0", PLAYER, table, config.league.lease_steps)
            spent += _seconds(lambda lease=lease: actor.play(lease, frozen={}, learners=_Clients(learners)))  # type: ignore[misc]
            weights = learners.published(PLAYER)
            if weights.version >= version + JUDGED_EVERY:
                version = weights.version
                if _mean_return(setup, weights) >= SOLVED:
                    return spent
            if spent > longest:
                return None
        return None
    finally:
        actor.close()
        learners.close()


class _Clients:
    """The way of an actor host to learners of the same process."""

    def __init__(self, learners: SyncLearnerHost) -> None:
        self._learners = learners

    def push(self, player: str, chunk: bytes) -> Weights:
        return self._learners.push(player, chunk)

    def weights(self, player: str) -> Weights:
        return self._learners.published(player)


def _mean_return(setup: HostSetup, weights: Weights) -> float:
    """Of the likeliest actions of unperturbed weights."""
    spec = spec_of(setup.env)
    network = build_network(spec, setup.network, seed=0)
    policy = NetworkPolicy(network, choice=GREEDY)
    policy.adopt(weights)
    arena = Arena(make(setup.env, num_envs=JUDGED_GAMES), setup.unrolls_of(spec, network), seed=9)
    try:
        for _ in arena.run((Assignment((PLAYER,), (False,), 1.0),), {PLAYER: policy}, steps=500):
            pass
        (totals,) = arena.take_outcomes()
        return float(totals.return_sums[0]) / max(totals.games, 1)
    finally:
        arena.close()


def _seconds(call: Callable[[], object]) -> float:
    begun = time.process_time()
    call()
    return time.process_time() - begun
