"""Uniform draws among legal actions, and random streams as plain arrays."""

from __future__ import annotations

import json

import numpy as np
from numpy.typing import NDArray


def uniform_legal(mask: NDArray[np.bool_], rng: np.random.Generator) -> NDArray[np.int64]:
    """One legal action a row, uniformly. mask: bool [K, A], at least one True a row; returns int64 [K]."""
    drawn: NDArray[np.int64] = np.where(mask, rng.random(mask.shape, np.float32), np.float32(-1)).argmax(axis=1)
    return drawn


def pack_stream(rng: np.random.Generator) -> NDArray[np.uint8]:
    """The state of a PCG64 stream as the bytes of its JSON."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), np.uint8).copy()


def unpack_stream(packed: NDArray[np.generic]) -> np.random.Generator:
    """The stream that goes on where `pack_stream` was called."""
    stream = np.random.PCG64()
    stream.state = json.loads(packed.tobytes())
    return np.random.Generator(stream)


def split_stream(rng: np.random.Generator) -> np.random.Generator:
    """A stream that will not meet this one, which it leaves as it is; the same state gives the same stream."""
    stream = rng.bit_generator
    assert isinstance(stream, np.random.PCG64)
    return np.random.Generator(stream.jumped())
