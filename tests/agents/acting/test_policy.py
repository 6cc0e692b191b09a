"""Acting: samples are legal, distributed as the network says, and known to the learner of the same weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.special import chdtrc

from league.agents.acting.arena import Arena
from league.agents.acting.network_policy import GREEDY, NetworkPolicy
from league.agents.acting.policy import ActInputs, ActOutputs, BotPolicy
from league.agents.learner.data.batch import batch_from
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.unroll.unroll import UnrollSpec, concatenate
from league.agents.weights import WeightsError
from league.envs.bots import make_bot
from league.envs.protocol import BatchedEnv, EnvConfig, Turn
from league.envs.registry import make
from tests.agents.acting.probe_cases import Assignment
from tests.agents.learner.learner_cases import weights_in

MLP = NetworkConfig(hidden=(16,))
LSTM = NetworkConfig(hidden=(16,), core="lstm", core_size=8)
TWIN_LSTM = NetworkConfig(hidden=(8,), core="lstm", core_size=4, value="separate")


def sharp_network(env: BatchedEnv, config: NetworkConfig = MLP, *, seed: int = 1) -> Network:
    """A network far from uniform."""
    network = build_network(env.spec, config, seed=seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "heads" in name and name.endswith("weight"):
                parameter.mul_(100.0)
    return network


def whole(env: BatchedEnv, turn: Turn, *, core_size: int = 0) -> ActInputs:
    slots = np.arange(turn.env_index.size)
    return ActInputs(env, turn, slots, np.zeros((slots.size, core_size), np.float32))


def midgame(env: BatchedEnv) -> Turn:
    """A turn in which every game stands differently: an empty board alone would leave a network at its biases."""
    turn = env.reset(0)
    for column in range(4):
        turn = env.step((np.arange(env.num_envs) * (column + 1)) % 7)
    return turn


def probabilities(network: Network, inputs: ActInputs) -> np.ndarray:
    """float64 [K, A], in the plainest way."""
    obs = {name: torch.from_numpy(array[inputs.slots]) for name, array in inputs.turn.obs.items()}
    mask = inputs.turn.action_mask
    legal = None if mask is None else torch.from_numpy(mask[inputs.slots])
    with torch.no_grad():
        logits = network.step(obs, core=torch.from_numpy(inputs.core), action_mask=legal).logits
    return torch.softmax(logits.double(), dim=-1).numpy()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_illegal_action_is_never_sampled(dtype: torch.dtype) -> None:
    env = make(EnvConfig("connect_four"), num_envs=256)
    policy, rng = NetworkPolicy(sharp_network(env), dtype=dtype), np.random.default_rng(0)
    turn = env.reset(0)
    for _ in range(80):
        choice = policy.act(whole(env, turn), rng)
        assert turn.action_mask is not None
        assert turn.action_mask[np.arange(256), choice.actions].all()
        assert np.isfinite(choice.log_probs).all()
        turn = env.step(choice.actions)


@pytest.mark.parametrize(("env_id", "kwargs"), [("probe_mask", {}), ("rock_paper_scissors", {})])
def test_samples_are_distributed_as_the_network_says(env_id: str, kwargs: dict[str, object]) -> None:
    """Null: the frequencies of one state's actions are the network's probabilities; refused below p = 0.001."""
    draws = 20_000
    env = make(EnvConfig(env_id, kwargs), num_envs=draws)
    network = build_network(env.spec, MLP, seed=3)
    inputs = whole(env, env.reset(0))
    first = inputs.turn.seat == 0
    inputs = ActInputs(env, inputs.turn, np.flatnonzero(first), inputs.core[first])
    choice = NetworkPolicy(network).act(inputs, np.random.default_rng(11))
    expected = probabilities(network, inputs)[0]
    counts = np.bincount(choice.actions, minlength=expected.size)
    likely = expected > 0
    assert counts[~likely].sum() == 0
    hoped = expected[likely] / expected[likely].sum() * draws
    assert chdtrc(hoped.size - 1, ((counts[likely] - hoped) ** 2 / hoped).sum()) > 0.001
    assert np.allclose(choice.log_probs, np.log(expected[choice.actions]), atol=1e-6)


def test_a_greedy_policy_takes_the_likeliest_action_and_needs_no_luck() -> None:
    env = make(EnvConfig("connect_four"), num_envs=9)
    network = sharp_network(env)
    inputs = whole(env, midgame(env))
    policy = NetworkPolicy(network, choice=GREEDY)
    one, two = (policy.act(inputs, np.random.default_rng(seed)) for seed in (0, 1))
    assert np.array_equal(one.actions, two.actions)
    expected = probabilities(network, inputs)
    assert np.array_equal(one.actions, expected.argmax(axis=1))
    assert np.allclose(one.log_probs, np.log(expected.max(axis=1)), atol=1e-6)


def test_the_same_stream_gives_the_same_choices() -> None:
    env = make(EnvConfig("connect_four"), num_envs=64)
    inputs, policy = whole(env, midgame(env)), NetworkPolicy(build_network(env.spec, MLP, seed=0))
    one, two, other = (policy.act(inputs, np.random.default_rng(seed)).actions for seed in (5, 5, 6))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_observations_may_be_views_of_any_stride() -> None:
    env = make(EnvConfig("connect_four"), num_envs=12)
    turn = midgame(env)
    assert turn.action_mask is not None
    reversed_obs = {name: array[..., ::-1].copy()[..., ::-1] for name, array in turn.obs.items()}
    view = replace(turn, obs=reversed_obs, action_mask=turn.action_mask[:, ::-1].copy()[:, ::-1])
    policy = NetworkPolicy(build_network(env.spec, MLP, seed=0))
    plain, viewed = (policy.act(whole(env, one), np.random.default_rng(0)) for one in (turn, view))
    assert np.array_equal(viewed.actions, plain.actions)


def test_some_slots_of_a_turn_are_answered_as_themselves() -> None:
    env = make(EnvConfig("connect_four"), num_envs=12)
    turn = midgame(env)
    policy = NetworkPolicy(sharp_network(env, LSTM), choice=GREEDY)
    core = np.random.default_rng(0).normal(size=(12, policy.core_size)).astype(np.float32)
    everyone = policy.act(ActInputs(env, turn, np.arange(12), core), np.random.default_rng(0))
    some = np.array([7, 2, 11])
    part = policy.act(ActInputs(env, turn, some, core[some]), np.random.default_rng(0))
    assert np.array_equal(part.actions, everyone.actions[some])
    assert np.allclose(part.log_probs, everyone.log_probs[some], atol=1e-6)
    assert np.allclose(part.core, everyone.core[some], atol=1e-6)


@pytest.mark.parametrize("network_config", [MLP, LSTM, TWIN_LSTM], ids=["mlp", "lstm", "twin_lstm"])
@pytest.mark.parametrize(
    ("env_id", "kwargs"),
    [
        ("probe_mask", {"episode_length": [5, 3, 8], "truncate": True}),
        ("probe_simultaneous", {"episode_length": [5, 3, 8]}),
        ("tic_tac_toe", {}),
        ("gymnasium:Pendulum-v1", {}),
    ],
)
def test_the_learner_finds_the_log_probs_that_the_policy_recorded(
    env_id: str, kwargs: dict[str, object], network_config: NetworkConfig
) -> None:
    """From the recorded core state, observations and resets, over ends and truncations alike."""
    env = make(EnvConfig(env_id, kwargs), num_envs=6)
    network = sharp_network(env, network_config) if env.spec.has_mask else build_network(env.spec, MLP, seed=0)
    arena = Arena(env, UnrollSpec.of(env.spec, network, unroll_length=7), seed=0)
    seats = env.spec.num_seats
    table = [Assignment(("home",) * seats, (True,) * seats)]
    unrolls = concatenate(list(arena.run(table, {"home": NetworkPolicy(network)}, steps=90)))
    batch = batch_from(unrolls, oldest_version=0, device=torch.device("cpu"))
    with torch.no_grad():
        output = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
        learnt = network.head.log_prob(output.logits[:, :-1], batch.actions)
    assert unrolls.num_rows > 6
    assert torch.allclose(learnt[batch.valid], batch.log_probs[batch.valid], atol=2e-5)
    arena.close()


def test_box_actions_outside_the_bounds_are_clipped_for_the_env_and_recorded_as_drawn() -> None:
    env = make(EnvConfig("gymnasium:Pendulum-v1"), num_envs=4)
    network = build_network(env.spec, MLP, seed=0)
    with torch.no_grad():
        dict(network.named_parameters())["parts.heads.head.log_std"].fill_(2.0)
    arena = Arena(env, UnrollSpec.of(env.spec, network, unroll_length=20), seed=0)
    unrolls = concatenate(list(arena.run([Assignment(("p",), (True,))], {"p": NetworkPolicy(network)}, steps=25)))
    assert unrolls.actions.dtype == np.float32
    assert (np.abs(unrolls.actions) > env.spec.actions.high).any()
    arena.close()


def test_a_bfloat16_policy_adopts_float32_weights_and_answers_in_float32() -> None:
    env = make(EnvConfig("connect_four"), num_envs=64)
    network = sharp_network(env, seed=4)
    weights = weights_in(network, version=9)
    half = NetworkPolicy(build_network(env.spec, MLP, seed=0), dtype=torch.bfloat16)
    half.adopt(weights)
    assert half.version == 9
    inputs = whole(env, midgame(env))
    choice = half.act(inputs, np.random.default_rng(0))
    assert choice.log_probs.dtype == np.float32
    expected = np.log(probabilities(network, inputs)[np.arange(64), choice.actions])
    assert np.abs(choice.log_probs - expected).max() < 0.1
    assert np.abs(choice.log_probs - expected).max() > 0.0


def test_a_policy_shares_nothing_with_the_network_it_was_made_from() -> None:
    env = make(EnvConfig("connect_four"), num_envs=8)
    network = sharp_network(env)
    policy, inputs = NetworkPolicy(network, choice=GREEDY), whole(env, midgame(env))
    before = policy.act(inputs, np.random.default_rng(0))
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.zero_()
    assert np.array_equal(policy.act(inputs, np.random.default_rng(0)).log_probs, before.log_probs)


def test_weights_of_another_network_are_refused() -> None:
    env = make(EnvConfig("connect_four"), num_envs=1)
    wider = weights_in(build_network(env.spec, NetworkConfig(hidden=(17,)), seed=0), version=1)
    deeper = weights_in(build_network(env.spec, NetworkConfig(hidden=(16, 16)), seed=0), version=1)
    policy = NetworkPolicy(build_network(env.spec, MLP, seed=0))
    for weights in (wider, deeper):
        with pytest.raises(WeightsError):
            policy.adopt(weights)


@pytest.mark.parametrize("name", ["random", "tactical", "mcts:4"])
def test_bots_hold_seats_through_the_same_door(name: str) -> None:
    env = make(EnvConfig("tic_tac_toe"), num_envs=6)
    bot = BotPolicy(make_bot(name, seed=0))
    turn = env.reset(0)
    core = np.arange(12, dtype=np.float32).reshape(6, 2)
    choice: ActOutputs = bot.act(ActInputs(env, turn, np.array([1, 4]), core[[1, 4]]), np.random.default_rng(0))
    assert choice.actions.shape == choice.log_probs.shape == (2,)
    assert turn.action_mask is not None
    assert turn.action_mask[[1, 4], choice.actions].all()
    assert np.array_equal(choice.core, core[[1, 4]])
    arena = Arena(env, UnrollSpec(env.spec, 3, core_size=2), seed=0)
    home = NetworkPolicy(build_network(env.spec, MLP, seed=0))
    table = [Assignment(("home", "bot"), (True, False), 0.5), Assignment(("bot", "home"), (False, True), 0.5)]
    for unrolls in arena.run(table, {"home": home, "bot": bot}, steps=40):
        assert (unrolls.versions == home.version).all()
    assert sum(totals.games for totals in arena.take_outcomes()) > 20
    assert bot.version == -1
