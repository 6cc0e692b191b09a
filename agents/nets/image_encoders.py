"""Encoders for pictures and boards: plain and strided convolutions, and IMPALA's residual network.

Shape letters: ... leading axes, H height, W width, C channels, D features. A field of rank 3 is a picture, with its
channels where `league.envs.facts.pictures` sees them. Fields of other ranks are flattened and join its features
after the convolutions.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from itertools import pairwise

import torch
from torch import Tensor, nn

from league.agents.nets.blocks import ACTIVATIONS, Block, Encoder, compute_dtype, unset_on_cpu
from league.agents.nets.config import NetworkConfig
from league.agents.nets.input_scaling import FieldScaling
from league.agents.nets.kernels.precision import ExactModule
from league.agents.nets.mlp import FlattenFields, dense_blocks
from league.envs.facts.pictures import PICTURE_RANK, has_channels_first, picture_shape
from league.envs.protocol import ArraySpec

LARGE_SIDE = 96
"""Height or width in pixels beyond which strided convolutions see averages over blocks of pixels."""
CACHED_PICTURES = 8
STRIDED = ((8, 4), (4, 2), (3, 1))
"""Kernel and stride of each strided layer."""


class ResidualPair(nn.Module):
    """Two convolutions with a residual connection."""

    def __init__(self, num_channels: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = _convolution(num_channels, num_channels, generator, gain=2.0**0.5)
        self.second = _convolution(num_channels, num_channels, generator, gain=1.0)

    def forward(self, pictures: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C, H, W]."""
        change: Tensor = self.second(torch.relu(self.first(torch.relu(pictures))))
        return pictures + change


class ResidualStage(nn.Module):
    """Convolution, pooling to half the size, two residual pairs. Source: Espeholt et al. 2018, IMPALA, figure 3."""

    def __init__(self, num_inputs: int, num_outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.entry = _convolution(num_inputs, num_outputs, generator, gain=1.0)
        self.pairs = nn.Sequential(ResidualPair(num_outputs, generator), ResidualPair(num_outputs, generator))

    def forward(self, pictures: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C', ceil(H / 2), ceil(W / 2)]."""
        halved = nn.functional.max_pool2d(self.entry(pictures), kernel_size=3, stride=2, padding=1)
        output: Tensor = self.pairs(halved)
        return output


class PlainStage(nn.Module):
    """Convolution and activation; keeps height and width, which suits small boards."""

    def __init__(self, num_inputs: int, num_outputs: int, activation: str, generator: torch.Generator) -> None:
        super().__init__()
        self.activation, gain = ACTIVATIONS[activation]
        self.entry = _convolution(num_inputs, num_outputs, generator, gain=gain)

    def forward(self, pictures: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C', H, W]."""
        return self.activation(self.entry(pictures))


class StridedStage(nn.Module):
    """Convolution with a stride, and activation; padded so that a picture of any size has an output."""

    def __init__(
        self, widths: tuple[int, int], kernel_and_stride: tuple[int, int], activation: str, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.activation, gain = ACTIVATIONS[activation]
        kernel, stride = kernel_and_stride
        self.entry = _convolution(*widths, generator, gain=gain, kernel=kernel, stride=stride)

    def forward(self, pictures: Tensor) -> Tensor:
        """[N, C, H, W] -> [N, C', about H / stride, about W / stride]."""
        return self.activation(self.entry(pictures))


class BlockMeans(ExactModule):
    """Means over square blocks of pixels, as many to a side as bring both sides to `LARGE_SIDE` at most."""

    pixels: Tensor
    """In each block [1, h, w, 1]; fewer in those at the end."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__()
        side = -(-max(height, width) // LARGE_SIDE)
        self.side = side
        self._missing = (0, 0, 0, -width % side, 0, -height % side)
        pixels = _block_sums(torch.ones(1, height, width, 1), side, self._missing)
        self.register_buffer("pixels", pixels, persistent=False)

    def forward(self, pictures: Tensor) -> Tensor:
        """[N, H, W, C] -> [N, ceil(H / side), ceil(W / side), C] float32; as it is where both sides are small."""
        if self.side == 1:
            return pictures
        # On a CPU in pieces that stay in its cache. Pooling of every pixel as a float takes 4 to 6 times as long.
        pieces = torch.split(pictures, CACHED_PICTURES) if pictures.device.type == "cpu" else (pictures,)
        means = [_block_sums(piece, self.side, self._missing) / self.pixels for piece in pieces]
        return means[0] if len(means) == 1 else torch.cat(means)


def _block_sums(pictures: Tensor, side: int, missing: tuple[int, ...]) -> Tensor:
    """Sums of [N, H, W, C] over blocks, with `missing` rows and columns of zeros at the end.

    Those of bytes and flags are whole numbers, in the narrowest type that holds them; those of other whole numbers
    are float32.
    """
    dtype = pictures.dtype
    if dtype in (torch.uint8, torch.bool):
        dtype = torch.int16 if 255 * side**2 <= torch.iinfo(torch.int16).max else torch.int32
    elif not dtype.is_floating_point:
        dtype = torch.float32
    sums = nn.functional.pad(pictures, missing)
    for axis in (1, 2):
        first, *others = torch.unbind(sums.reshape(*sums.shape[:axis], -1, side, *sums.shape[axis + 1 :]), axis + 1)
        sums = first.to(dtype, copy=True)
        for other in others:
            sums += other
    return sums


class PictureInput(nn.Module):
    """The first block: runs each picture through its own stages, flattens it and appends the other fields.

    Raises:
      ValueError: there is no picture or no convolution, or the config has moments for a picture.
    """

    def __init__(
        self,
        observations: Mapping[str, ArraySpec],
        make_stages: Callable[[tuple[int, ...]], nn.Sequential],
        *,
        relu: bool,
        config: NetworkConfig,
        averages_large: bool = False,
    ) -> None:
        super().__init__()
        pictures = {name: spec for name, spec in observations.items() if len(spec.shape) == PICTURE_RANK}
        if not pictures:
            shapes = {name: spec.shape for name, spec in observations.items()}
            raise ValueError(f"no field of rank {PICTURE_RANK} (height, width, channels) among {shapes}; use 'mlp'")
        if not config.channels:
            raise ValueError("channels is empty: give the widths of the convolutions over a picture, or encoder: mlp")
        scaled = [name for name in pictures if name in config.input_moments]
        if scaled:
            raise ValueError(f"input_moments: the field {scaled[0]!r} is a picture, which has none")
        shapes = {name: picture_shape(spec.shape) for name, spec in pictures.items()}
        self.channels_first = tuple(name for name, spec in pictures.items() if has_channels_first(spec.shape))
        # Bytes are colours; their scale is fixed here, so that actors and learners cannot differ in it.
        self.pictures = tuple((name, 1.0 / 255.0 if spec.dtype == "uint8" else 1.0) for name, spec in pictures.items())
        self.scalings = nn.ModuleList(
            nn.Identity() if spec.dtype == "uint8" else FieldScaling(name, spec, config)
            for name, spec in pictures.items()
        )
        self.means = nn.ModuleList(
            BlockMeans(*shape[:2]) if averages_large else nn.Identity() for shape in shapes.values()
        )
        self.stages = nn.ModuleList(make_stages(shape) for shape in shapes.values())
        numbers = {name: spec for name, spec in observations.items() if name not in pictures}
        self.rest = FlattenFields(numbers, config)
        self.relu = relu
        with torch.no_grad():
            sizes = [
                stages(means(torch.zeros(1, *shape)).permute(0, 3, 1, 2)).numel()
                for means, stages, shape in zip(self.means, self.stages, shapes.values(), strict=True)
            ]
        self.num_features = sum(sizes) + self.rest.num_features

    def forward(self, *, obs: Mapping[str, Tensor]) -> Tensor:
        """Features [..., D] of observation fields [..., *shape]."""
        dtype = compute_dtype(next(self.parameters()))
        features = []
        parts = zip(self.pictures, self.scalings, self.means, self.stages, strict=True)
        for (name, scale), scaling, means, stages in parts:
            pictures = scaling(obs[name])
            leading = pictures.shape[:-PICTURE_RANK]
            pictures = pictures.flatten(0, -PICTURE_RANK - 1)
            if name in self.channels_first:
                pictures = pictures.permute(0, 2, 3, 1)
            rows = means(pictures).permute(0, 3, 1, 2).to(dtype)
            planes: Tensor = stages(rows if scale == 1.0 else rows * scale)
            features.append((torch.relu(planes) if self.relu else planes).reshape(*leading, -1))
        if self.rest.num_features:
            features.append(self.rest(obs, dtype))
        return features[0] if len(features) == 1 else torch.cat(features, dim=-1)


def build_conv(observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator) -> Encoder:
    """3x3 convolutions of `config.channels` at full size, then the layers of `config.hidden`."""
    return _encoder(plain_pictures(observations, config, generator), config, generator)


def plain_pictures(
    observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator
) -> PictureInput:
    """3x3 convolutions of `config.channels` at full size over every picture."""

    def make_stages(shape: tuple[int, ...]) -> nn.Sequential:
        widths = (shape[2], *config.channels)
        return nn.Sequential(*(PlainStage(a, b, config.activation, generator) for a, b in pairwise(widths)))

    return PictureInput(observations, make_stages, relu=False, config=config)


def build_nature_cnn(
    observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator
) -> Encoder:
    """Three strided convolutions of `config.channels`, then the layers of `config.hidden`; cheap on large pictures.

    Source: Mnih et al. 2015, Human-level control through deep reinforcement learning (kernels 8, 4, 3; strides 4, 2, 1;
    channels 32, 64, 64; hidden 512). Further channels are layers of kernel 3 and stride 1.
    """

    def make_stages(shape: tuple[int, ...]) -> nn.Sequential:
        forms = (*STRIDED, *[STRIDED[-1]] * (len(config.channels) - len(STRIDED)))
        widths = pairwise((shape[2], *config.channels))
        layers = (
            StridedStage(pair, form, config.activation, generator) for pair, form in zip(widths, forms, strict=False)
        )
        # from 1, as the weights of earlier runs name them
        return nn.Sequential(OrderedDict((str(number), layer) for number, layer in enumerate(layers, 1)))

    pictures = PictureInput(observations, make_stages, relu=False, config=config, averages_large=True)
    return _encoder(pictures, config, generator)


def build_impala_resnet(
    observations: Mapping[str, ArraySpec], config: NetworkConfig, generator: torch.Generator
) -> Encoder:
    """One residual stage per entry of `config.channels`, each halving the picture, then the layers of `config.hidden`.

    Source: Espeholt et al. 2018, IMPALA, figure 3, right (channels 16, 32, 32; hidden 256).
    """

    def make_stages(shape: tuple[int, ...]) -> nn.Sequential:
        widths = (shape[2], *config.channels)
        return nn.Sequential(*(ResidualStage(a, b, generator) for a, b in pairwise(widths)))

    pictures = PictureInput(observations, make_stages, relu=True, config=config)
    return _encoder(pictures, config, generator)


def _encoder(pictures: PictureInput, config: NetworkConfig, generator: torch.Generator) -> Encoder:
    trunk, num_features = dense_blocks(pictures.num_features, config, generator)
    return Encoder((Block("encoder_pictures", pictures, ("obs",)), *trunk), num_features)


def _convolution(
    num_inputs: int, num_outputs: int, generator: torch.Generator, *, gain: float, kernel: int = 3, stride: int = 1
) -> nn.Conv2d:
    """A convolution, padded by half its kernel, with orthogonal weights and zero bias drawn from `generator` alone."""
    convolution = unset_on_cpu(nn.Conv2d(num_inputs, num_outputs, kernel, stride, padding=kernel // 2, device="meta"))
    nn.init.orthogonal_(convolution.weight, gain=gain, generator=generator)
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return convolution
