"""Networks as a whole: shapes, masks, blocks in order, seeds, and unrolled runs equal to stepped ones."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import Tensor

from league.agents.nets.blocks import Block
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, NetworkOutput, SideInputs, build_network, run_block
from league.agents.nets.network_parts import UnknownPartError
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

B, T, A = 5, 7, 4
FIELDS = {
    "board": ArraySpec((3, 2), "bool"),
    "picture": ArraySpec((6, 5, 2), "uint8"),
    "clock": ArraySpec((), "int64"),
    "speed": ArraySpec((2,), "float32"),
}
CATEGORICAL = EnvSpec("toy", 2, FIELDS, ActionSpec("categorical", A), (0, 1), True)
BOX = EnvSpec("toy", 1, FIELDS, ActionSpec("box", shape=(2, 1)), (0,), False)

SMALL = {"core_size": 8, "core_context": 3, "attention_heads": 2, "entity_size": 8, "entity_layers": 1}
CONFIGS = {
    "mlp": NetworkConfig(hidden=(16, 12)),
    "no_hidden": NetworkConfig(hidden=()),
    "separate": NetworkConfig(hidden=(16, 12), value="separate", activation="tanh", value_output="tanh"),
    "conv": NetworkConfig(encoder="conv", hidden=(16,), channels=(4, 3)),
    "impala_resnet": NetworkConfig(encoder="impala_resnet", hidden=(16,), channels=(4, 3)),
    "nature_cnn": NetworkConfig(encoder="nature_cnn", hidden=(16,), channels=(4, 3)),
    "separate_conv": NetworkConfig(encoder="conv", hidden=(), channels=(4,), value="separate"),
    "lstm": NetworkConfig(hidden=(16,), core="lstm", core_size=8),
    "stacked_lstm": NetworkConfig(hidden=(16,), core="lstm", core_size=8, core_layers=3),
    "separate_lstm": NetworkConfig(
        hidden=(16,), core="lstm", core_size=8, core_layers=2, value="separate", activation="elu"
    ),
    "entities": NetworkConfig(encoder="entities", hidden=(16,), **SMALL),
    "dict": NetworkConfig(encoder="dict", hidden=(16, 12), channels=(4,), **SMALL),
    "transformer": NetworkConfig(hidden=(16,), core="transformer", **SMALL),
    "deep_transformer": NetworkConfig(hidden=(16,), core="transformer", core_layers=3, **{**SMALL, "core_context": 9}),
    "separate_transformer": NetworkConfig(hidden=(16,), core="transformer", core_layers=2, value="separate", **SMALL),
    "separate_dict_lstm": NetworkConfig(
        encoder="dict", hidden=(16,), channels=(4,), core="lstm", value="separate", **SMALL
    ),
}
WITH_MEMORY = [name for name, config in CONFIGS.items() if config.core != "none"]

IN_BFLOAT16 = ["mlp", "separate", "lstm", "separate_lstm", "dict", "transformer", "separate_dict_lstm"]


def draw(seed: int = 0) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    """Observation fields [B, T, ...], resets [B, T], masks [B, T, A]."""
    rng = np.random.default_rng(seed)
    obs = {
        "board": torch.from_numpy(rng.random((B, T, 3, 2)) < 0.5),
        "picture": torch.from_numpy(rng.integers(0, 256, (B, T, 6, 5, 2), dtype=np.uint8)),
        "clock": torch.from_numpy(rng.integers(0, 9, (B, T))),
        "speed": torch.from_numpy(rng.standard_normal((B, T, 2), dtype=np.float32)),
    }
    mask = torch.from_numpy(rng.random((B, T, A)) < 0.6)
    mask[..., 1] = True
    return obs, torch.from_numpy(rng.random((B, T)) < 0.3), mask


def build(name: str, spec: EnvSpec = CATEGORICAL, seed: int = 0) -> Network:
    return build_network(spec, CONFIGS[name], seed=seed)


def random_core(network: Network) -> Tensor:
    """A state that the network itself came to, so that it means something to a core of any kind."""
    obs, resets, mask = draw(seed=7)
    with torch.no_grad():
        reached = network(obs, resets=resets, core=network.initial_core(B), action_mask=mask).core
    return reached + 0.1 * reached.sign() * (reached.abs() != 1.0)


def step_through(network: Network, core: Tensor) -> NetworkOutput:
    """What acting computes: one step at a time, core rows zeroed where an episode begins."""
    obs, resets, mask = draw()
    logits, values = [], []
    for t in range(T):
        core = core * ~resets[:, t, None]
        output = network.step({k: v[:, t] for k, v in obs.items()}, core=core, action_mask=mask[:, t])
        core = output.core
        logits.append(output.logits)
        values.append(output.values)
    return NetworkOutput(torch.stack(logits, 1), torch.stack(values, 1), core)


@pytest.mark.parametrize("name", CONFIGS)
def test_unrolled_equals_step_by_step(name: str) -> None:
    network = build(name)
    obs, resets, mask = draw()
    assert resets[:, 0].any()
    assert resets[:, 1:].any()
    core = random_core(network)
    unrolled = network(obs, resets=resets, core=core, action_mask=mask)
    stepped = step_through(network, core)
    torch.testing.assert_close(unrolled.logits, stepped.logits, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(unrolled.values, stepped.values, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(unrolled.core, stepped.core, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_are_float32_of_the_stated_shapes_and_illegal_actions_masked(name: str) -> None:
    network = build(name)
    obs, resets, mask = draw()
    output = network(obs, resets=resets, action_mask=mask)
    assert (output.logits.shape, output.values.shape) == ((B, T, A), (B, T))
    assert output.core.shape == (B, network.core_size)
    assert {output.logits.dtype, output.values.dtype, output.core.dtype} == {torch.float32}
    assert output.logits[~mask].eq(-1e9).all()
    assert output.logits[mask].abs().max() < 10
    assert network.initial_core(3).eq(0).all()


def test_a_network_without_core_has_an_empty_core_and_ignores_resets() -> None:
    network = build("mlp")
    obs, resets, mask = draw()
    assert network.core_size == 0
    with_resets, without = network(obs, resets=resets, action_mask=mask), network(obs, action_mask=mask)
    torch.testing.assert_close(with_resets.logits, without.logits, rtol=0, atol=0)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_a_reset_forgets_everything_before_it(name: str) -> None:
    network = build(name)
    obs, _, mask = draw()
    resets = torch.zeros(B, T, dtype=torch.bool)
    resets[:, 3] = True
    before = network(obs, resets=resets, core=random_core(network), action_mask=mask)
    other, _, _ = draw(seed=1)
    changed = {key: torch.cat([other[key][:, :3], obs[key][:, 3:]], dim=1) for key in obs}
    after = network(changed, resets=resets, core=random_core(network).flip(0), action_mask=mask)
    torch.testing.assert_close(before.values[:, 3:], after.values[:, 3:], rtol=0, atol=0)
    assert not torch.allclose(before.values[:, :3], after.values[:, :3])


@pytest.mark.parametrize("name", ["lstm", "stacked_lstm"])
def test_the_fused_path_without_resets_equals_the_stepwise_one(name: str) -> None:
    network = build(name)
    obs, _, mask = draw()
    core = random_core(network)
    fused = network(obs, core=core, action_mask=mask)
    late = torch.zeros(B, T, dtype=torch.bool)
    late[:, -1] = True
    stepwise = network(obs, resets=late, core=core, action_mask=mask)
    torch.testing.assert_close(fused.values[:, :-1], stepwise.values[:, :-1], rtol=1e-5, atol=1e-5)
    flags = torch.zeros(B, T, dtype=torch.bool)
    flagged = network(obs, resets=flags, core=core, action_mask=mask)
    torch.testing.assert_close(flagged.core, fused.core, rtol=0, atol=0)


@pytest.mark.parametrize("name", WITH_MEMORY)
def test_gradients_of_an_unroll_equal_those_of_stepping(name: str) -> None:
    network = build(name)
    obs, resets, mask = draw()
    core = random_core(network)
    gradients = []
    for output in (network(obs, resets=resets, core=core, action_mask=mask), step_through(network, core)):
        network.zero_grad()
        (output.logits[mask].square().sum() + output.values.sum()).backward()
        gradients.append([p.grad.clone() for p in network.parameters() if p.grad is not None])
    assert len(gradients[0]) == len(list(network.parameters()))
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_equal_seeds_give_equal_weights_and_no_other_random_state_moves(name: str) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first = build(name, seed=1)
    assert torch.get_rng_state().equal(before)
    torch.manual_seed(4)
    second, third = build(name, seed=1), build(name, seed=2)
    for (key, ours), theirs in zip(first.state_dict().items(), second.state_dict().values(), strict=True):
        assert ours.equal(theirs), key
    weights = [p.flatten() for p in first.parameters() if p.ndim > 1]
    others = [p.flatten() for p in third.parameters() if p.ndim > 1]
    assert not any(ours.equal(theirs) for ours, theirs in zip(weights, others, strict=True))


def test_blocks_come_in_order_and_declare_their_side_inputs() -> None:
    network = build("lstm")
    assert [(block.name, block.side_inputs) for block in network.blocks] == [
        ("encoder_0", ("obs",)),
        ("core", ("resets", "core", "host_resets")),
        ("heads", ("action_mask",)),
    ]
    assert [block.name for block in build("separate").blocks] == ["encoder_0", "encoder_1", "heads"]
    with pytest.raises(ValueError, match="must differ"):
        Network((network.blocks[0], network.blocks[0]), core_size=0)
    with pytest.raises(ValueError, match="unknown side inputs"):
        Block("odd", torch.nn.Identity(), ("masks",))


@pytest.mark.parametrize("name", CONFIGS)
def test_running_the_blocks_one_by_one_is_running_the_network(name: str) -> None:
    network = build(name)
    obs, resets, mask = draw()
    core = random_core(network)
    # As a pipeline does it: every block is given the state from before the unroll.
    side = SideInputs(obs, resets, core, mask)
    features = None
    for block in network.blocks:
        result = run_block(block, features, side)
        if block is network.blocks[-1]:
            logits, values = result
        else:
            features = result[0] if "core" in block.side_inputs else result
            assert features.is_floating_point()
    whole = network(obs, resets=resets, core=core, action_mask=mask)
    torch.testing.assert_close(logits, whole.logits, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(values, whole.values, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_belongs_to_exactly_one_block(name: str) -> None:
    network = build(name)
    of_blocks = [id(p) for block in network.blocks for p in block.module.parameters()]
    assert sorted(of_blocks) == sorted(id(p) for p in network.parameters())
    assert len(set(of_blocks)) == len(of_blocks)
    assert len(network.state_dict()) == len(of_blocks)


def test_a_copied_network_runs_on_its_own_weights() -> None:
    network = build("lstm")
    twin = copy.deepcopy(network)
    with torch.no_grad():
        for parameter in twin.parameters():
            parameter.zero_()
    obs, _, _ = draw()
    assert twin(obs).values.eq(0).all()
    assert not network(obs).values.eq(0).all()


@pytest.mark.parametrize("name", IN_BFLOAT16)
def test_bfloat16_weights_act_like_float32_ones(name: str) -> None:
    network = build(name)
    obs, resets, mask = draw()
    exact = network(obs, resets=resets, action_mask=mask)
    rough = copy.deepcopy(network).to(torch.bfloat16)(obs, resets=resets, action_mask=mask)
    assert {rough.logits.dtype, rough.values.dtype, rough.core.dtype} == {torch.float32}
    torch.testing.assert_close(rough.logits, exact.logits, rtol=0.05, atol=0.05)
    torch.testing.assert_close(rough.values, exact.values, rtol=0.05, atol=0.05)


@pytest.mark.parametrize("name", IN_BFLOAT16)
def test_autocast_learns_in_bfloat16_with_float32_outputs_and_gradients(name: str) -> None:
    network = build(name)
    obs, resets, mask = draw()
    exact = network(obs, resets=resets, action_mask=mask)
    with torch.autocast("cpu", torch.bfloat16):
        rough = network(obs, resets=resets, action_mask=mask)
    assert rough.logits.dtype == rough.values.dtype == torch.float32
    assert not rough.values.equal(exact.values)
    torch.testing.assert_close(rough.values, exact.values, rtol=0.05, atol=0.05)
    (rough.logits[mask].sum() + rough.values.sum()).backward()
    assert all(p.grad is not None and p.grad.dtype == torch.float32 for p in network.parameters())


def test_a_tanh_value_stays_within_its_bounds() -> None:
    network = build_network(CATEGORICAL, NetworkConfig(hidden=(16,), value_output="tanh", init_gain=1000.0), seed=0)
    values = network(draw()[0]).values
    assert values.abs().max() <= 1.0
    assert values.abs().max() > 0.9


def test_a_box_network_states_mean_and_deviation() -> None:
    network = build("mlp", BOX)
    output = network(draw()[0])
    assert output.logits.shape == (B, T, 4)
    noise = torch.rand(B, T, network.head.num_noise, generator=torch.Generator().manual_seed(0))
    actions, log_probs = network.head.sample(output.logits, noise)
    assert actions.shape == (B, T, 2, 1)
    torch.testing.assert_close(network.head.log_prob(output.logits, actions), log_probs)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (NetworkConfig(encoder="mpl"), "did you mean 'mlp'"),
        (NetworkConfig(core="lstmm"), "did you mean 'lstm'"),
        (NetworkConfig(encoder="no_such_module:build"), "cannot be loaded"),
    ],
)
def test_an_unknown_builder_is_an_error_that_names_the_nearest(config: NetworkConfig, message: str) -> None:
    with pytest.raises(UnknownPartError, match=message):
        build_network(CATEGORICAL, config, seed=0)


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden": (8, 0)},
        {"core_size": 0},
        {"core_layers": 0},
        {"core_context": 0},
        {"entity_size": 0},
        {"init_gain": 0.0},
    ],
)
def test_impossible_numbers_are_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="must"):
        NetworkConfig(**changes)


@pytest.mark.parametrize(
    ("head", "actions", "kind"),
    [
        ("box", ActionSpec("categorical", num_actions=3), "categorical"),
        ("tanh_gaussian", ActionSpec("categorical", num_actions=3), "categorical"),
        ("categorical", ActionSpec("box", shape=(2,)), "box"),
        ("multi_categorical", ActionSpec("box", shape=(2,)), "box"),
        ("autoregressive", ActionSpec("categorical", num_actions=3), "categorical"),
    ],
)
def test_a_head_for_another_kind_of_action_is_refused(head: str, actions: ActionSpec, kind: str) -> None:
    spec = EnvSpec("some", 1, {"seen": ArraySpec((4,), "float32")}, actions, (0,), has_mask=False)
    with pytest.raises(ValueError, match=rf"head: {head} answers .* actions, the game takes {kind}; use head: auto"):
        build_network(spec, NetworkConfig(head=head), seed=0)
