"""Arenas that take turns: each plays as it would alone, and none waits while another could go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from league.agents.acting.arena import Arena
from league.agents.acting.central.central_policy import CentralPolicy, InferenceLost, RequestRows
from league.agents.acting.network_policy import NetworkPolicy
from league.agents.acting.outcome_counter import AssignmentTotals, OutcomeCounter
from league.agents.acting.split_arena import SplitArena
from league.agents.nets.network import build_network
from league.agents.unroll.unroll import Unrolls, UnrollSpec
from league.envs.protocol import BatchedEnv, EnvConfig, Turn
from league.envs.registry import make
from tests.agents.acting import probe_cases
from tests.agents.acting.probe_cases import Assignment, RulePolicy
from tests.agents.acting.test_arena_resume import equal_unrolls
from tests.agents.acting.test_central import CASES, Served, served, table_of, weights_of
from tests.envs.counting_games import TurnProbe

SIZES, LEASES = (3, 2), (11, 13)
PROBE = [Assignment(("home", "home"), (True, True))]


class AsyncProbe(TurnProbe):
    """Notes when its steps begin and end."""

    def __init__(self, log: list[str], name: str, **options: Any) -> None:
        super().__init__(**options)
        self._log, self._name = log, name

    def step_async(self, actions: NDArray[np.generic]) -> None:
        self._log.append(f"{self._name} begins")
        self._actions = actions

    def step_wait(self) -> Turn:
        self._log.append(f"{self._name} ends")
        return self.step(self._actions)


def probe_arena(env: BatchedEnv, counter: OutcomeCounter | None = None) -> Arena:
    return Arena(env, UnrollSpec(env.spec, 3, core_size=probe_cases.CORE_SIZE), seed=5, counter=counter)


def rows_of(unrolls: Sequence[Unrolls]) -> list[bytes]:
    """Every row as bytes, sorted."""
    found = []
    for part in unrolls:
        arrays = [*part.arrays().values(), *part.obs.values()]
        found += [b"".join(array[row].tobytes() for array in arrays) for row in range(part.num_rows)]
    return sorted(found)


def games_of(totals: Sequence[AssignmentTotals]) -> dict[tuple[str, ...], tuple[int, int]]:
    return {total.policies: (total.games, total.decisions) for total in totals}


def test_a_part_steps_while_the_other_is_decided() -> None:
    log: list[str] = []
    options = {"num_envs": 2, "episode_length": [5, 3], "truncate": True}
    alone: list[Unrolls] = []
    parts: list[Arena] = []
    for name in ("one", "two"):
        policies: dict[str, Any] = {"home": RulePolicy(masked=False)}
        alone += list(probe_arena(TurnProbe(**options)).run(PROBE, policies, steps=20))
        parts.append(probe_arena(AsyncProbe(log, name, **options), parts[0].counter if parts else None))
    split = SplitArena(parts)
    whole = list(split.run(PROBE, {"home": RulePolicy(masked=False)}, steps=20))
    assert log[:6] == ["one begins", "two begins", "one ends", "one begins", "two ends", "two begins"]
    assert log[-2:] == ["one ends", "two ends"] and log.count("two ends") == 20
    assert rows_of(whole) == rows_of(alone) and split.num_envs == 4


def test_arenas_that_count_by_themselves_are_no_parts() -> None:
    with pytest.raises(AssertionError, match="by themselves"):
        SplitArena([probe_arena(TurnProbe(num_envs=1)) for _ in range(2)])


def test_games_in_processes_and_in_two_parts_are_those_of_two_arenas() -> None:
    config = EnvConfig("pettingzoo:classic/tictactoe_v3", workers=1)
    spec = make(EnvConfig(config.id), num_envs=1).spec
    network = build_network(spec, CASES["turns"][1], seed=0)
    policies = {"home": NetworkPolicy(network)}
    recorded = UnrollSpec.of(spec, network, unroll_length=4)
    alone, outcomes = [], []
    for seed, size in enumerate(SIZES):
        arena = Arena(make(EnvConfig(config.id), num_envs=size), recorded, seed=seed)
        alone += list(arena.run(PROBE, policies, steps=40))
        outcomes.append(games_of(arena.take_outcomes())["home", "home"])
    counter = OutcomeCounter(spec.teams)
    parts = [
        Arena(make(config, num_envs=size), recorded, seed=seed, counter=counter) for seed, size in enumerate(SIZES)
    ]
    split = SplitArena(parts)
    try:
        found = [*split.run(PROBE, policies, steps=13), *split.run(PROBE, policies, steps=27)]
        assert rows_of(found) == rows_of(alone)
        assert games_of(split.take_outcomes())["home", "home"] == tuple(np.sum(outcomes, axis=0))
        assert split.take_failures() == ()
        assert [env.num_envs for env in split.release()] == list(SIZES)
    finally:
        split.close()


def central_split(found: Served, case: str) -> tuple[SplitArena, dict[str, Any]]:
    """Two parts that ask one inference host by one way, and their policies."""
    env, config = CASES[case]
    client, weights = found.connect(), weights_of(env, config)
    policies = {name: CentralPolicy(name, client) for name in weights}
    for name, policy in policies.items():
        policy.adopt(weights[name])
    network = build_network(make(env, num_envs=1).spec, config, seed=0)
    parts: list[Arena] = []
    for part, size in enumerate(SIZES):
        game = make(env, num_envs=size)
        spec = UnrollSpec.of(game.spec, network, unroll_length=4)
        parts.append(Arena(game, spec, seed=part, core_table=part, counter=parts[0].counter if parts else None))
    return SplitArena(parts), policies


@pytest.mark.parametrize("case", CASES)
def test_two_parts_that_ask_one_inference_host_play_as_each_would_alone(case: str) -> None:
    env, config = CASES[case]
    weights, alone = weights_of(env, config), []
    for part, size in enumerate(SIZES):
        game = make(env, num_envs=size)
        network = build_network(game.spec, config, seed=0)
        local = {name: NetworkPolicy(network) for name in weights}
        for name, policy in local.items():
            policy.adopt(weights[name])
        arena = Arena(game, UnrollSpec.of(game.spec, network, unroll_length=4), seed=part)
        alone += [unrolls for steps in LEASES for unrolls in arena.run(table_of(env), local, steps=steps)]
    with served(env, config) as found:
        split, policies = central_split(found, case)
        both = [unrolls for steps in LEASES for unrolls in split.run(table_of(env), policies, steps=steps)]
        split.close()
    key = "actions" if env.id != "gymnasium:Pendulum-v1" else "versions"  # float actions differ in the last digit
    assert sorted(array.tobytes() for one in both for array in one.arrays()[key]) == sorted(
        array.tobytes() for one in alone for array in one.arrays()[key]
    )
    sums = [np.sort(np.concatenate([one.log_probs.sum(axis=1) for one in side])) for side in (both, alone)]
    np.testing.assert_allclose(sums[0], sums[1], rtol=1e-4, atol=1e-4)


def test_weights_may_come_while_rows_are_decided() -> None:
    env, config = CASES["turns_core"]
    with served(env, config) as found:
        split, policies = central_split(found, "turns_core")
        weights, versions = weights_of(env, config)["main"], set[int]()
        for number, unrolls in enumerate(split.run(table_of(env), policies, steps=40)):
            versions |= set(np.unique(unrolls.versions).tolist())
            policies["main"].adopt(replace(weights, version=number + 10))
        split.close()
    assert max(versions) > 10


def test_a_host_that_is_lost_frees_the_rows_of_every_request() -> None:
    env, config = CASES["turns"]
    with served(env, config) as found:
        split, policies = central_split(found, "turns")
        next(iter(split.run(table_of(env), policies, steps=40)))
        found.end()
        with pytest.raises(InferenceLost):
            split.settle()
            list(split.run(table_of(env), policies, steps=40))
        assert policies["main"]._client.free.take(5) == 0


@pytest.mark.parametrize("is_async", [False, True])
def test_an_arena_that_is_left_at_any_unroll_continues_where_it_was(is_async: bool) -> None:
    """As when a learner does not answer: nothing is recorded twice, and no start of an episode is forgotten."""
    options = {"num_envs": 4, "episode_length": [5, 3, 8], "truncate": True}

    def arena() -> Arena:
        return probe_arena(AsyncProbe([], "", **options) if is_async else TurnProbe(**options))

    policies: dict[str, Any] = {"home": RulePolicy(masked=False)}
    expected, broken = list(arena().run(PROBE, policies, steps=60)), []
    left = arena()
    while len(broken) < len(expected):
        broken.append(next(iter(left.run(PROBE, policies, steps=60))))
        left.settle()
    assert all(equal_unrolls(one, two) for one, two in zip(broken, expected, strict=True))


def test_rows_of_two_requests_never_meet() -> None:
    rows, taken = RequestRows(10), [0, 7]
    assert [rows.take(4), rows.take(3)] == taken
    rows.give_back(0)
    assert rows.take(7) == 0
    rows.give_back(7)
    with pytest.raises(AssertionError, match="two requests"):
        rows.take(4)
