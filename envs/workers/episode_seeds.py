"""Derives the seed of every episode of every game from the seed of a reset, for envs that take a seed per episode."""

from __future__ import annotations

import functools

import numpy as np

WORD = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def episode_seed(entropy: tuple[int, ...], *, game: int, episode: int) -> int:
    """A seed in [0, 2**31) for one episode; other games and episodes have unrelated ones.

    numpy's SeedSequence would take as long as a short episode of a simple game.

    Args:
      entropy: the seed of the reset and what else tells this env from others. episode: below 2**32.
    Source: Steele, Lea & Flood 2014, Fast splittable pseudorandom number generators (SplitMix64).
    """
    word = (_start(entropy) + (game << 32 | episode) * GOLDEN) & WORD
    word = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ word >> 27) * 0x94D049BB133111EB & WORD
    return (word ^ word >> 31) >> 33


@functools.lru_cache(maxsize=1024)
def _start(entropy: tuple[int, ...]) -> int:
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])
