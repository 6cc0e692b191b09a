"""Entities and dict observations: what padding and order may change (nothing), and where each field goes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.entities import build_entities
from league.agents.nets.network import Network, build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

ROWS, UNITS, NUMBERS = 6, 5, 3
UNITS_AND_SITES = {
    "units": ArraySpec((UNITS, NUMBERS), "float32"),
    "units_mask": ArraySpec((UNITS,), "bool"),
    "sites": ArraySpec((4, 2), "bool"),
    "clock": ArraySpec((), "float32"),
}
MIXED = {
    **UNITS_AND_SITES,
    "map": ArraySpec((4, 4, 2), "uint8"),
    "flags": ArraySpec((3,), "bool"),
    "history": ArraySpec((2, 2, 2, 2), "float32"),
}


def build(observations: dict[str, ArraySpec], encoder: str, **changes: object) -> Network:
    spec = EnvSpec("toy", 1, observations, ActionSpec("categorical", 3), (0,), False)
    small = {"hidden": (16,), "channels": (4,), "entity_size": 16, "attention_heads": 2, "entity_layers": 2}
    return build_network(spec, NetworkConfig(encoder=encoder, **{**small, **changes}), seed=0)


def draw(observations: dict[str, ArraySpec], seed: int = 0) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    obs = {}
    for name, spec in observations.items():
        numbers = torch.randn(ROWS, *spec.shape, generator=generator)
        dtype = getattr(torch, spec.dtype)
        obs[name] = numbers if dtype == torch.float32 else (numbers > 0).to(dtype)
    if "units_mask" in obs:
        obs["units_mask"] = (
            torch.arange(UNITS) < torch.arange(ROWS)[:, None]
        )  # no unit in the first row, all in the last
    return obs


@pytest.mark.parametrize("encoder", ["entities", "dict"])
@pytest.mark.parametrize("garbage", [1e30, float("nan"), float("inf")])
def test_what_padding_holds_changes_nothing_and_its_gradient_is_zero(encoder: str, garbage: float) -> None:
    network = build(UNITS_AND_SITES, encoder)
    obs = draw(UNITS_AND_SITES)
    clean = network.step(obs)
    dirty = torch.where(obs["units_mask"][..., None], obs["units"], garbage).requires_grad_()
    output = network.step({**obs, "units": dirty})
    torch.testing.assert_close(output.logits, clean.logits, rtol=0, atol=0)
    torch.testing.assert_close(output.values, clean.values, rtol=0, atol=0)
    output.values.sum().backward()
    assert dirty.grad is not None
    assert dirty.grad[~obs["units_mask"]].eq(0).all()
    assert dirty.grad[obs["units_mask"]].ne(0).any()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())


def test_more_padding_changes_nothing() -> None:
    """Also not as a place that is looked at or counted: the weights do not depend on the number of rows."""
    obs = draw(UNITS_AND_SITES)
    wide = {
        **UNITS_AND_SITES,
        "units": ArraySpec((UNITS + 3, NUMBERS), "float32"),
        "units_mask": ArraySpec((UNITS + 3,), "bool"),
    }
    padded = {
        **obs,
        "units": torch.cat([obs["units"], torch.randn(ROWS, 3, NUMBERS)], dim=1),
        "units_mask": torch.cat([obs["units_mask"], torch.zeros(ROWS, 3, dtype=torch.bool)], dim=1),
    }
    narrow = build(UNITS_AND_SITES, "entities").step(obs).values
    torch.testing.assert_close(build(wide, "entities").step(padded).values, narrow, rtol=1e-5, atol=1e-6)


def test_the_keys_and_flags_carried_are_those_of_the_set_that_is_pointed_at() -> None:
    sites = {"crates": ArraySpec((2, 3), "float32"), "sites": ArraySpec((4, 3), "float32")}
    both = {**sites, "crates_mask": ArraySpec((2,), "bool"), "sites_mask": ArraySpec((4,), "bool")}
    config = NetworkConfig(hidden=(16, 12), entity_size=16, attention_heads=2, pointer_size=8)
    encoder = build_entities(both, config, torch.Generator().manual_seed(0), pointers=("sites", "crates"))
    obs = draw(both)
    features = encoder.blocks[0].module(obs=obs)
    for block in encoder.blocks[1:]:
        features = block.module(features)
    assert (encoder.num_features, encoder.num_passthrough) == (12, 4 * 9 + 2 * 9)
    carried = features[:, 12:]
    assert carried[:, 32:36].bool().equal(obs["sites_mask"])
    assert carried[:, 52:].bool().equal(obs["crates_mask"])
    absent = carried[:, :32].view(ROWS, 4, 8)[~obs["sites_mask"]]
    assert absent.eq(0).all()
    assert carried[:, :32].view(ROWS, 4, 8)[obs["sites_mask"]].abs().sum(-1).gt(0).all()


def test_the_order_of_entities_changes_nothing() -> None:
    network = build(UNITS_AND_SITES, "entities")
    obs = draw(UNITS_AND_SITES)
    order = torch.tensor([3, 0, 4, 2, 1])
    shuffled = {**obs, "units": obs["units"][:, order], "units_mask": obs["units_mask"][:, order]}
    torch.testing.assert_close(network.step(shuffled).values, network.step(obs).values, rtol=1e-5, atol=1e-6)


def test_entities_hear_of_each_other_across_sets() -> None:
    """The first unit's own vector depends on the last site, and on nothing that is absent."""
    network = build(UNITS_AND_SITES, "entities")
    obs = draw(UNITS_AND_SITES)

    def first_unit(changed: dict[str, Tensor]) -> Tensor:
        features = network.blocks[0].module(obs={**obs, **changed})
        for block in network.blocks[1:3]:
            features = block.module(features)
        return features[-1, :16]

    sites = obs["sites"].clone()
    sites[:, 3] = ~sites[:, 3]
    assert not torch.allclose(first_unit({"sites": sites}), first_unit({}), atol=1e-4)


def test_a_row_without_entities_is_finite_and_rows_do_not_mix() -> None:
    only = {"units": UNITS_AND_SITES["units"], "units_mask": UNITS_AND_SITES["units_mask"]}
    network = build(only, "entities")
    obs = draw(only)
    values = network.step(obs).values
    assert torch.isfinite(values).all()
    alone = network.step({name: field[2:3] for name, field in obs.items()}).values
    torch.testing.assert_close(alone, values[2:3], rtol=1e-5, atol=1e-6)


def test_every_field_of_a_dict_observation_matters() -> None:
    network = build(MIXED, "dict")
    obs, other = draw(MIXED), draw(MIXED, seed=1)
    values = network.step(obs).values
    for name in MIXED:
        if name != "units_mask":
            changed = network.step({**obs, name: other[name]}).values
            assert not torch.allclose(changed[-1], values[-1], atol=1e-6), name
    hidden = network.step({**obs, "units_mask": obs["units_mask"] & (torch.arange(UNITS) < 2)}).values
    assert not torch.allclose(hidden[-1], values[-1], atol=1e-6)


def test_fields_go_where_their_shape_belongs() -> None:
    network = build(MIXED, "dict")
    first = network.parts["encoder_entities"]
    assert [one.name for one in first.layout.sets] == ["units", "sites"]
    assert [name for name, _ in first.others.branches["pictures"].pictures] == ["map"]
    assert [one.name for one in first.others.branches["vectors"].fields.scalings] == ["clock", "flags", "history"]
    names = [block.name for block in network.blocks]
    assert names == [
        "encoder_entities",
        "encoder_entities_0",
        "encoder_entities_1",
        "encoder_pool",
        "encoder_0",
        "heads",
    ]
    plain = build({"clock": MIXED["clock"], "map": MIXED["map"]}, "dict")
    assert [block.name for block in plain.blocks] == ["encoder_fields", "encoder_0", "heads"]


def test_a_dict_of_plain_numbers_needs_neither_pictures_nor_hidden_layers() -> None:
    network = build({"flags": MIXED["flags"]}, "dict", hidden=())
    assert network.step({"flags": torch.ones(2, 3, dtype=torch.bool)}).values.shape == (2,)


def test_what_does_not_fit_is_refused_with_the_shapes() -> None:
    with pytest.raises(ValueError, match=r"no field of rank 2.*\(3,\).*use 'mlp'"):
        build({"flags": ArraySpec((3,), "bool")}, "entities")
    for wrong in (ArraySpec((4,), "bool"), ArraySpec((UNITS,), "float32")):
        with pytest.raises(ValueError, match=r"mask of 'units' \(5, 3\) must be bool \(5,\)"):
            build({**UNITS_AND_SITES, "units_mask": wrong}, "entities")
    with pytest.raises(ValueError, match="3 attention heads do not divide a width of 16"):
        build(UNITS_AND_SITES, "entities", attention_heads=3)
