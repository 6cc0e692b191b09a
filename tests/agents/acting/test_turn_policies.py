"""Policies of one architecture that act together choose what each of them would choose alone."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from league.agents.acting import plain_acting
from league.agents.acting.network_group import can_group
from league.agents.acting.network_policy import NetworkPolicy, Sampling
from league.agents.acting.policy import ActInputs, BotPolicy, Policy
from league.agents.acting.turn_policies import TurnPolicies
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.envs.bots import make_bot
from league.envs.games.connect_four import ConnectFour
from league.envs.protocol import ArraySpec, BatchedEnv, EnvConfig, Turn
from league.envs.registry import make
from tests.agents.learner.learner_cases import weights_in

NUM_ENVS = 260
ROWS = (130, 3, 0, 1, 64, 62)
"""Rows of each policy: more than a block, a few, none, one, a whole block, nearly one."""
MANY_ROWS = (2, 0, 257, 0, 1, 0)
"""So many that a layer computes whole blocks, and with them rows of other networks."""

ROWS_OF_BOARDS = f"{__name__}:RowsOfBoards"

MLP = NetworkConfig(hidden=(16, 16))
LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8, core_layers=2)
CASES: dict[str, tuple[str, dict[str, object], NetworkConfig]] = {
    "mlp": ("connect_four", {}, MLP),
    "large": ("connect_four", {}, NetworkConfig(hidden=(256, 128))),
    "tanh, symlog, mixed": (
        "connect_four",
        {},
        NetworkConfig(hidden=(16,), activation="tanh", input_scaling="symlog", uniform_mix=0.1),
    ),
    "no layers": ("connect_four", {}, NetworkConfig(hidden=())),
    "lstm": ("connect_four", {}, LSTM),
    "stack": ("connect_four", {}, NetworkConfig(hidden=(16,), core={"kind": "stack", "steps": 2})),
    "clock": ("connect_four", {}, NetworkConfig(hidden=(16,), core={"kind": "clock", "decisions": 4})),
    "two networks with cores": ("connect_four", {}, NetworkConfig(**{**LSTM.__dict__, "value": "separate"})),
    "convolutions": ("connect_four", {}, NetworkConfig(encoder="conv", channels=(4, 4), hidden=(16,))),
    "residual": ("connect_four", {}, NetworkConfig(encoder="impala_resnet", channels=(4,), hidden=(16,))),
    "fields": ("connect_four", {}, NetworkConfig(encoder="dict", channels=(4,), hidden=(16,))),
    "entities": (ROWS_OF_BOARDS, {}, NetworkConfig(encoder="entities", hidden=(16,), entity_size=8)),
    "popart": ("connect_four", {}, NetworkConfig(hidden=(16,), value_output="popart")),
    "sub-actions": ("probe_sub_actions", {"masked": False}, MLP),
}


class RowsOfBoards:
    """Connect Four as entities: the rows of the board, of which those with a stone are there, and the top cells."""

    def __init__(self, num_envs: int) -> None:
        self._games, self.num_envs = ConnectFour(num_envs=num_envs), num_envs
        fields = {
            "rows": ArraySpec((6, 14), "float32"),
            "rows_mask": ArraySpec((6,), "bool"),
            "top": ArraySpec((7,), "bool"),
        }
        self.spec = dataclasses.replace(self._games.spec, env_id=ROWS_OF_BOARDS, observations=fields)

    def reset(self, seed: int) -> Turn:
        return self._seen(self._games.reset(seed))

    def step(self, actions: NDArray[np.generic]) -> Turn:
        return self._seen(self._games.step(actions))

    def close(self) -> None:
        self._games.close()

    def _seen(self, turn: Turn) -> Turn:
        rows = turn.obs["board"].transpose(0, 2, 1, 3).reshape(-1, 6, 14)
        fields = {"rows": rows.astype(np.float32), "rows_mask": rows.any(2), "top": rows[:, 0, :7]}
        return dataclasses.replace(turn, obs=fields)


def game(env_id: str, kwargs: dict[str, object]) -> tuple[BatchedEnv, Turn]:
    """Games that stand differently, in a turn with one slot for each of `NUM_ENVS`."""
    env = make(EnvConfig(env_id, kwargs), num_envs=NUM_ENVS)
    turn = env.reset(0)
    if env.spec.actions.num_actions == 7:
        for column in range(4):
            turn = env.step((np.arange(NUM_ENVS) * (column + 1)) % 7)
    return env, turn


def random_network(env: BatchedEnv, config: NetworkConfig, *, seed: int) -> Network:
    """A network in which every parameter counts, biases and running moments too."""
    network, generator = build_network(env.spec, config, seed=seed), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    return network


def whole(env: BatchedEnv, turn: Turn, core: NDArray[np.float32]) -> ActInputs:
    """Every slot of the turn."""
    return ActInputs(env, turn, np.arange(len(core)), core)


def holders_of(rows: Sequence[int]) -> NDArray[np.int64]:
    """The policy of each slot, shuffled."""
    return np.random.default_rng(5).permutation(np.repeat(np.arange(len(rows)), rows))


def one_by_one(
    policies: Sequence[Policy], env: BatchedEnv, turn: Turn, holders: NDArray[np.int64], core: NDArray[np.float32]
) -> tuple[NDArray[np.generic], NDArray[np.float32], NDArray[np.float32], NDArray[np.float32] | None]:
    """The plain way: each policy is called with its own slots, and its answers are put where they belong."""
    rng, core = np.random.default_rng(9), core.copy()
    actions: dict[int, NDArray[np.generic]] = {}
    log_probs: dict[int, np.float32] = {}
    by_sub_action: dict[int, NDArray[np.float32]] = {}
    for index, policy in enumerate(policies):
        slots = np.flatnonzero(holders == index)
        if not len(slots):
            continue
        part = policy.act(ActInputs(env, turn, slots, core[slots]), rng)
        for place, slot in enumerate(slots.tolist()):
            actions[slot], log_probs[slot] = part.actions[place], part.log_probs[place]
            core[slot, : part.core.shape[1]] = part.core[place]
            if part.sub_action_log_probs is not None:
                by_sub_action[slot] = part.sub_action_log_probs[place]
    order = range(len(holders))
    return (
        np.stack([actions[slot] for slot in order]),
        np.array([log_probs[slot] for slot in order]),
        core,
        np.stack([by_sub_action[slot] for slot in order]) if by_sub_action else None,
    )


def assert_equal_choices(
    policies: Sequence[Policy], together: TurnPolicies, env: BatchedEnv, turn: Turn, *, rows: Sequence[int] = ROWS
) -> None:
    """Together and one by one give the same, rounding aside."""
    holders = holders_of(rows)
    core_size = max((policy.core_size for policy in policies if isinstance(policy, NetworkPolicy)), default=0)
    core = np.random.default_rng(3).normal(size=(len(holders), core_size)).astype(np.float32)
    expected = one_by_one(policies, env, turn, holders, core)
    choice, versions = together.begin(
        whole(env, turn, core), holders, np.random.default_rng(9), num_sub_actions=len(env.spec.actions.nvec)
    ).take()
    np.testing.assert_array_equal(choice.actions, expected[0])
    np.testing.assert_allclose(choice.log_probs, expected[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(choice.core, expected[2], rtol=1e-5, atol=1e-5)
    if expected[3] is not None:
        assert choice.sub_action_log_probs is not None
        np.testing.assert_allclose(choice.sub_action_log_probs, expected[3], rtol=1e-5, atol=1e-5)
    assert versions.tolist() == [policies[holder].version for holder in holders]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("compiled", [True, False])
def test_policies_of_one_architecture_choose_together_what_each_would_alone(
    case: str, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(plain_acting, "library", lambda name: None)
    env_id, kwargs, config = CASES[case]
    env, turn = game(env_id, kwargs)
    policies = [NetworkPolicy(random_network(env, config, seed=seed)) for seed in range(len(ROWS))]
    for version, policy in enumerate(policies):
        policy.version = version
    together = TurnPolicies(policies)
    assert_equal_choices(policies, together, env, turn)
    policies[0].adopt(weights_in(random_network(env, config, seed=99), version=7))
    assert_equal_choices(policies, together, env, turn)
    assert_equal_choices(policies, together, env, turn, rows=MANY_ROWS)

    def refuse(*_: object) -> None:
        raise AssertionError("a policy was called by itself")

    monkeypatch.setattr(NetworkPolicy, "act", refuse)
    core = np.zeros((NUM_ENVS, policies[0].core_size), np.float32)
    view, num_sub_actions = whole(env, turn, core), len(env.spec.actions.nvec)
    together.begin(view, holders_of(ROWS), np.random.default_rng(0), num_sub_actions=num_sub_actions).take()


@pytest.mark.parametrize("greedy", [False, True])
@pytest.mark.parametrize("case", ["mlp", "entities"])
def test_bfloat16_and_greedy_policies_choose_together_what_each_would_alone(case: str, greedy: bool) -> None:
    env_id, kwargs, config = CASES[case]
    env, turn = game(env_id, kwargs)
    policies = [
        NetworkPolicy(random_network(env, config, seed=seed), dtype=torch.bfloat16, choice=Sampling(greedy))
        for seed in range(6)
    ]
    for rows in (ROWS, MANY_ROWS):
        assert_equal_choices(policies, TurnPolicies(policies), env, turn, rows=rows)


def test_bots_and_other_architectures_act_beside_those_that_act_together() -> None:
    """Bots draw nothing, and each architecture's draws come in the order of its first policy."""
    env, turn = game("connect_four", {})

    def policies() -> list[Policy]:
        networks = [random_network(env, config, seed=seed) for seed, config in enumerate((MLP, MLP, LSTM, LSTM))]
        return [*(NetworkPolicy(network) for network in networks), BotPolicy(make_bot("random", seed=1))]

    table = policies()
    holders = holders_of((100, 40, 60, 20, 40))
    core = np.zeros((NUM_ENVS, 32), np.float32)
    expected = one_by_one(policies(), env, turn, holders, core)
    choice, versions = (
        TurnPolicies(table).begin(whole(env, turn, core), holders, np.random.default_rng(9), num_sub_actions=0).take()
    )
    np.testing.assert_array_equal(choice.actions, expected[0])
    np.testing.assert_allclose(choice.core, expected[2], rtol=1e-5, atol=1e-5)
    assert (versions == -1).sum() == 40


def test_a_network_of_unknown_parts_acts_alone() -> None:
    """Parts that are not known to treat every row alike are never run together."""
    env = make(EnvConfig("connect_four"), num_envs=1)
    assert can_group(build_network(env.spec, MLP, seed=0))
    assert not can_group(build_network(env.spec, NetworkConfig(core="transformer"), seed=0))
    chained = make(EnvConfig("probe_sub_actions", {"masked": True}), num_envs=1)
    assert not can_group(build_network(chained.spec, NetworkConfig(head="autoregressive"), seed=0))
