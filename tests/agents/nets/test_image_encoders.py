"""Picture encoders: what they see, at what scale, and what they refuse."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from league.agents.nets.config import NetworkConfig
from league.agents.nets.image_encoders import BlockMeans
from league.agents.nets.network import Network, build_network
from league.envs.facts.pictures import has_channels_first, picture_shape
from league.envs.protocol import ActionSpec, ArraySpec, EnvSpec


def build(observations: dict[str, ArraySpec], encoder: str) -> Network:
    spec = EnvSpec("toy", 1, observations, ActionSpec("categorical", 3), (0,), False)
    return build_network(spec, NetworkConfig(encoder=encoder, hidden=(8,), channels=(4, 6)), seed=0)


def num_features(network: Network) -> int:
    return network.parts["encoder_0"].linear.in_features


def test_a_plain_convolution_keeps_the_size_and_a_residual_stage_halves_it() -> None:
    picture = {"picture": ArraySpec((7, 5, 2), "uint8")}
    assert num_features(build(picture, "conv")) == 6 * 7 * 5
    assert num_features(build(picture, "impala_resnet")) == 6 * 2 * 2
    extra = {**picture, "speed": ArraySpec((3,), "float32")}
    assert num_features(build(extra, "conv")) == 6 * 7 * 5 + 3


def test_strided_layers_cut_a_picture_down_and_average_a_large_one_first() -> None:
    def built(height: int, width: int, channels: tuple[int, ...] = (4, 6, 5)) -> Network:
        spec = EnvSpec(
            "toy", 1, {"x": ArraySpec((height, width, 3), "uint8")}, ActionSpec("categorical", 3), (0,), False
        )
        return build_network(spec, NetworkConfig(encoder="nature_cnn", hidden=(8,), channels=channels), seed=0)

    assert num_features(built(84, 84)) == 5 * 12 * 12  # sides of 84, 22, 12 and 12
    assert num_features(built(84, 84)) == num_features(built(84 * 5, 84 * 5))
    assert num_features(built(84, 84, (4, 6))) == 6 * 12 * 12
    assert num_features(built(84, 84, (4, 6, 5, 7))) == 7 * 12 * 12
    large = built(200, 100).parts["encoder_pictures"]
    means_of = large.means[0]
    pixels = torch.rand(20, 200, 100, 3)
    means = means_of(pixels)
    assert means.shape == (20, 67, 34, 3)
    torch.testing.assert_close(means[:, 1, 2], pixels[:, 3:6, 6:9].mean(dim=(1, 2)))
    torch.testing.assert_close(means[:, -1, -1], pixels[:, 198:, 99:].mean(dim=(1, 2)))
    pooled = torch.nn.functional.avg_pool2d(pixels.permute(0, 3, 1, 2), 3, ceil_mode=True, count_include_pad=False)
    torch.testing.assert_close(means.permute(0, 3, 1, 2), pooled)
    colours = (pixels * 255).to(torch.uint8)
    torch.testing.assert_close(means_of(colours), means_of(colours.float()), rtol=0.0, atol=0.0)
    assert {name for name, _ in large.named_parameters() if name.endswith("weight")} == {
        f"stages.0.{number}.entry.weight" for number in (1, 2, 3)
    }


@pytest.mark.parametrize("encoder", ["conv", "impala_resnet", "nature_cnn"])
def test_bytes_are_scaled_to_one_and_other_numbers_left_alone(encoder: str) -> None:
    as_bytes = build({"picture": ArraySpec((6, 6, 1), "uint8")}, encoder)
    as_floats = build({"picture": ArraySpec((6, 6, 1), "float32")}, encoder)
    pixels = torch.randint(0, 256, (4, 6, 6, 1), generator=torch.Generator().manual_seed(0))
    ours = as_bytes.step({"picture": pixels.to(torch.uint8)})
    theirs = as_floats.step({"picture": pixels.float() / 255.0})
    torch.testing.assert_close(ours.values, theirs.values, rtol=1e-5, atol=1e-6)


def test_the_first_plain_layer_is_a_convolution_over_height_and_width_with_channels_last() -> None:
    network = build({"picture": ArraySpec((4, 5, 2), "float32")}, "conv")
    first = network.parts["encoder_pictures"].stages[0][0]
    picture = torch.zeros(1, 4, 5, 2)
    picture[0, 2, 3, 1] = 1.0
    planes = first(picture.permute(0, 3, 1, 2))
    # The one lit pixel of channel 1 prints the mirrored kernel of that channel around itself.
    printed = torch.relu(first.entry.weight[:, 1].flip(-1, -2))
    torch.testing.assert_close(planes[0, :, 1:4, 2:5], printed)
    lit = network.parts["encoder_pictures"](obs={"picture": picture})
    again = network.parts["encoder_pictures"].stages[0](picture.permute(0, 3, 1, 2)).flatten(1)
    torch.testing.assert_close(lit, again)


def test_a_game_without_pictures_is_refused_with_the_shapes_and_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"no field of rank 3.*\(11,\).*use 'mlp'"):
        build({"cards": ArraySpec((11,), "bool")}, "conv")


@pytest.mark.parametrize("encoder", ["conv", "impala_resnet", "nature_cnn", "dict"])
@pytest.mark.parametrize(("height", "width"), [(40, 40), (44, 36), (130, 100)])
def test_channels_may_come_first(encoder: str, height: int, width: int) -> None:
    first = build({"picture": ArraySpec((3, height, width), "uint8")}, encoder)
    last = build({"picture": ArraySpec((height, width, 3), "uint8")}, encoder)
    pixels = torch.randint(0, 256, (2, 3, height, width), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    ours, theirs = first.step({"picture": pixels}), last.step({"picture": pixels.permute(0, 2, 3, 1)})
    torch.testing.assert_close(ours.logits, theirs.logits)
    torch.testing.assert_close(ours.values, theirs.values)


def test_boards_keep_their_axes() -> None:
    shapes = ((2, 6, 7), (2, 8, 8), (8, 8, 111), (19, 19, 17), (84, 84, 4), (210, 160, 3), (6, 7, 2))
    assert [shape for shape in shapes if has_channels_first(shape)] == []
    assert picture_shape((4, 84, 84)) == picture_shape((84, 84, 4)) == (84, 84, 4)


@pytest.mark.parametrize("encoder", ["conv", "nature_cnn"])
def test_pictures_of_large_floats_are_scaled_as_the_config_says(encoder: str) -> None:
    spec = EnvSpec("toy", 1, {"x": ArraySpec((6, 6, 1), "float32")}, ActionSpec("categorical", 3), (0,), False)
    config = NetworkConfig(encoder=encoder, hidden=(8,), channels=(4, 6))
    plain = build_network(spec, config, seed=0)
    squashed = build_network(spec, replace(config, input_scaling="symlog"), seed=0)
    pixels = 255.0 * torch.rand(2, 6, 6, 1, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(squashed.step({"x": pixels}).values, plain.step({"x": pixels.log1p()}).values)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32])
def test_means_over_blocks_are_means_whatever_the_type_holds(dtype: torch.dtype) -> None:
    """Sums of small types overflow, and those of flags would be flags again."""
    most = 1 if dtype == torch.bool else min(torch.iinfo(dtype).max, 30_000)
    pictures = torch.full((1, 200, 130, 2), most).to(dtype)
    pictures[:, :, 65:] = 0
    means = BlockMeans(200, 130)(pictures).double()
    expected = torch.nn.functional.avg_pool2d(
        pictures.double().permute(0, 3, 1, 2), 3, ceil_mode=True, count_include_pad=False
    )
    torch.testing.assert_close(means, expected.permute(0, 2, 3, 1), rtol=1e-6, atol=0.0)


@pytest.mark.parametrize("encoder", ["conv", "impala_resnet", "nature_cnn", "dict"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"channels": ()}, "channels is empty: give the widths of the convolutions over a picture, or encoder: mlp"),
        ({"input_moments": {"screen": ((0.0, 2.0),) * 3}}, "the field 'screen' is a picture, which has none"),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_settings_that_no_picture_has_are_refused(
    encoder: str, changes: dict[str, object], message: str, dtype: str
) -> None:
    spec = EnvSpec(
        "screens", 1, {"screen": ArraySpec((20, 20, 3), dtype)}, ActionSpec("categorical", num_actions=2), (0,), False
    )
    with pytest.raises(ValueError, match=message):
        build_network(spec, NetworkConfig(encoder=encoder, **changes), seed=0)  # type: ignore[arg-type]
