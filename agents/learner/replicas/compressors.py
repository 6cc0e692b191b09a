"""Compressions of a vector for its way to other replicas, each a message of bytes that any of them can read.

Shape letters: P numbers of a vector, B bytes of a message.
"""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from league.agents.learner.algorithms.algorithms import COMPRESSORS
from league.agents.learner.replicas.config import NO_COMPRESSION, SparseConfig
from league.envs.component_choice import Component, kind_of
from league.envs.plugin_options import component_of

BLOCK = 256
"""Numbers with one scale in a message of `int8`."""


class Compressor(Protocol):
    """Writes vectors as messages; all messages for vectors of one size have the same size.

    Built as `compressor()`; with `options=...` where it declares options.

    Fields:
      consensus_step: of gossip, stable with this compression on a ring and an exponential graph of 8. A larger one may
        diverge: what a message leaves out comes late.
    """

    consensus_step: float

    def encode(self, vector: Tensor, *, number: int) -> Tensor:
        """uint8 [B] from floating-point [P]. number: of the message; equal in all replicas."""
        ...

    def decode(self, message: Tensor, *, number: int, like: Tensor) -> Tensor:
        """The vector of a message, of the size and type of `like`; what was left out is 0."""
        ...


def make_compressor(choice: Component, *, place: str) -> Compressor | None:
    """The compression of that name, a registered one or "module:attribute", with its options; None for "none".

    Raises:
      PluginError: there is none such, or its options do not fit.
    """
    if kind_of(choice) == NO_COMPRESSION:
        return None
    compressor: Compressor = component_of(choice, COMPRESSORS, what="compression", place=place)()
    return compressor


class Bfloat16:
    """16 of the 32 bits: 2 P bytes."""

    consensus_step = 1.0

    def encode(self, vector: Tensor, *, number: int) -> Tensor:
        return vector.bfloat16().view(torch.uint8)

    def decode(self, message: Tensor, *, number: int, like: Tensor) -> Tensor:
        return message.view(torch.bfloat16).to(like.dtype)


class Int8:
    """Whole multiples of a 127th of the largest number of each block of 256: P + 4 ceil(P / 256) bytes.

    Source: Dettmers 2016, 8-bit approximations for parallelism in deep learning; blocks of Dettmers et al. 2022.
    """

    consensus_step = 1.0

    def encode(self, vector: Tensor, *, number: int) -> Tensor:
        blocks = _in_blocks(vector.float())
        scales = blocks.abs().amax(dim=1, keepdim=True) / 127.0
        levels = (blocks / scales.clamp(min=torch.finfo(torch.float32).tiny)).round().to(torch.int8)
        return torch.cat([levels.reshape(-1)[: vector.numel()].view(torch.uint8), _bytes(scales.reshape(-1))])

    def decode(self, message: Tensor, *, number: int, like: Tensor) -> Tensor:
        size = like.numel()
        levels = _in_blocks(message[:size].view(torch.int8).to(like.dtype))
        scales = _numbers(message[size:], torch.float32).to(like.dtype)
        return (levels * scales[:, None]).reshape(-1)[:size]


class Sign:
    """The sign of each number, times their mean size: ceil(P / 8) + 4 bytes.

    Source: Karimireddy et al. 2019, Error feedback fixes SignSGD, section 4 (scaled sign).
    """

    consensus_step = 0.02

    def encode(self, vector: Tensor, *, number: int) -> Tensor:
        bits = torch.nn.functional.pad((vector >= 0).to(torch.uint8), (0, -vector.numel() % 8))
        packed = (bits.view(-1, 8) << _places(vector)).sum(dim=1, dtype=torch.uint8)
        return torch.cat([packed, _bytes(vector.abs().mean()[None].float())])

    def decode(self, message: Tensor, *, number: int, like: Tensor) -> Tensor:
        bits = (message[:-4, None] >> _places(like)) & 1
        signs = bits.reshape(-1)[: like.numel()].to(like.dtype) * 2.0 - 1.0
        return signs * _numbers(message[-4:], torch.float32).to(like.dtype)


class TopK:
    """The numbers of largest size with their places: 8 k bytes of float32 numbers, for k of them.

    Source: Stich et al. 2018, Sparsified SGD with memory.
    """

    def __init__(self, *, options: SparseConfig) -> None:
        self._fraction = options.fraction
        self.consensus_step = options.fraction

    def encode(self, vector: Tensor, *, number: int) -> Tensor:
        places = vector.abs().topk(num_kept(vector, self._fraction), sorted=False).indices
        return torch.cat([_bytes(places.to(torch.int32)), _bytes(vector[places])])

    def decode(self, message: Tensor, *, number: int, like: Tensor) -> Tensor:
        kept = num_kept(like, self._fraction)
        places = _numbers(message[: 4 * kept], torch.int32).long()
        return torch.zeros_like(like).index_put_((places,), _numbers(message[4 * kept :], like.dtype))


class RandomK:
    """Numbers at places that all replicas draw alike, so that no place is sent: 4 k bytes of float32 numbers.

    Source: Stich et al. 2018, Sparsified SGD with memory.
    """

    def __init__(self, *, options: SparseConfig) -> None:
        self._fraction = options.fraction
        self.consensus_step = 0.5 * options.fraction

    def encode(self, vector: Tensor, *, number: int) -> Tensor:
        return _bytes(vector[self._places(vector, number)])

    def decode(self, message: Tensor, *, number: int, like: Tensor) -> Tensor:
        places = self._places(like, number)
        return torch.zeros_like(like).index_put_((places,), _numbers(message, like.dtype))

    def _places(self, vector: Tensor, number: int) -> Tensor:
        generator = torch.Generator().manual_seed(number)  # on the CPU: devices draw differently
        places = torch.randperm(vector.numel(), generator=generator)[: num_kept(vector, self._fraction)]
        return places.to(vector.device)


def num_kept(vector: Tensor, fraction: float) -> int:
    """Numbers in a message of a sparse compression."""
    return max(round(fraction * vector.numel()), 1)


def _in_blocks(vector: Tensor) -> Tensor:
    return torch.nn.functional.pad(vector, (0, -vector.numel() % BLOCK)).view(-1, BLOCK)


def _places(vector: Tensor) -> Tensor:
    return torch.arange(8, dtype=torch.uint8, device=vector.device)


def _bytes(numbers: Tensor) -> Tensor:
    return numbers.contiguous().view(torch.uint8)


def _numbers(message: Tensor, dtype: torch.dtype) -> Tensor:
    return message.clone().view(dtype)  # a copy: a slice may lie at an address that the type does not allow
