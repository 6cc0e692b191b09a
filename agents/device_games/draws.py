"""Random numbers that are a function of a seed, a counter and a place: equal on every device.

A counter in the device's memory counts the draws, so that a replayed graph draws new numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

WORD = (1 << 32) - 1
FLOAT_BITS = 24
"""Bits of a uniform number: all that a float32 in [0, 1) holds."""


class Draws:
    """A stream of random numbers on a device. Args: seed: any whole number."""

    def __init__(self, seed: int, *, device: torch.device) -> None:
        words = [seed & WORD, (seed >> 32) & WORD]
        self.counter = torch.zeros(1, dtype=torch.int64, device=device)
        self._seed = torch.tensor(words, dtype=torch.int64, device=device)

    def uniforms(self, *shape: int) -> Tensor:
        """float32 of this shape in [0, 1), in steps of 2^-24."""
        return (self._words(*shape) >> (32 - FLOAT_BITS)).float() * 2.0**-FLOAT_BITS

    def below(self, limit: int, count: int) -> Tensor:
        """int64 [count] in [0, limit), for limits far below 2^31."""
        return (self._words(count) * limit) >> 32

    def _words(self, *shape: int) -> Tensor:
        """int64 of this shape, each in [0, 2^32)."""
        self.counter.add_(1)
        # Two keys from the counter: with one, two draws would be the same sequence from different places.
        first = scrambled(scrambled(self.counter & WORD) ^ self._seed[:1])
        second = scrambled(first ^ self._seed[1:] ^ (self.counter >> 32))
        places = torch.arange(torch.Size(shape).numel(), device=self.counter.device)
        return scrambled(scrambled((places + first) & WORD) ^ second).view(shape)


def scrambled(words: Tensor) -> Tensor:
    """A permutation of int64 in [0, 2^32) that leaves no pattern; no product exceeds 63 bits.

    Source: the two-round multiply and xorshift hashes of C. Wellons' hash-prospector.
    """
    words = words ^ (words >> 16)
    words = (words * 0x21F0AAAD) & WORD
    words = words ^ (words >> 15)
    words = (words * 0x735A2D97) & WORD
    return words ^ (words >> 15)
