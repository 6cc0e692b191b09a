"""Sub-actions: legality under every mask, one probability for actor and learner, pointers, entropies."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from league.agents.nets.autoregressive import AutoregressiveHead
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, build_network
from league.agents.nets.sub_actions import MultiCategoricalHead, SubActionsHead
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec, multi_categorical

ROWS, UNITS = 2048, 4
OBSERVATIONS = {
    "units": ArraySpec((UNITS, 3), "float32"),
    "units_mask": ArraySpec((UNITS,), "bool"),
    "clock": ArraySpec((2,), "float32"),
}
INDEPENDENT = multi_categorical((3, 2, 5))
STRUCTURED = multi_categorical((3, UNITS, 2, UNITS), mask_given=(-1, 0, -1, 1), points_at=("", "units", "", "units"))
"""What to do, which unit does it (legal ones depend on what), how, and to which unit (depends on who does it)."""

CONFIG = NetworkConfig(
    encoder="dict", hidden=(16,), entity_size=16, entity_layers=1, attention_heads=2, head_size=16, pointer_size=8
)
CASES = {
    "independent": (INDEPENDENT, CONFIG),
    "autoregressive": (INDEPENDENT, NetworkConfig(**{**vars(CONFIG), "encoder": "mlp", "head": "autoregressive"})),
    "structured": (STRUCTURED, NetworkConfig(**{**vars(CONFIG), "head": "autoregressive"})),
    "structured_memory": (
        STRUCTURED,
        NetworkConfig(
            **{**vars(CONFIG), "head": "autoregressive", "core": "lstm", "core_size": 8, "value": "separate"}
        ),
    ),
}


def build(name: str, *, scale: float = 200.0) -> Network:
    """A network with its last layers scaled up, so that its policy is far from uniform."""
    actions, config = CASES[name]
    spec = EnvSpec("toy", 2, OBSERVATIONS, actions, (0, 1), True)
    network = build_network(spec, config, seed=0)
    with torch.no_grad():
        heads = network.parts["heads"]
        for choice in getattr(heads.head, "choices", ()):
            (choice.query if hasattr(choice, "query") else choice.output).weight.mul_(scale)
        if isinstance(heads.head, MultiCategoricalHead):
            heads.linear.weight.mul_(scale)
    return network


def draw(actions: ActionSpec, rows: int = ROWS, seed: int = 0) -> tuple[dict[str, Tensor], Tensor]:
    """Observations and masks in which parts without a legal choice and absent units occur."""
    generator = torch.Generator().manual_seed(seed)
    obs = {
        "units": torch.randn(rows, UNITS, 3, generator=generator),
        "units_mask": torch.rand(rows, UNITS, generator=generator) < 0.7,
        "clock": torch.randn(rows, 2, generator=generator),
    }
    return obs, torch.rand(rows, actions.num_actions, generator=generator) < 0.5


def noise_for(network: Network, rows: int = ROWS, seed: int = 1) -> Tensor:
    return torch.rand(rows, network.head.num_noise, generator=torch.Generator().manual_seed(seed))


def legal_choices(
    actions: ActionSpec, chosen: list[int], mask: list[bool], present: list[bool] | None
) -> list[set[int]]:
    """Legal choices of each part given the whole action, literally as the spec defines them."""
    legal, start = [], 0
    for part, size in enumerate(actions.nvec):
        given = actions.mask_given[part]
        row = 0 if given < 0 else chosen[given]
        own = mask[start + row * size : start + (row + 1) * size]
        start += size * (1 if given < 0 else actions.nvec[given])
        points = present is not None and actions.points_at[part] == "units"
        legal.append({n for n in range(size) if own[n] and (not points or present[n])})
    return legal


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("extreme", [0.0, 1.0 - 2**-24, None])
def test_no_sub_action_is_ever_illegal_and_unused_ones_are_zero(name: str, extreme: float | None) -> None:
    network, actions = build(name), CASES[name][0]
    obs, mask = draw(actions, rows=512)
    output = network.step(obs, action_mask=mask)
    noise = noise_for(network, 512) if extreme is None else torch.full((512, network.head.num_noise), extreme)
    sampled, log_probs = network.head.sample(output.logits, noise)
    assert (sampled.dtype, sampled.shape) == (torch.int64, (512, *actions.shape))
    assert torch.isfinite(log_probs).all()
    unused = 0
    for chosen in (sampled, network.head.mode(output.logits)):
        for row in range(512):
            one = chosen[row].tolist()
            legal = legal_choices(actions, one, mask[row].tolist(), obs["units_mask"][row].tolist())
            assert all(
                number in allowed if allowed else number == 0 for number, allowed in zip(one, legal, strict=True)
            )
            unused += sum(not allowed for allowed in legal)
    assert unused > 20


@pytest.mark.parametrize("name", CASES)
def test_the_actors_log_probability_is_the_learners_bit_for_bit(name: str) -> None:
    network, actions = build(name), CASES[name][0]
    obs, mask = draw(actions)
    parameters = network.step(obs, action_mask=mask).logits
    sampled, log_probs = network.head.sample(parameters, noise_for(network))
    learned = network.head.log_prob(
        parameters.view(64, 32, -1), sampled.view(64, 32, -1).float()
    )  # as trajectories store
    torch.testing.assert_close(learned.flatten(), log_probs, rtol=0, atol=0)
    assert isinstance(network.head, SubActionsHead)
    by_sub_action, used, _ = network.head.sub_action_log_probs(parameters, sampled)
    assert by_sub_action.shape == used.shape == (*actions.shape, ROWS)
    torch.testing.assert_close(by_sub_action.sum(0), log_probs)
    assert by_sub_action[~used].eq(0).all()
    assert by_sub_action[used].lt(0).any()


@pytest.mark.parametrize("name", CASES)
def test_probabilities_of_all_actions_sum_to_one(name: str) -> None:
    network, actions = build(name), CASES[name][0]
    rows = 32
    obs, mask = draw(actions, rows=rows)
    parameters = network.step(obs, action_mask=mask).logits
    mass = torch.zeros(rows)
    for action in itertools.product(*(range(size) for size in actions.nvec)):
        legal = [
            legal_choices(actions, list(action), mask[row].tolist(), obs["units_mask"][row].tolist())
            for row in range(rows)
        ]
        possible = torch.tensor(
            [all(n in allowed if allowed else n == 0 for n, allowed in zip(action, row, strict=True)) for row in legal]
        )
        log_prob = network.head.log_prob(parameters, torch.tensor(action).expand(rows, -1))
        mass += torch.where(possible, log_prob.exp(), 0.0)
    torch.testing.assert_close(mass, torch.ones(rows), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", CASES)
def test_samples_follow_their_probabilities(name: str) -> None:
    network, actions = build(name, scale=50.0), CASES[name][0]
    obs, mask = draw(actions, rows=1, seed=5)
    mask[:] = True
    obs["units_mask"][:] = True
    num_samples = 20_000
    parameters = network.step(obs, action_mask=mask).logits.expand(num_samples, -1)
    sampled, _ = network.head.sample(parameters, noise_for(network, num_samples))
    everything = torch.tensor(list(itertools.product(*(range(size) for size in actions.nvec))))
    exact = network.head.log_prob(parameters[:1].expand(len(everything), -1), everything).exp()
    counts = (sampled[:, None] == everything).all(-1).sum(0)
    # Null: counts are multinomial. 5 standard deviations, over at most 96 actions: a false alarm below 1e-4.
    bound = 5.0 * torch.sqrt(num_samples * exact * (1 - exact)) + 1.0
    assert ((counts - num_samples * exact).abs() <= bound).all()


def test_a_later_sub_action_depends_on_the_choice_before_it() -> None:
    network = build("autoregressive")
    obs, _ = draw(INDEPENDENT, rows=1)
    parameters = network.step(obs).logits
    head = network.head
    assert isinstance(head, AutoregressiveHead)
    by_sub_action = [
        head.sub_action_log_probs(parameters, torch.tensor([[first, 0, 0]]))[0].detach() for first in range(3)
    ]
    assert len({round(float(log_probs[1]), 4) for log_probs in by_sub_action}) == 3
    independent = build("independent")
    parameters = independent.step(obs).logits
    by_sub_action = [
        independent.head.sub_action_log_probs(parameters, torch.tensor([[n, 0, 0]]))[0].detach() for n in range(3)
    ]
    assert len({float(log_probs[1]) for log_probs in by_sub_action}) == 1


def test_an_absent_unit_changes_no_pointer_whatever_its_row_holds() -> None:
    network = build("structured")
    obs, mask = draw(STRUCTURED)
    noise = noise_for(network)
    clean = network.head.sample(network.step(obs, action_mask=mask).logits, noise)
    dirty = torch.where(obs["units_mask"][..., None], obs["units"], torch.nan)
    other = network.head.sample(network.step({**obs, "units": dirty}, action_mask=mask).logits, noise)
    torch.testing.assert_close(other, clean, rtol=0, atol=0)


def test_a_pointer_follows_its_unit_to_another_row() -> None:
    network = build("structured")
    obs, _ = draw(STRUCTURED, rows=64)
    order = torch.tensor([2, 0, 3, 1])
    shuffled = {**obs, "units": obs["units"][:, order], "units_mask": obs["units_mask"][:, order]}
    actions = network.head.mode(network.step(obs).logits)
    moved = network.head.mode(network.step(shuffled).logits)
    there = obs["units_mask"].any(-1)
    assert (order[moved[there, 1]] == actions[there, 1]).all()
    assert (order[moved[there, 3]] == actions[there, 3]).all()
    assert len(actions[there, 1].unique()) > 1


def exact_entropy(head: SubActionsHead, parameters: Tensor, actions: ActionSpec) -> Tensor:
    everything = itertools.product(*(range(size) for size in actions.nvec))
    log_probs = torch.stack(
        [head.log_prob(parameters, torch.tensor(a).expand(len(parameters), -1)) for a in everything]
    )
    return -(log_probs.exp() * log_probs).sum(0)


def test_entropy_of_independent_sub_actions_is_that_of_the_whole_action() -> None:
    network = build("independent")
    parameters = network.step(draw(INDEPENDENT, rows=8)[0]).logits
    exact = exact_entropy(network.head, parameters, INDEPENDENT)
    torch.testing.assert_close(network.head.entropy(parameters), exact, rtol=1e-5, atol=1e-5)


def test_entropy_along_sampled_actions_is_that_of_the_whole_action_on_average() -> None:
    network = build("autoregressive", scale=60.0)
    parameters = network.step(draw(INDEPENDENT, rows=1)[0]).logits
    exact = exact_entropy(network.head, parameters, INDEPENDENT)
    many = parameters.expand(20_000, -1)
    sampled, _ = network.head.sample(many, noise_for(network, 20_000))
    estimates = network.head.entropy(many, sampled)
    error = estimates.std() / 20_000**0.5
    assert (estimates.mean() - exact).abs() < 4.5 * error + 1e-4
    assert (network.head.entropy(parameters) - exact).abs() > 1e-3  # along the likeliest choices it is another number


@pytest.mark.parametrize("name", CASES)
def test_log_probability_and_entropy_train_every_layer(name: str) -> None:
    network = build(name)
    obs, _ = draw(CASES[name][0], rows=64)
    unrolled = {key: field.view(8, 8, *field.shape[1:]) for key, field in obs.items()}
    output = network(unrolled)
    sampled, _ = network.head.sample(output.logits.detach(), noise_for(network, 64).view(8, 8, -1))
    loss = network.head.log_prob(output.logits, sampled).sum() + output.values.sum()
    (loss + network.head.entropy(output.logits, sampled).sum()).backward()
    for key, parameter in network.named_parameters():
        assert parameter.grad is not None, key
        assert torch.isfinite(parameter.grad).all(), key
        # A bias that all keys or all steps share moves no softmax; every other parameter must move.
        if "bias" not in key:
            assert parameter.grad.abs().sum() > 0, key


def test_bfloat16_weights_give_float32_log_probabilities_of_about_the_same_size() -> None:
    network = build("structured", scale=20.0)
    obs, mask = draw(STRUCTURED, rows=256)
    noise = noise_for(network, 256)
    sampled, exact = network.head.sample(network.step(obs, action_mask=mask).logits, noise)
    rough = network.to(torch.bfloat16)
    parameters = rough.step(obs, action_mask=mask).logits
    learned = rough.head.log_prob(parameters, sampled)
    assert learned.dtype == torch.float32
    torch.testing.assert_close(learned, exact, rtol=0.05, atol=0.1)


def test_a_first_policy_is_nearly_uniform() -> None:
    for name in ("independent", "autoregressive", "structured"):
        network = build(name, scale=1.0)
        obs, _ = draw(CASES[name][0], rows=64)
        obs["units_mask"][:] = True
        sizes = torch.tensor(CASES[name][0].nvec, dtype=torch.float32)
        torch.testing.assert_close(
            network.head.entropy(network.step(obs).logits), sizes.log().sum().expand(64), rtol=0.01, atol=0
        )


def test_what_does_not_fit_together_is_refused() -> None:
    def attempt(actions: ActionSpec, **changes: object) -> None:
        spec = EnvSpec("toy", 2, OBSERVATIONS, actions, (0, 1), True)
        build_network(spec, NetworkConfig(**{**vars(CONFIG), **changes}), seed=0)

    with pytest.raises(ValueError, match="set head: autoregressive"):
        attempt(STRUCTURED)
    with pytest.raises(ValueError, match="encoder 'mlp' cannot carry; use 'dict'"):
        attempt(STRUCTURED, head="autoregressive", encoder="mlp")
    with pytest.raises(ValueError, match="the head expects 45"):
        attempt(multi_categorical((5,), points_at=("units",)), head="autoregressive")
    with pytest.raises(ValueError, match=r"point at \['clock'\], but the entities are \['units'\]"):
        attempt(multi_categorical((2,), points_at=("clock",)), head="autoregressive")
    with pytest.raises(ValueError, match="answers multi_categorical actions, the game takes box"):
        attempt(ActionSpec("box", shape=(2,)), head="autoregressive")


def test_impossible_sub_actions_are_refused_where_the_spec_is_made() -> None:
    with pytest.raises(ValueError, match="equally many"):
        multi_categorical((2, 3), mask_given=(-1,))
    with pytest.raises(ValueError, match="at least one choice"):
        multi_categorical((2, 0))
    with pytest.raises(ValueError, match="depends on an earlier one"):
        multi_categorical((2, 3), mask_given=(1, -1))
    with pytest.raises(ValueError, match="need equal nvec"):
        multi_categorical((2, 3), points_at=("units", "units"))
    assert STRUCTURED.num_actions == 3 + 3 * UNITS + 2 + UNITS * UNITS
    assert STRUCTURED.shape == (4,)
