"""Networks of seat groups: each row equals its group's own network alone, and padding has no part in anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from league.agents.learner.algorithms.kl_terms import magnet_sum, magnet_targets
from league.agents.learner.algorithms.objective import make_objective
from league.agents.learner.build import build_learner, build_updater
from league.agents.learner.config import LearnerConfig
from league.agents.learner.data.batch import batch_from
from league.agents.learner.pipeline_config import PipelineConfig
from league.agents.learner.workers.worker import NetworkPlan
from league.agents.nets.config import NetworkConfig
from league.agents.nets.network import Network, NetworkOutput, build_network
from league.agents.nets.popart import MIN_STD
from league.agents.nets.seat_groups import SeatGroupHeads, own_spec
from league.agents.unroll.synthetic import synthetic_unrolls
from league.agents.unroll.unroll import UnrollSpec
from league.agents.weights import layout_of
from league.envs.padding import mask_entries
from league.envs.protocol import SEAT_GROUP, ActionSpec, ArraySpec, EnvSpec, SeatGroup, multi_categorical
from tests.agents.pretend_gpu import pretended_gpu

SMALL = NetworkConfig(hidden=(8,), core_size=4)
PADDED = {"x": ArraySpec((4,), "float32"), "grid": ArraySpec((2, 3), "uint8"), SEAT_GROUP: ArraySpec((2,), "bool")}
OWN = ({"x": ArraySpec((4,), "float32")}, {"x": ArraySpec((2,), "float32"), "grid": ArraySpec((2, 3), "uint8")})
ACTIONS = {
    "categorical": [ActionSpec(kind="categorical", num_actions=size) for size in (5, 3, 5)],
    "multi_categorical": [
        multi_categorical((4, 2)),
        ActionSpec(kind="categorical", num_actions=3),
        multi_categorical((4, 2)),
    ],
    "box": [ActionSpec(kind="box", shape=(2,)), ActionSpec(kind="box", shape=(3,)), ActionSpec(kind="box", shape=(3,))],
}


def game(kind: str) -> EnvSpec:
    """Two seats of the first group, one of the second."""
    first, second, padded = ACTIONS[kind]
    return EnvSpec(
        "game",
        3,
        PADDED,
        padded,
        teams=(0, 0, 1),
        has_mask=kind != "box",
        seat_groups=(SeatGroup("many", (0, 1), OWN[0], first), SeatGroup("values", (2,), OWN[1], second)),
    )


def test_each_group_scales_its_own_numbers() -> None:
    spec, moments = game("categorical"), {"many/x": ((5.0, 2.0),) * 4, "values/x": ((100.0, 0.5),) * 2}
    plain, scaled = (build_network(spec, replace(SMALL, input_moments=own), seed=0) for own in ({}, moments))
    obs, rest = batch_of(spec, plain)
    by_hand, is_many = dict(obs), obs[SEAT_GROUP][..., :1].bool()
    by_hand["x"] = torch.where(is_many, (obs["x"] - 5.0) / 2.0, (obs["x"] - 100.0) / 0.5)
    by_hand["x"][..., 2:] *= is_many
    torch.testing.assert_close(scaled(obs, **rest).logits, plain(by_hand, **rest).logits)
    with pytest.raises(ValueError, match="no field 'x'"):
        build_network(spec, replace(SMALL, input_moments={"x": ((0.0, 1.0),) * 4}), seed=0)


def batch_of(spec: EnvSpec, network: Network, *, rows: int = 12, steps: int = 5) -> tuple[dict[str, Tensor], dict]:
    """Observations name -> [B, T+1, ...] and the other arguments of a forward pass."""
    unrolls = synthetic_unrolls(UnrollSpec.of(spec, network, unroll_length=steps), rows=rows, seed=3)
    batch = batch_from(unrolls, oldest_version=0, device=torch.device("cpu"))
    return dict(batch.obs), {"resets": batch.resets, "core": batch.core, "action_mask": batch.action_mask}


def own_network(network: Network, group: SeatGroup) -> Network:
    found = network.parts["seat_groups"].networks[f"group_{group.name}"]  # type: ignore[union-attr,index]
    assert isinstance(found, Network)
    return found


@pytest.mark.parametrize("core", ["none", "lstm"])
@pytest.mark.parametrize("kind", ACTIONS)
def test_every_row_equals_its_groups_own_network(kind: str, core: str) -> None:
    spec = game(kind)
    network = build_network(spec, replace(SMALL, core=core), seed=1)
    obs, rest = batch_of(spec, network)
    output = network(obs, **rest)
    group_of = obs[SEAT_GROUP][:, 0].int().argmax(-1)
    assert set(group_of.tolist()) == {0, 1}
    for row, index in enumerate(group_of.tolist()):
        group = spec.seat_groups[index]
        alone = own_network(network, group)
        own = {
            name: obs[name][row : row + 1][(..., *(slice(size) for size in array.shape))]
            for name, array in group.observations.items()
        }
        entries = torch.from_numpy(mask_entries(group.actions, spec.actions))
        mask = None if rest["action_mask"] is None else rest["action_mask"][row : row + 1][..., entries]
        start = rest["core"][row : row + 1, : alone.core_size]
        expected: NetworkOutput = alone(own, resets=rest["resets"][row : row + 1], core=start, action_mask=mask)
        assert torch.allclose(output.values[row], expected.values[0], atol=1e-6)
        assert torch.allclose(output.core[row], expected.core[0], atol=1e-6)
        head, own_head = network.head, alone.head
        assert torch.allclose(head.entropy(output.logits[row]), own_head.entropy(expected.logits[0]), atol=1e-5)
        if kind == "box":
            size = group.actions.shape[0]
            action = torch.linspace(-1, 1, 3).expand(6, 3)
            ratio = head.log_prob(output.logits[row], action) - head.log_prob(output.logits[row].roll(1, 0), action)
            own_action, logits = action[:, :size], expected.logits[0]
            other = own_head.log_prob(logits, own_action) - own_head.log_prob(logits.roll(1, 0), own_action)
            assert torch.allclose(ratio, other, atol=1e-5)
        else:
            assert torch.allclose(output.logits[row][:, entries], expected.logits[0], atol=1e-6)
            padding = np.setdiff1d(np.arange(spec.actions.num_actions), entries.numpy())
            assert (output.logits[row][:, padding] < -1e8).all()


@pytest.mark.parametrize("kind", ACTIONS)
def test_a_step_equals_the_unroll_and_padding_is_never_drawn(kind: str) -> None:
    spec = game(kind)
    network = build_network(spec, replace(SMALL, core="lstm"), seed=1)
    obs, rest = batch_of(spec, network, steps=1)
    mask = rest["action_mask"]
    whole = network({name: field[:, :1] for name, field in obs.items()}, core=rest["core"],
                    action_mask=None if mask is None else mask[:, :1])  # fmt: skip
    step = network.step({name: field[:, 0] for name, field in obs.items()}, core=rest["core"],
                        action_mask=None if mask is None else mask[:, 0])  # fmt: skip
    assert torch.allclose(step.logits, whole.logits[:, 0], atol=1e-6)
    assert torch.allclose(step.core, whole.core, atol=1e-6)
    assert torch.allclose(step.values, whole.values[:, 0], atol=1e-6)
    for draw in range(50):
        noise = torch.rand(12, network.head.num_noise, generator=torch.Generator().manual_seed(draw))
        actions, log_probs = network.head.sample(step.logits, noise)
        assert torch.isfinite(log_probs).all()
        second = obs[SEAT_GROUP][:, 0, 1]
        if kind == "categorical":
            assert (actions[second] < 3).all()
        elif kind == "multi_categorical":
            assert (actions[second][:, 0] < 3).all()
            assert (actions[second][:, 1] == 0).all()


def test_garbage_in_the_padding_changes_nothing() -> None:
    spec = game("categorical")
    network = build_network(spec, SMALL, seed=1)
    obs, rest = batch_of(spec, network)
    clean = network(obs, **rest)
    second = obs[SEAT_GROUP][:, 0, 1]
    obs["x"][second, :, 2:] = 1e6
    obs["grid"][~second] = 255
    dirty = network(obs, **rest)
    assert torch.equal(clean.logits, dirty.logits)
    assert torch.equal(clean.values, dirty.values)


def test_a_groups_rows_move_its_own_weights_alone() -> None:
    spec = game("categorical")
    network = build_network(spec, SMALL, seed=1)
    obs, rest = batch_of(spec, network)
    only = obs[SEAT_GROUP][:, 0, 0]
    output = network(
        {name: field[only] for name, field in obs.items()},
        core=rest["core"][only],
        action_mask=rest["action_mask"][only],
    )
    (network.head.entropy(output.logits).sum() + output.values.sum()).backward()
    moved = {name.split(".")[3] for name, weight in network.named_parameters() if weight.grad is not None}
    assert moved == {"group_many"}
    assert {name.split(".")[3] for name in layout_of(network).names} == {"group_many", "group_values"}


def test_groups_begin_with_weights_of_their_own() -> None:
    spec = game("categorical")
    same = replace(spec, seat_groups=tuple(replace(spec.seat_groups[0], name=name) for name in ("a", "b")))
    parts = build_network(same, SMALL, seed=1).parts["seat_groups"].networks  # type: ignore[union-attr]
    a, b = (parts[f"group_{name}"].parts["encoder_0"].layer.linear.weight for name in "ab")  # type: ignore[index]
    assert a.shape == b.shape
    assert not torch.allclose(a, b)


def test_the_kl_of_groups_is_that_of_their_own_actions() -> None:
    spec = game("box")
    one, two = (build_network(spec, SMALL, seed=seed) for seed in (1, 2))
    unrolls = synthetic_unrolls(UnrollSpec.of(spec, one, unroll_length=4), rows=8, seed=0)
    batch = batch_from(unrolls, oldest_version=0, device=torch.device("cpu"))
    outputs = [network(batch.obs, core=batch.core) for network in (one, two)]
    kept = batch.with_precomputed(magnet_targets(one.head, outputs[1], batch))
    total = magnet_sum(one.head, outputs[0].logits[:, :4], kept)
    by_hand = 0.0
    for index, group in enumerate(spec.seat_groups):
        size = group.actions.shape[0]
        for row in np.flatnonzero(unrolls.obs[SEAT_GROUP][:, 0].argmax(-1) == index):
            for step in np.flatnonzero(unrolls.valid[row]):
                mean, other = (output.logits[row, step, :size].detach().double() for output in outputs)
                by_hand += 0.5 * float((mean - other).square().sum())  # both have log standard deviations of 0
    assert float(total.detach()) == pytest.approx(by_hand, rel=1e-4)


@pytest.mark.parametrize("algorithm", ["vtrace", "ppo", "appo"])
@pytest.mark.parametrize("value", ["shared", "separate"])
def test_a_learner_with_popart_learns_and_keeps_all_values(algorithm: str, value: str) -> None:
    spec = game("multi_categorical")
    config = LearnerConfig(
        algorithm=algorithm, batch_rows=8, microbatches=2, unroll_length=4, value_normalisation="popart"
    )
    network = replace(SMALL, value=value, value_output="popart")
    learner = build_learner(spec, network, config, seed=0, dtype=torch.float32)
    try:
        before = learner.publish().vector.copy()
        rows = synthetic_unrolls(
            UnrollSpec.of(spec, build_network(spec, network, seed=0), unroll_length=4), rows=8, seed=1
        )
        learner.update(rows, budget_fraction=0.0)
        after = learner.publish()
        named = after.named()
        assert not np.array_equal(before, after.vector)
        moments = [array for name, array in named.items() if name.endswith("moments")]
        assert len(moments) == 2
        assert moments[0][1] > 2.0 * MIN_STD**2
        assert np.array_equal(moments[0], moments[1])
    finally:
        learner.close()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"pipeline": PipelineConfig(backend="threaded_pipeline", stages=2)}, "pipeline.stages: 2 stages are for one"),
        ({"compile_mode": "default"}, "compile_mode: default is for one network"),
    ],
)
def test_what_needs_one_network_is_refused(settings: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        build_updater(NetworkPlan(game("box"), SMALL, 0), LearnerConfig(**settings), dtype=torch.float32)


def test_heads_with_layers_of_their_own_are_refused() -> None:
    with pytest.raises(ValueError, match="a AutoregressiveHead cannot be padded"):
        build_network(
            replace(
                game("multi_categorical"),
                seat_groups=tuple(
                    replace(group, actions=multi_categorical((4, 2))) for group in game("multi_categorical").seat_groups
                ),
            ),
            replace(SMALL, head="autoregressive", encoder="mlp"),
            seed=0,
        )


def test_the_value_of_a_group_may_see_fields_of_its_team() -> None:
    spec = game("categorical")
    shown = {"team.x": ArraySpec((1, 4), "float32")}
    groups = tuple(replace(group, observations={**group.observations, **shown}) for group in spec.seat_groups)
    spec = replace(spec, observations={**PADDED, **shown}, value_fields=("team.x",), seat_groups=groups)
    assert own_spec(spec, groups[1]).value_fields == ("team.x",)
    network = build_network(spec, replace(SMALL, value="centralised"), seed=0)
    assert isinstance(network.blocks[-1].module, SeatGroupHeads)
    obs, rest = batch_of(spec, network)
    output = network(obs, **rest)
    obs["team.x"] += 1.0
    other = network(obs, **rest)
    assert torch.equal(output.logits, other.logits)
    assert not torch.allclose(output.values, other.values)
    del obs["team.x"]
    assert torch.equal(network(obs, **rest).logits, output.logits), "a policy acts without the fields of its team"


def test_ppo_normalises_the_advantages_of_each_group_by_themselves() -> None:
    spec = game("categorical")
    network = build_network(spec, SMALL, seed=1)
    unrolls = synthetic_unrolls(UnrollSpec.of(spec, network, unroll_length=5), rows=40, seed=3)
    batch = batch_from(unrolls, oldest_version=0, device=torch.device("cpu"))
    objective = make_objective(LearnerConfig(algorithm="ppo"), network.head)
    output = network(batch.obs, resets=batch.resets, core=batch.core, action_mask=batch.action_mask)
    of_second = batch.obs[SEAT_GROUP][:, 0, 1].bool()
    found = {}
    for scale in (1.0, 100.0):
        rewards = torch.where(of_second[:, None], scale * (batch.rewards + 3.0), batch.rewards)
        scaled = replace(batch, rewards=rewards)
        found[scale] = objective.precomputed(scaled, current=output, total=lambda tensor: tensor)["advantages"]
    assert torch.equal(found[1.0][~of_second], found[100.0][~of_second])
    for group in (of_second, ~of_second):
        chosen = found[100.0][group][batch.learn[group]]
        torch.testing.assert_close(torch.stack([chosen.mean(), chosen.std()]), torch.tensor([0.0, 1.0]))


def test_an_update_of_groups_on_a_gpu_waits_once_more_for_the_rows_of_each(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = game("multi_categorical")
    rows = synthetic_unrolls(UnrollSpec.of(spec, build_network(spec, SMALL, seed=0), unroll_length=4), rows=8, seed=1)
    with pretended_gpu(monkeypatch) as gpu:
        learner = build_learner(spec, SMALL, LearnerConfig(batch_rows=8, unroll_length=4), seed=0, dtype=torch.float32)
        before = gpu.reads
        learner.update(rows, budget_fraction=0.0)
        assert gpu.reads - before == 1 + len(spec.seat_groups)
        learner.close()
