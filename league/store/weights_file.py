"""Arrays by name as bytes in the safetensors format: snapshots, restart states and the state of actor hosts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from league.errors import CorruptSnapshot


class ArraysError(Exception):
    """Bytes are not arrays in the safetensors format; the message says why."""


def encode_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """The same bytes for the same arrays."""
    dense = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # keeps arrays of no axis
    return bytes(safetensors.numpy.save(dense))


def decode_arrays(payload: bytes) -> dict[str, NDArray[np.generic]]:
    """The arrays, read-only.

    Raises:
      ArraysError: the bytes are something else, or hold numbers of a kind that numpy does not have.
    """
    try:
        return dict(safetensors.numpy.load(payload))
    except KeyError as error:
        raise ArraysError(f"it holds numbers of kind {error}, which are not supported") from error
    except (safetensors.SafetensorError, ValueError) as error:
        raise ArraysError(f"it is not in the safetensors format ({error})") from error


def stored_arrays(payload: bytes, *, source: Path) -> dict[str, NDArray[np.generic]]:
    """As `decode_arrays`, of a stored snapshot or restart state.

    Args:
      source: where the bytes lie, for the message.
    Raises:
      CorruptSnapshot: they are no arrays.
    """
    try:
        return decode_arrays(payload)
    except ArraysError as error:
        raise CorruptSnapshot(source, str(error)) from error
