"""Lower bound of the cost of a ply: the env, the forward pass and the update, each alone at its best batch size.

Beside it the cost of a ply of one player that meets nobody but itself, from its parts in the sizes of a run. A ply is
one env step of one game: where seats act at once it holds several decisions.

Every rate is per second of this process's own CPU time, so that other work on the machine does not count.
Shape letters: N games, R unrolls in a batch, T unroll length.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.policy import ActInputs, Policy
from league.agents.learner.build import build_learner
from league.agents.learner.config import LearnerConfig
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import build_network
from league.agents.unroll.codec import ChunkHeader, Lz4Codec
from league.agents.unroll.unroll import Unrolls, UnrollSpec, concatenate
from league.core.state.records import Assignment
from league.envs.protocol import BatchedEnv, EnvConfig, EnvSpec, Turn
from league.envs.registry import make

WARM_CALLS = 3
"""Calls before the clock starts."""

FRESH_TURNS = 12
"""Random turns before a forward pass is timed, so that the boards are not empty."""

PLIES_COUNTED = 200
"""Of each game, in which decisions are counted."""

ACTING_STEPS = 8
"""Of every game in one timed call."""

UPDATE_ROWS = (64, 128, 256, 512)
"""Batch sizes tried for the update, unrolls."""

FOREVER = 1 << 30
"""A policy lag that nothing reaches: the ready batch is learnt from again and again."""


@dataclass(frozen=True)
class Parts:
    """Rates of the parts, each alone.

    Fields:
      env: plies per core-second. forward, update, codec: decisions per core-second.
      decisions: in a ply.
    """

    env: float
    forward: float
    update: float
    codec: float
    decisions: float = 1.0

    @property
    def bound(self) -> float:
        """Plies per core-second if every decision were learnt from and nothing else cost anything."""
        return self.bound_learning(self.decisions)

    def bound_learning(self, learnt: float) -> float:
        """The same where so many decisions of a ply are learnt from: a frozen opponent's are not."""
        return 1.0 / (1.0 / self.env + self.decisions / self.forward + learnt / self.update)


@dataclass(frozen=True)
class RunParts:
    """Rates of the parts of a run without opponents, in the sizes of that run.

    Fields:
      acting: plies per core-second of one network in all seats, nothing recorded. recording: the same, all recorded.
      update, codec: decisions per core-second, at the run's own batch.
      decisions: in a ply.
    """

    acting: float
    recording: float
    update: float
    codec: float
    decisions: float = 1.0

    def plies(self, learnt: float) -> float:
        """Plies per core-second where so many decisions of each are recorded and learnt from, and nothing else is done.

        A run with opponents is held against this, not against the bound. Acting is further from its bound than the
        update is. So a run that learns from fewer plies would seem slow although its opponents cost nothing.
        """
        recording = (1.0 / self.recording - 1.0 / self.acting) / self.decisions
        return 1.0 / (1.0 / self.acting + learnt * (recording + 1.0 / self.codec + 1.0 / self.update))


Rates = TypeVar("Rates", Parts, RunParts)


@dataclass(frozen=True)
class Bench:
    """The settings of the timing.

    Fields:
      num_envs: batch sizes tried for env and forward.
      seconds: CPU time of each figure.
      update_rows: batch sizes tried for the update, unrolls.
    """

    env: EnvConfig
    network: NetworkConfig
    learner: LearnerConfig
    num_envs: tuple[int, ...]
    seconds: float
    update_rows: tuple[int, ...] = UPDATE_ROWS


def measure_parts(bench: Bench, *, dtype: torch.dtype) -> Parts:
    """All parts, each at the best of its batch sizes. The caller has set torch to one thread."""
    unrolls = ready_unrolls(bench, rows=max(bench.update_rows))
    return Parts(
        env=max(env_rate(bench, num_envs=number) for number in bench.num_envs),
        forward=max(forward_rate(bench, num_envs=number, dtype=dtype) for number in bench.num_envs),
        update=max(update_rate(bench, unrolls.rows(0, rows), dtype=dtype) for rows in bench.update_rows),
        codec=codec_rate(bench, unrolls),
        decisions=decisions_of_ply(bench),
    )


def measure_run_parts(bench: Bench, *, num_envs: int, dtype: torch.dtype) -> RunParts:
    """The parts of a run of so many games. The caller has set torch to one thread."""
    unrolls = ready_unrolls(bench, rows=bench.learner.batch_rows)
    return RunParts(
        acting=acting_rate(bench, num_envs=num_envs, dtype=dtype, records=False),
        recording=acting_rate(bench, num_envs=num_envs, dtype=dtype, records=True),
        update=update_rate(bench, unrolls, dtype=dtype),
        codec=codec_rate(bench, unrolls),
        decisions=decisions_of_ply(bench),
    )


def decisions_of_ply(bench: Bench) -> float:
    """Decisions in a ply of random play, on average."""
    games = min(bench.num_envs)
    env, rng = make(bench.env, num_envs=games), np.random.default_rng(0)
    turn, decisions = env.reset(0), 0
    for _ in range(PLIES_COUNTED):
        decisions += len(turn.env_index)
        turn = env.step(random_actions(env.spec, turn, rng))
    env.close()
    return decisions / (PLIES_COUNTED * games)


def env_rate(bench: Bench, *, num_envs: int) -> float:
    """Plies per core-second of `env.step` alone under random legal play."""
    env, rng = make(bench.env, num_envs=num_envs), np.random.default_rng(0)
    turn, spent, plies, calls = env.reset(0), 0.0, 0, 0
    while spent < bench.seconds:
        actions = random_actions(env.spec, turn, rng)
        start = time.process_time()
        turn = env.step(actions)
        calls += 1
        if calls > WARM_CALLS:
            spent += time.process_time() - start
            plies += num_envs
    env.close()
    return plies / spent


def forward_rate(bench: Bench, *, num_envs: int, dtype: torch.dtype) -> float:
    """Decisions per core-second of one forward pass and one draw for each slot."""
    env, rng = make(bench.env, num_envs=num_envs), np.random.default_rng(0)
    turn = _some_steps(env, rng)
    policy = new_policy(env.spec, bench.network, dtype=dtype, seed=0)
    slots = len(turn.env_index)
    view = ActInputs(env, turn, np.arange(slots), np.zeros((slots, policy.core_size), np.float32))
    rate = slots * calls_per_core_second(lambda: policy.act(view, rng), seconds=bench.seconds)
    env.close()
    return rate


def acting_rate(bench: Bench, *, num_envs: int, dtype: torch.dtype, records: bool) -> float:
    """Plies per core-second of an arena with one network in every seat."""
    env = make(bench.env, num_envs=num_envs)
    seats = env.spec.num_seats
    policies: dict[str, Policy] = {"home": new_policy(env.spec, bench.network, dtype=dtype, seed=0)}
    table = [Assignment(("home",) * seats, (records,) * seats, 1.0)]
    arena = Arena(env, UnrollSpec(env.spec, bench.learner.unroll_length), seed=0)
    rate = calls_per_core_second(
        lambda: sum(1 for _ in arena.run(table, policies, steps=ACTING_STEPS)), seconds=bench.seconds
    )
    arena.close()
    return num_envs * ACTING_STEPS * rate


def update_rate(bench: Bench, unrolls: Unrolls, *, dtype: torch.dtype) -> float:
    """Decisions per core-second of a learner that is given the same ready batch again and again."""
    config = replace(bench.learner, batch_rows=unrolls.num_rows, max_policy_lag=FOREVER)
    learner = build_learner(make(bench.env, num_envs=1).spec, bench.network, config, seed=0, dtype=dtype)
    rate = calls_per_core_second(lambda: learner.update(unrolls, budget_fraction=0.0), seconds=bench.seconds)
    learner.close()
    return unrolls.num_steps * rate


def codec_rate(bench: Bench, unrolls: Unrolls) -> float:
    """Decisions per core-second through the codec and back."""
    codec = Lz4Codec()
    block = unrolls.rows(0, bench.learner.batch_rows)
    header = ChunkHeader(run="bound", player="main-0", version_min=0, version_max=0)
    rate = calls_per_core_second(lambda: codec.decode(codec.encode(block, header)), seconds=bench.seconds)
    return block.num_steps * rate


def ready_unrolls(bench: Bench, *, rows: int) -> Unrolls:
    """`rows` unrolls of an untrained network against itself."""
    num_envs = max(min(bench.num_envs), 1)
    env = make(bench.env, num_envs=num_envs)
    seats = env.spec.num_seats
    policies: dict[str, Policy] = {"home": new_policy(env.spec, bench.network, dtype=torch.float32, seed=0)}
    table = [Assignment(("home",) * seats, (True,) * seats, 1.0)]
    arena = Arena(env, UnrollSpec(env.spec, bench.learner.unroll_length), seed=0)
    parts: list[Unrolls] = []
    while sum(part.num_rows for part in parts) < rows:
        parts.extend(part for part in arena.run(table, policies, steps=1) if isinstance(part, Unrolls))
    arena.close()
    return concatenate(parts).rows(0, rows)


def new_policy(spec: EnvSpec, network: NetworkConfig, *, dtype: torch.dtype, seed: int) -> NetworkPolicy:
    """A freshly initialised network that acts."""
    return NetworkPolicy(build_network(spec, network, seed=seed), dtype=dtype)


def random_actions(spec: EnvSpec, turn: Turn, rng: np.random.Generator) -> NDArray[np.generic]:
    """A legal answer for every slot of a turn, all legal ones equally likely."""
    slots = len(turn.env_index)
    if spec.actions.kind != "categorical":
        actions: NDArray[np.generic] = rng.uniform(
            spec.actions.low, spec.actions.high, (slots, *spec.actions.shape)
        ).astype(np.float32)
        return actions
    if turn.action_mask is None:
        return rng.integers(0, spec.actions.num_actions, slots)
    scores = rng.random(turn.action_mask.shape) * turn.action_mask
    legal: NDArray[np.int64] = scores.argmax(axis=1)
    return legal


def calls_per_core_second(
    call: Callable[[], object], *, seconds: float, clock: Callable[[], float] = time.process_time
) -> float:
    """Number of calls per second of CPU time."""
    for _ in range(WARM_CALLS):
        call()
    start, calls, spent = clock(), 0, 0.0
    while spent < seconds:
        call()
        calls += 1
        spent = clock() - start
    return calls / spent


def middle_of(parts: Sequence[Rates]) -> Rates:
    """The median of every part."""
    kind = type(parts[0])
    return kind(
        **{field.name: float(np.median([getattr(part, field.name) for part in parts])) for field in fields(kind)}
    )


def _some_steps(env: BatchedEnv, rng: np.random.Generator) -> Turn:
    turn = env.reset(0)
    for _ in range(FRESH_TURNS):
        turn = env.step(random_actions(env.spec, turn, rng))
    return turn
