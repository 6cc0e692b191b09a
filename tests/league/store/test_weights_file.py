"""Arrays in the safetensors format: what was written is read back, anything else is one named error."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from league.errors import CorruptSnapshot
from league.store.weights_file import ArraysError, decode_arrays, encode_arrays, stored_arrays

ARRAYS = {"a/b": np.arange(6).reshape(2, 3)[:, ::2], "one": np.array(4.0), "none": np.zeros((0, 2), np.float32)}


def of_kind(kind: str) -> bytes:
    """A sound file whose numbers are of another kind."""
    head = json.dumps({"x": {"dtype": kind, "shape": [2], "data_offsets": [0, 4]}}).encode()
    return len(head).to_bytes(8, "little") + head + b"\0" * 4


def test_arrays_come_back_with_their_shapes_and_kinds() -> None:
    back = decode_arrays(encode_arrays(ARRAYS))
    assert set(back) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert (back[name].shape, back[name].dtype) == (array.shape, array.dtype)
        assert np.array_equal(back[name], array)
    assert encode_arrays(back) == encode_arrays(ARRAYS)


@pytest.mark.parametrize("payload", [b"", b"no arrays at all", encode_arrays(ARRAYS)[:-1], of_kind("BF16")])
def test_other_bytes_are_one_named_error(payload: bytes) -> None:
    with pytest.raises(ArraysError, match=r"it is not in the safetensors format|numbers of kind 'BF16'"):
        decode_arrays(payload)
    with pytest.raises(CorruptSnapshot, match=r"there\.bin is corrupt: it"):
        stored_arrays(payload, source=Path("there.bin"))
