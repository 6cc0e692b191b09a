"""The table of noise that every host makes from the run's seed: an index into it stands for a perturbation.

Shape letter: P weights of a network.
"""

from __future__ import annotations

import functools
import zlib

import numpy as np
from numpy.typing import NDArray

NUM_NUMBERS = 1 << 24
"""Numbers of the table, 64 MiB. Perturbations overlap, which is harmless as long as a table holds many of them."""

_MADE_AT_ONCE = 1 << 20


class NoiseTable:
    """Normal numbers; the P numbers from an index on are a perturbation.

    A table costs a thirtieth of numbers that are drawn for each perturbation, see Salimans et al. 2017, section
    2.3.

    Args:
      seed: of the run. size: numbers.
    """

    def __init__(self, seed: int, *, size: int = NUM_NUMBERS) -> None:
        rng = np.random.Generator(np.random.PCG64([seed, size]))
        self._numbers = np.empty(size, np.float32)
        for start in range(0, size, _MADE_AT_ONCE):
            part = self._numbers[start : start + _MADE_AT_ONCE]
            rng.standard_normal(dtype=np.float32, out=part)
        self._numbers.setflags(write=False)

    @functools.cached_property
    def checksum(self) -> int:
        """32 bits over all numbers; hosts with equal ones mean the same perturbations by the same indices."""
        return zlib.crc32(self._numbers.data)

    def get(self, index: int, size: int) -> NDArray[np.float32]:
        """float32 [size], the perturbation at an index; a view that nobody may write to."""
        assert 0 <= index <= len(self._numbers) - size, "an index beyond the table"
        return self._numbers[index : index + size]

    def draw(self, rng: np.random.Generator, count: int, *, size: int) -> NDArray[np.int64]:
        """int64 [count], indices of perturbations of P = size numbers.

        Raises:
          ValueError: the table has fewer numbers than the network has weights.
        """
        if size > len(self._numbers):
            raise ValueError(
                f"the network has {size} weights and the table of noise {len(self._numbers)} numbers; "
                "use a smaller network"
            )
        return rng.integers(len(self._numbers) - size + 1, size=count)


@functools.lru_cache(maxsize=2)
def noise_table(seed: int) -> NoiseTable:
    """The table of a run, made once in a process."""
    return NoiseTable(seed)
