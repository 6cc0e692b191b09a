"""The probe games behind every adapter, a policy that answers them by rule, and what an arena makes of both."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from league.agents.acting.arena import Arena
from league.agents.acting.policy import ActInputs, ActOutputs
from league.agents.unroll.unroll import ASKED, Unrolls, UnrollSpec
from league.envs.adapters.gymnasium import GymnasiumEnv
from league.envs.adapters.pettingzoo import AecEnv, ParallelEnv
from league.envs.protocol import BatchedEnv, EnvConfig
from league.envs.registry import make
from tests.envs.counting_games import LastMoveProbe, MaskProbe, SimultaneousProbe, TurnProbe
from tests.envs.oracles.raw_probes import RawSimultaneousProbe, RawSingleProbe, RawTurnProbe
from tests.oracles.probe_unrolls import CORE_SIZE, Rules, action_of, log_prob_of, who

BUILT_IN = {"turns": TurnProbe, "simultaneous": SimultaneousProbe, "mask": MaskProbe, "last_move": LastMoveProbe}
OWN: list[Any] = []
"""Games that the factories below have made."""

_OWN_FILE = """
import itertools
from tests.agents.acting import probe_cases
numbers = itertools.count()
def make(**kwargs):
    return probe_cases.own_aec(index=next(numbers), **kwargs)
"""


@dataclass(frozen=True)
class Assignment:
    """A row of a lease's table."""

    policies: tuple[str, ...]
    records: tuple[bool, ...]
    probability: float = 1.0


class RulePolicy:
    """Answers by rule, adds 1 to the core state, and notes (env, episode, step, seat) of everything it was asked."""

    def __init__(self, *, masked: bool = False, version: int = 0) -> None:
        self.version = version
        self.asked: list[tuple[int, int, int, int]] = []
        self._masked = masked

    def act(self, inputs: ActInputs, rng: np.random.Generator) -> ActOutputs:
        actions, log_probs = [], []
        for env, row in zip(inputs.turn.env_index[inputs.slots], inputs.turn.obs["counter"][inputs.slots], strict=True):
            episode, step, seat = (int(number) for number in row)
            place = {"env": int(env), "episode": episode, "step": step, "seat": seat}
            actions.append(action_of(**place, masked=self._masked))
            log_probs.append(log_prob_of(**place))
            self.asked.append(tuple(place.values()))
        return ActOutputs(np.array(actions, np.int64), np.array(log_probs, np.float32), inputs.core + 1)


def built_in(rules: Rules, num_envs: int, folder: Path) -> BatchedEnv:
    return BUILT_IN[rules.kind](num_envs=num_envs, **_sizes(rules))


def aec(rules: Rules, num_envs: int, folder: Path) -> BatchedEnv:
    options = {"mask_in": "observation" if rules.kind == "mask" else "", "last_move": rules.kind == "last_move"}
    return _wrapped(AecEnv, RawTurnProbe, num_envs, **_sizes(rules), **options)


def parallel(rules: Rules, num_envs: int, folder: Path) -> BatchedEnv:
    return _wrapped(ParallelEnv, RawSimultaneousProbe, num_envs, **_sizes(rules))


def single(rules: Rules, num_envs: int, folder: Path) -> BatchedEnv:
    sizes = _sizes(rules)
    assert sizes.pop("num_seats") == 1
    return _wrapped(GymnasiumEnv, RawSingleProbe, num_envs, **sizes)


def own_module(rules: Rules, num_envs: int, folder: Path) -> BatchedEnv:
    """A user's factory that takes `num_envs` and returns the batched env itself."""
    kwargs = {"kind": rules.kind, **_sizes(rules)}
    return make(EnvConfig("tests.agents.acting.probe_cases:own_batched", kwargs), num_envs=num_envs)


def own_file(rules: Rules, num_envs: int, folder: Path) -> BatchedEnv:
    """A user's factory in a file, one PettingZoo game a call."""
    path = folder / "own.py"
    path.write_text(_OWN_FILE)
    OWN.clear()
    env = make(EnvConfig(f"{path}:make", dict(_sizes(rules))), num_envs=num_envs)
    for game in OWN:
        game.count.episode = -1
    return env


def own_batched(*, num_envs: int, kind: str, **sizes: Any) -> BatchedEnv:
    return BUILT_IN[kind](num_envs=num_envs, **sizes)


def own_aec(**kwargs: Any) -> RawTurnProbe:
    OWN.append(RawTurnProbe(**kwargs))
    return OWN[-1]


def _sizes(rules: Rules) -> dict[str, Any]:
    return {"num_seats": rules.num_seats, "episode_length": list(rules.lengths), "truncate": rules.truncate}


def _wrapped(adapter: Any, raw: Callable[..., Any], num_envs: int, **kwargs: Any) -> BatchedEnv:
    """Raw probes of indices 0, 1, ... behind an adapter, their episode counters at the start."""
    index, games = itertools.count(), []

    def make_one() -> Any:
        games.append(raw(index=next(index), **kwargs))
        return games[-1]

    env: BatchedEnv = adapter.of(make_one, env_id="raw", num_envs=num_envs)
    for game in games:
        game.count.episode = -1
    return env


def play(
    env: BatchedEnv,
    *,
    steps: int,
    unroll_length: int,
    assignments: Sequence[Assignment] | None = None,
    policies: dict[str, RulePolicy] | None = None,
    steps_per_lease: int = 7,
    seed: int = 0,
    bootstrap_time_limits: bool = True,
) -> tuple[Arena, dict[tuple[int, int], list[dict[str, Any]]]]:
    """Run an arena, its policies one version on with every lease; returns it and the unrolls by (env, seat)."""
    seats = env.spec.num_seats
    if assignments is None:
        assignments = [Assignment(("home",) * seats, (True,) * seats)]
    if policies is None:
        policies = {"home": RulePolicy(masked=env.spec.has_mask)}
    arena = Arena(
        env,
        UnrollSpec(env.spec, unroll_length, core_size=CORE_SIZE),
        seed=seed,
        bootstrap_time_limits=bootstrap_time_limits,
    )
    found: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for start in range(0, steps, steps_per_lease):
        for policy in policies.values():
            policy.version = start // steps_per_lease
        for unrolls in arena.run(assignments, policies, steps=min(steps_per_lease, steps - start)):
            collect(unrolls, found)
    return arena, found


def collect(unrolls: Unrolls, found: dict[tuple[int, int], list[dict[str, Any]]]) -> None:
    """Sort the rows of unrolls by the (env, seat) that their first log-probability names."""
    for row in range(unrolls.num_rows):
        one = {
            name: getattr(unrolls, name)[row]
            for name in vars(unrolls)
            if name not in ("obs", "action_mask", "sub_action_log_probs", *ASKED) and getattr(unrolls, name) is not None
        }
        one.update({name: array[row] for name, array in unrolls.obs.items()})
        one["action_mask"] = None if unrolls.action_mask is None else unrolls.action_mask[row]
        found[who(float(one["log_probs"][0]))].append(one)


def first_difference(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> str:
    """ "" where the unrolls are equal to the last bit and of equal dtype, else what differs where."""
    if len(found) != len(expected):
        return f"{len(found)} unrolls instead of {len(expected)}"
    for number, (left, right) in enumerate(zip(found, expected, strict=True)):
        for name, array in right.items():
            if name == "action_mask" and left[name] is None and array.all():
                continue
            if left[name].dtype != array.dtype or not np.array_equal(left[name], array):
                return f"unroll {number}, {name}: {left[name]} instead of {array}"
    return ""
