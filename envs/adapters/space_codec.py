"""Converts values of an external env's spaces to fields and from actions; numpy only, so that it can be sent.

The spaces themselves are read in `league.envs.adapters.spaces`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from league.envs.protocol import ActionSpec, ArraySpec


@dataclass(frozen=True)
class ObservationField:
    """The place of a field in an observation and its encoding.

    Fields:
      path: keys to follow from the observation; empty for the observation itself.
      spec: of the field; a single number without axes has one of length 1 here.
      one_hot_at: offsets of the one-hot blocks of a discrete field, None for an array.
      lowest: the first value of each one-hot block. counts: its number of values.
    """

    name: str
    path: tuple[str | int, ...]
    spec: ArraySpec
    one_hot_at: tuple[int, ...] | None = None
    lowest: tuple[int, ...] = ()
    counts: tuple[int, ...] = ()

    def write(self, observation: Any, row: NDArray[np.generic]) -> None:
        """Write this field of one observation into `row`, an array of the field's shape.

        Raises:
          ValueError: the value does not have the declared shape, or is not among the declared values.
        """
        value = self.value(observation)
        if self.one_hot_at is None:
            array = np.asarray(value)
            if array.shape != self.spec.shape and (array.shape or self.spec.shape != (1,)):
                raise ValueError(f"field {self.name!r} has shape {array.shape}, its space says {self.spec.shape}")
            row[...] = array
            if array.dtype != row.dtype and row.dtype.kind != "f" and not np.array_equal(row, array.reshape(row.shape)):
                raise ValueError(
                    f"field {self.name!r} holds {array.dtype} that {row.dtype} cannot; its space has another dtype"
                )
            return
        row.fill(False)
        single = type(value) is int or isinstance(value, np.integer)  # far cheaper than an array of one number
        if single and len(self.counts) == 1:
            place = int(value) - self.lowest[0]
            if 0 <= place < self.counts[0]:
                row[self.one_hot_at[0] + place] = True
                return
        numbers = (value,) if single else np.atleast_1d(np.asarray(value)).ravel().tolist()
        if len(numbers) != len(self.counts):
            raise ValueError(f"field {self.name!r} has {len(numbers)} numbers, its space {len(self.counts)}")
        for number, offset, lowest, count in zip(numbers, self.one_hot_at, self.lowest, self.counts, strict=True):
            if not lowest <= number < lowest + count or number != int(number):
                raise ValueError(
                    f"field {self.name!r} is {number}, its space goes from {lowest} to {lowest + count - 1}"
                )
            row[offset + int(number) - lowest] = True

    def value(self, observation: Any) -> Any:
        """This field of an observation, in the env's own format."""
        for key in self.path:
            observation = observation[key]
        return observation


@dataclass(frozen=True)
class ActionPart:
    """A member of a Dict or Tuple of actions: its key there, how its own numbers are converted, and how many it has."""

    key: str | int
    code: ActionCode
    size: int


@dataclass(frozen=True)
class ActionCode:
    """Converts an action of the spec to one of the env's space.

    Fields:
      spec: the actions that the slot may take.
      start: offset added to a categorical action.
      starts: offsets added to the sub-actions, in the shape of the space.
      scale, shift: action * scale + shift is in the bounds of a box; None if the bounds are those of the spec.
      bounds: lowest and highest numbers of a box, in its own dtype and shape; arithmetic may round beyond them.
      dtype: of the space, for sub-actions and for a box.
      parts: of a Dict or Tuple, whose numbers stand one after another. is_tuple: which of the two it is.
    """

    spec: ActionSpec
    start: int = 0
    starts: NDArray[np.int64] | None = None
    scale: NDArray[np.float32] | None = None
    shift: NDArray[np.float32] | None = None
    bounds: tuple[NDArray[np.floating], NDArray[np.floating]] | None = None
    dtype: str = "float32"
    parts: tuple[ActionPart, ...] = ()
    is_tuple: bool = False

    def decode(self, action: Any) -> Any:
        """The action for the env: a Python int if categorical, else an array of the space's dtype and shape.

        Of a Dict or Tuple it is a dict or tuple of these.

        action: an int, or an int64 or float32 array of the spec's shape. Many of them, [K, ...], are converted at once,
        but for a Dict or Tuple.
        """
        if self.parts:
            return self._decode_parts(action)
        if self.spec.kind == "categorical":
            return int(action) + self.start
        if self.starts is not None:
            return (action.reshape(*action.shape[:-1], *self.starts.shape) + self.starts).astype(self.dtype)
        if self.scale is not None:
            action = action * self.scale + self.shift
        chosen = action.astype(self.dtype, copy=True)
        if self.bounds is None:
            return chosen
        return np.minimum(np.maximum(chosen, self.bounds[0]), self.bounds[1])  # a third of the time of np.clip

    def _decode_parts(self, action: NDArray[np.generic]) -> Any:
        decoded: dict[str | int, Any] = {}
        begin = 0
        for part in self.parts:
            own = action[begin : begin + part.size]
            begin += part.size
            if part.code.spec.kind == "categorical":
                own = own[0]
            elif part.code.spec.kind == "box":
                own = own.reshape(part.code.spec.shape)
            decoded[part.key] = part.code.decode(own)
        return tuple(decoded.values()) if self.is_tuple else decoded
