"""Scaled observations: which fields go through symlog, in every encoder, and that nothing else changes."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor

from league.agents.nets.config import NetworkConfig
from league.agents.nets.input_scaling import symlog
from league.agents.nets.network import Network, build_network
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec

Moments = tuple[tuple[float, float], ...]
NUMBERS = {
    "plain": ArraySpec((3,), "float32"),
    "counts": ArraySpec((2,), "int64"),
    "flags": ArraySpec((4,), "bool"),
    "bytes": ArraySpec((2,), "uint8"),
}
PICTURE = {"map": ArraySpec((4, 4, 2), "uint8")}
UNITS = {"units": ArraySpec((5, 3), "float32")}
CASES = {"mlp": NUMBERS, "dict": {**NUMBERS, **PICTURE, **UNITS}, "conv": {**NUMBERS, **PICTURE}, "entities": UNITS}
SCALED = ("plain", "counts", "bytes", "units")


MOMENTS = {
    "plain": ((100.0, 0.5), (0.0, 1.0), (-0.02, 0.01)),
    "counts": ((1e6, 10.0), (5.0, 2.0)),
    "units": ((0.0, 0.001), (0.0, 1.0), (7.0, 3.0)),
}


def build(
    encoder: str, scaling: str, hidden: tuple[int, ...] = (16,), moments: Mapping[str, Moments] | None = None
) -> Network:
    spec = EnvSpec("toy", 1, CASES[encoder], ActionSpec("categorical", 3), (0,), False)
    config = NetworkConfig(
        encoder=encoder,
        hidden=hidden,
        channels=(4,),
        entity_size=16,
        entity_layers=1,
        input_scaling=scaling,  # type: ignore[arg-type]
        input_moments=moments or {},
    )
    return build_network(spec, config, seed=0)


def draw(encoder: str) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(1)
    drawn = {name: 1000.0 * torch.randn(6, *spec.shape, generator=generator) for name, spec in CASES[encoder].items()}
    return {
        name: (numbers > 0)
        if CASES[encoder][name].dtype == "bool"
        else numbers.abs().clamp(max=255).byte()
        if CASES[encoder][name].dtype == "uint8"
        else numbers.to(getattr(torch, CASES[encoder][name].dtype))
        for name, numbers in drawn.items()
    }


def slow_symlog(number: float) -> float:
    return math.copysign(math.log(1.0 + abs(number)), number)


def test_symlog_is_odd_near_the_identity_at_0_and_logarithmic_far_out() -> None:
    numbers = torch.tensor([-1e30, -5.0, -1e-4, 0.0, 1e-4, 5.0, 1e30])
    expected = torch.tensor([slow_symlog(float(number)) for number in numbers])
    torch.testing.assert_close(symlog(numbers), expected)
    torch.testing.assert_close(symlog(torch.tensor([2**60])), torch.tensor([slow_symlog(2.0**60)]))


@pytest.mark.parametrize("encoder", CASES)
def test_a_scaled_network_is_the_plain_one_on_scaled_numbers_with_flags_and_images_as_they_are(encoder: str) -> None:
    obs = draw(encoder)
    by_hand = {name: symlog(field) if name in SCALED else field for name, field in obs.items()}
    scaled, plain = build(encoder, "symlog"), build(encoder, "none")
    assert scaled.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(scaled.step(obs).logits, plain.step(by_hand).logits)
    assert not torch.allclose(scaled.step(obs).logits, plain.step(obs).logits)


def test_a_network_without_hidden_layers_scales_too() -> None:
    obs = draw("mlp")
    by_hand = {name: symlog(field) if name in SCALED else field for name, field in obs.items()}
    torch.testing.assert_close(
        build("mlp", "symlog", ()).step(obs).values, build("mlp", "none", ()).step(by_hand).values
    )


def by_moments(field: Tensor, moments: Moments) -> Tensor:
    columns = [(field[..., place].double() - mean) / deviation for place, (mean, deviation) in enumerate(moments)]
    return torch.stack(columns, dim=-1).float()


@pytest.mark.parametrize("encoder", CASES)
@pytest.mark.parametrize("scaling", ["none", "symlog"])
def test_moments_come_before_the_transform_in_every_encoder(encoder: str, scaling: str) -> None:
    obs, moments = draw(encoder), {name: own for name, own in MOMENTS.items() if name in CASES[encoder]}
    by_hand = {name: by_moments(field, moments[name]) if name in moments else field for name, field in obs.items()}
    scaled, plain = build(encoder, scaling, moments=moments), build(encoder, scaling)
    assert scaled.state_dict().keys() == plain.state_dict().keys()
    torch.testing.assert_close(scaled.step(obs).logits, plain.step(by_hand).logits)
    assert not torch.allclose(scaled.step(obs).logits, plain.step(obs).logits)


def test_a_number_of_a_field_without_axes_has_one_pair() -> None:
    config = NetworkConfig(input_moments={"clock": ((50.0, 10.0),)})
    spec = EnvSpec("toy", 1, {"clock": ArraySpec((), "int64")}, ActionSpec("categorical", 3), (0,), False)
    plain = build_network(spec, NetworkConfig(), seed=0)
    obs = {"clock": torch.tensor([40, 60])}
    by_hand = {"clock": torch.tensor([-1, 1])}
    torch.testing.assert_close(build_network(spec, config, seed=0).step(obs).logits, plain.step(by_hand).logits)


@pytest.mark.parametrize(
    ("moments", "message"),
    [
        ({"plain": ((0.0, 1.0),)}, "1 pairs for the field 'plain', whose last axis has 3 numbers"),
        ({"flags": ((0.0, 1.0),) * 4}, "the field 'flags' holds flags, which have none"),
        ({"other": ((0.0, 1.0),)}, r"the game shows \['plain', .* and no field 'other'"),
        ({"plain": ((0.0, 0.0),) * 3}, "must be finite in float32, with deviations of at least"),
    ],
)
def test_moments_that_do_not_fit_are_refused(moments: Mapping[str, Moments], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build("mlp", "none", moments=moments)


@pytest.mark.parametrize("encoder", CASES)
def test_a_bfloat16_copy_scales_by_the_moments_of_float32(encoder: str) -> None:
    """1013.25 with a deviation of 0.5 is 1012 in bfloat16: the copy would read 2.5 where the learner reads 0."""
    fields = {name: spec for name, spec in CASES[encoder].items() if spec.dtype == "float32"}
    moments = {name: ((1013.25, 0.5),) * spec.shape[-1] for name, spec in fields.items()}
    obs = {name: 1013.25 + 5e-4 * field if name in fields else field for name, field in draw(encoder).items()}
    by_hand = {name: by_moments(field, moments[name]) if name in fields else field for name, field in obs.items()}
    scaled, plain = build(encoder, "none", moments=moments).bfloat16(), build(encoder, "none").bfloat16()
    torch.testing.assert_close(scaled.step(obs).logits, plain.step(by_hand).logits)
