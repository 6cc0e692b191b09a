"""Random configurations of runs that must repeat, and delays that must not show in what they do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import tests.envs.probe_ids  # noqa: F401 - also where it runs without pytest
from league.hosts.actors.actor_host import ActorHost
from league.hosts.inprocess import InProcessRuntime
from league.hosts.learners.sync_learner_host import SyncLearnerHost
from league.policies.policy_store import PolicyStore
from league.run.budget import Meter
from league.run.daemon import POLL_S
from league.store.journaled_league import JournaledLeague
from tests.league.tiny_runs import checkpoints_of, head_of, start, state_of, tiny

GAMES: tuple[dict[str, Any], ...] = (
    {"id": "tic_tac_toe"},
    {"id": "repeated_rock_paper_scissors"},
    {"id": "kuhn_poker"},
    {"id": "team_rock_paper_scissors"},
    {"id": "probe_sub_actions"},
    {"id": "tic_tac_toe", "workers": 2},
)
POPULATIONS: tuple[dict[str, Any], ...] = (
    {"preset": "self_play"},
    {"preset": "fictitious"},
    {"preset": "window"},
    {"preset": "alphastar"},
    {"preset": "openai_five"},
    {"preset": "psro"},
    {},
)


PIPELINES: tuple[dict[str, Any], ...] = (
    {},
    {},
    {"pipeline": {"backend": "data_parallel", "threads": 2}},
    {"pipeline": {"backend": "threaded_pipeline", "stages": 2}, "microbatches": 2},
)


def random_configuration(seed: int, *, env_steps: int) -> dict[str, Any]:
    """A small run in one process, plain values: every section has something that a daemon's cycle could decide."""
    draw = random.Random(seed)
    num_envs = draw.choice((2, 5, 12, 40))
    game = draw.choice(GAMES)
    plain = tiny(
        seed=seed,
        env=game,
        adapt=draw.random() < 0.5,
        network={"hidden": [8], **draw.choice(({}, {}, {"core": "lstm", "core_size": 4}))},
        learner={
            "unroll_length": draw.choice((2, 4)),
            "batch_rows": draw.choice((8, 16)),
            "precision": draw.choice(("float32", "float32", "auto")),
            "algorithm": draw.choice(("vtrace", "ppo", "appo")),
            **draw.choice(PIPELINES),
        },
        actors={
            "num_envs": num_envs,
            "num_splits": draw.choice((1, 2)),
            "inference": draw.choice(("local", "local", "central")),
        },
        runtime={
            "snapshots_per_budget": draw.choice((0, 3, 11, 40)),
            "checkpoint_updates": draw.choice((3, 50)),
            "checkpoint_seconds": draw.choice((1.0, 60.0)),
            "snapshot_seconds": draw.choice((1.0, 300.0)),
        },
        budget={"env_steps": env_steps},
    )
    plain["league"] |= {"lease_steps": draw.choice((3, 16, 50))}
    population = draw.choice(POPULATIONS)
    if population:
        plain["league"] = {**plain["league"], **population, "population": {"save_steps": draw.choice((200, 600))}}
        plain["league"].pop("players")
        plain["league"].pop("payoff")
    if draw.random() < 0.3:
        plain["league"] |= {"preset": "pbt", "population": {"main_agents": 3, "save_steps": 300}}
        plain["league"].pop("players", None)
        plain["league"]["pbt"] = {"period_steps": 200, "burn_in_steps": 200, "min_games": 2}
    return plain


def run_record(folder: Path, plain: dict[str, Any], *, run: str) -> tuple[object, ...]:
    """What must repeat of a new run that spends its whole budget: its journal without times, and every weight."""
    start(folder, plain, env_steps=plain["budget"]["env_steps"], run=run)
    snapshots = {name: info.digest for name, info in state_of(folder / run).snapshots.items()}
    return head_of(folder / run), checkpoints_of(folder / run), snapshots


@contextmanager
def slowed(seed: int, *, sleep: Callable[[float], object] = time.sleep) -> Iterator[None]:
    """Random delays in games, learning, storage and the daemon's cycle, whose polls end early or late.

    Args:
      sleep: takes seconds.
    """
    draw = random.Random(seed)

    def late(method: Callable[..., Any], longest_s: float) -> Callable[..., Any]:
        def delayed(*args: Any, **kwargs: Any) -> Any:
            if draw.random() < 0.2:
                sleep(draw.random() * longest_s)
            return method(*args, **kwargs)

        return delayed

    poll, now, ahead = InProcessRuntime.poll, Meter.now, [0.0]

    def fast_clock(self: Meter) -> float:
        ahead[0] += draw.choice((0.0, 0.0, 1.0, 20.0))
        return now(self) + ahead[0]

    def poll_for_any_time(self: InProcessRuntime, timeout_s: float, *, budget_fraction: float) -> Any:
        timeout_s = draw.choice((0.0, 0.001, 0.003, timeout_s))
        return poll(self, timeout_s, budget_fraction=budget_fraction)

    with (
        mock.patch.object(InProcessRuntime, "poll", poll_for_any_time),
        mock.patch.object(Meter, "now", fast_clock),
        mock.patch.object(ActorHost, "play", late(ActorHost.play, 2 * POLL_S)),
        mock.patch.object(SyncLearnerHost, "push", late(SyncLearnerHost.push, POLL_S)),
        mock.patch.object(PolicyStore, "put_snapshot", late(PolicyStore.put_snapshot, POLL_S)),
        mock.patch.object(JournaledLeague, "commit", late(JournaledLeague.commit, POLL_S)),
    ):
        yield
