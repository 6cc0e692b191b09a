"""A2C on CartPole in one process: speed, the time to its best return, and what a batch is worth to it."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import replace
from pathlib import Path

import torch

from benchmarks.lineage.sb3 import add_a2c
from benchmarks.report import Report
from league.agents.torch_runtime import prepare_process
from league.config.loading import load_config
from league.config.run_config import RunConfig
from league.core.state.records import Assignment, Lease
from league.envs.registry import spec_of
from league.hosts.actors.actor_host import ActorHost
from league.hosts.inprocess import DirectLearnerClient
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.hosts.protocol import InstallPlayer
from league.run.host_setup import host_setup

CONFIG = Path(__file__).parents[2] / "configs" / "lineage" / "a2c.yaml"
PLAYER = "main-0"
GAMES = (1, 4, 16, 64)
"""Games of one batch. With one, as in A3C, each update is of one actor's five steps."""
BUDGET_CORE_S = 120.0
WARM_STEPS, STEPS = 50, 1_000
RETURN, LAST_GAMES = 475.0, 100


class Training:
    """One learner and one actor host without a league around them."""

    def __init__(self, config: RunConfig) -> None:
        setup = host_setup(config, spec_of(config.env), run="a2c")
        self.learners = SyncLearnerHost(setup, dtype=torch.float32)
        self.learners.install(InstallPlayer(PLAYER))
        self._client = DirectLearnerClient(self.learners)
        self._host = ActorHost(setup, name="actor-0", dtype=torch.float32)
        self._num_envs = config.actors.num_envs

    def play(self, steps: int) -> tuple[int, float]:
        """Step every game so often; returns the games that ended and the sum of their returns."""
        lease = Lease(1, 1, "actor-0", PLAYER, (Assignment((PLAYER,), (True,), 1.0),), steps, 0)
        outcomes = self._host.play(lease, frozen={}, learners=self._client).outcomes
        return sum(item.games for item in outcomes), sum(item.return_sums[0] for item in outcomes)

    def close(self) -> None:
        """Close games and learner."""
        self._host.close()
        self.learners.close()

    @property
    def lag_max(self) -> int:
        """Largest age of a decision in the newest batch, in updates."""
        (progress,) = self.learners.progress()
        return progress.update.lag_max if progress.update else 0

    def env_steps_per_core_s(self) -> float:
        """Steps of all games in a second of one core, after a warm-up."""
        self.play(WARM_STEPS)
        begun = time.process_time()
        self.play(STEPS)
        return STEPS * self._num_envs / (time.process_time() - begun)


def with_games(config: RunConfig, games: int) -> RunConfig:
    """The configuration with so many games, a row of each in every batch."""
    return replace(
        config,
        learner=replace(config.learner, batch_rows=games),
        actors=replace(config.actors, num_envs=games),
    )


def core_s_to_return(config: RunConfig) -> float | None:
    """Core-seconds until the newest `LAST_GAMES` games have the mean `RETURN`; None beyond the budget."""
    training, begun = Training(config), time.process_time()
    newest: deque[tuple[int, float]] = deque()
    while (spent := time.process_time() - begun) < BUDGET_CORE_S:
        training.learners.budget_fraction = spent / BUDGET_CORE_S
        newest.append(training.play(100))
        while sum(games for games, _ in newest) - newest[0][0] >= LAST_GAMES:
            newest.popleft()
        games, total = (sum(column) for column in zip(*newest, strict=True))
        if games >= LAST_GAMES and total / games >= RETURN:
            return time.process_time() - begun
    return None


def report(folder: Path) -> Report:
    """The rows. folder: not used."""
    del folder
    prepare_process()
    config, made = load_config(CONFIG), Report()
    speeds = {}
    for games in GAMES:
        training = Training(with_games(config, games))
        speeds[games] = training.env_steps_per_core_s()
        bound = 6_000.0 if games == 16 else None
        made.add(f"a2c: env steps, {games} games x 5 steps", speeds[games], "/core-s", at_least=bound)
        made.add(f"a2c: largest lag, {games} games", float(training.lag_max), "updates", at_most=0.0)
        training.close()
    made.add("a2c: a batch of 16 games over single ones, env steps", speeds[16] / speeds[1], "x")
    made.add("a2c: a batch of 64 games over single ones, env steps", speeds[64] / speeds[1], "x")
    made.add(f"a2c: CartPole to {RETURN:g}", core_s_to_return(config), "core-s", at_most=60.0)
    add_a2c(made, budget_core_s=BUDGET_CORE_S)
    return made
