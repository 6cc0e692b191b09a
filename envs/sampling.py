"""Uniform draws among legal actions, and random streams as plain arrays."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray


def uniform_legal(mask: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw one legal action per row, uniformly. mask: bool [K, A], at least one True per row; returns int64 [K]."""
    drawn: NDArray[np.int64] = np.where(mask, rng.random(mask.shape, np.float32), np.float32(-1)).argmax(axis=1)
    return drawn


def pack_stream(rng: np.random.Generator) -> NDArray[np.uint8]:
    """The state of a PCG64 stream as the bytes of its JSON."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), np.uint8).copy()


def unpack_stream(packed: NDArray[np.generic]) -> np.random.Generator:
    """The stream that continues from the state saved by `pack_stream`."""
    stream = np.random.PCG64()
    stream.state = json.loads(packed.tobytes())
    return np.random.Generator(stream)


def split_stream(rng: np.random.Generator) -> np.random.Generator:
    """An independent stream derived from the state of `rng`, which stays unchanged; equal states give equal streams."""
    stream = rng.bit_generator
    assert isinstance(stream, np.random.PCG64)
    return np.random.Generator(stream.jumped())
