"""Random numbers that are a function of a seed, the number of the draw and a place: equal on every device.

Two keys in the device's memory move with every draw, so that a replayed graph draws new numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor

WORD = (1 << 32) - 1
FACTORS, INCREMENTS = (0x0019660D, 0x5D588B65), (0x3C6EF35F, 0x00269EC3)
"""Of the two keys. Each visits every word once before it repeats."""
FLOAT_BITS = 24
"""Bits of a uniform number: all that a float32 in [0, 1) holds."""


class Draws:
    """A stream of random numbers on a device. Args: seed: any whole number."""

    def __init__(self, seed: int, *, device: torch.device) -> None:
        words = torch.tensor([seed & WORD, (seed >> 32) & WORD])
        self.keys = scrambled(scrambled(words) ^ words.flip(0)).to(device)
        self._factors, self._increments = (torch.tensor(pair, device=device) for pair in (FACTORS, INCREMENTS))

    def uniforms(self, count: int) -> Tensor:
        """float32 [count] in [0, 1), in steps of 2^-24."""
        return (self._words(count) >> (32 - FLOAT_BITS)).float() * 2.0**-FLOAT_BITS

    def below(self, limit: int, count: int) -> Tensor:
        """int64 [count] in [0, limit), for limits far below 2^31."""
        return (self._words(count) * limit) >> 32

    def _words(self, count: int) -> Tensor:
        """int64 [count], each in [0, 2^32)."""
        self.keys.copy_((self.keys * self._factors + self._increments) & WORD)
        places = torch.arange(count, device=self.keys.device)
        # One key before and one between two rounds: with one alone, two draws would be one sequence from two places.
        return scrambled(scrambled((places + self.keys[0]) & WORD) ^ self.keys[1])


def scrambled(words: Tensor) -> Tensor:
    """A permutation of int64 in [0, 2^32) that leaves no pattern; no product exceeds 63 bits.

    Source: the multiply and xorshift hashes of C. Wellons' hash-prospector.
    """
    words = words ^ (words >> 16)
    words = (words * 0x21F0AAAD) & WORD
    words = words ^ (words >> 15)
    words = (words * 0x735A2D97) & WORD
    return words ^ (words >> 15)
