"""Records to and from what JSON can hold, exactly: what comes back has the digest of what went in."""

from __future__ import annotations

import abc
import base64
import dataclasses
import functools
import types
import typing
from collections.abc import Callable
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np

from league.core.state.built_ins import Options
from league.core.state.growable_array import GrowableArray
from league.envs.component_choice import Component

Plain = Any
"""None, bool, int, float, str, or lists and string-keyed dicts of these."""

SCALARS = (bool, int, float, str)


class Packed(abc.ABC):
    """An object that is stored as another record, of whose fields it has attributes with the same names.

    Fields:
      RECORD: a dataclass.
    """

    RECORD: ClassVar[type]

    @classmethod
    @abc.abstractmethod
    def unpacked(cls, record: Any) -> Self:
        """The object again, from the record."""


def encode(value: object) -> Plain:
    """Turn dataclasses into dicts, tuples into lists, dicts into lists of pairs and arrays into little-endian base64.

    Raises:
      TypeError: a value of another kind.
    """
    if value is None or isinstance(value, SCALARS):
        return value
    if isinstance(value, GrowableArray | np.ndarray):
        array = value.values if isinstance(value, GrowableArray) else value
        little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        return [little.dtype.str, list(array.shape), base64.b64encode(little.tobytes()).decode("ascii")]
    if isinstance(value, tuple | list):
        return [encode(item) for item in value]
    if isinstance(value, dict):
        return [[encode(key), encode(item)] for key, item in value.items()]
    if isinstance(value, Packed):
        return {name: pack(getattr(value, name)) for name, pack in _packers(value.RECORD)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: pack(getattr(value, name)) for name, pack in _packers(type(value))}
    raise TypeError(f"cannot write a {type(value).__name__} as plain data")


def decode(kind: Any, plain: Plain) -> Any:
    """Rebuild a value of the annotated type `kind` from what `encode` made of it.

    Raises:
      TypeError: an annotation of another kind than `encode` writes, or a field without a default is missing.
      ValueError: `plain` does not fit.
    """
    if isinstance(kind, type) and issubclass(kind, Packed):
        return kind.unpacked(decode(kind.RECORD, plain))
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        given = {name: decode(hint, plain[name]) for name, hint in _fields(kind).items() if name in plain}
        return kind(**given)  # a field that an earlier version did not write takes its default
    if kind is GrowableArray:
        dtype, shape, text = plain
        array = np.frombuffer(base64.b64decode(text), dtype=np.dtype(dtype)).reshape(shape)
        return GrowableArray.of(array.astype(array.dtype.newbyteorder("="), copy=False))
    if kind in (bool, int, float, str, type(None)):
        return kind(plain) if kind is float else plain
    if kind in (Options, Component):
        return plain
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(plain)
    return _unpack_generic(typing.get_origin(kind), typing.get_args(kind), plain)


@functools.cache
def _packers(kind: type) -> tuple[tuple[str, Callable[[Any], Plain]], ...]:
    """Fields of a record with what encodes them, chosen once: a state has thousands of records of a few kinds."""
    return tuple((name, _packer(hint)) for name, hint in _fields(kind).items())


def _packer(hint: Any) -> Callable[[Any], Plain]:
    """The encoder of a field of this type."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    choices = arguments if origin in (typing.Union, types.UnionType) else (hint,)
    if hint in (Options, Component) or set(choices) <= {int, str, bool, type(None)}:
        return _as_it_is
    if origin is tuple and arguments[0] in SCALARS:
        return list
    return _pack_float if float in choices else encode


def _as_it_is(value: Plain) -> Plain:
    """JSON holds it so."""
    return value


def _pack_float(value: object) -> Plain:
    """A whole number in a float field becomes a float, as it does when it is read back."""
    return float(value) if isinstance(value, int) else encode(value)


def _unpack_generic(origin: Any, arguments: tuple[Any, ...], plain: Plain) -> Any:
    if origin in (typing.Union, types.UnionType):
        (inner,) = [argument for argument in arguments if argument is not type(None)]
        return None if plain is None else decode(inner, plain)
    if origin is tuple:
        return tuple(decode(arguments[0], item) for item in plain)
    if origin is dict:
        return {decode(arguments[0], key): decode(arguments[1], item) for key, item in plain}
    if origin is typing.Literal:
        return plain
    raise TypeError(f"cannot read {origin} from plain data")


@functools.cache
def _fields(kind: type) -> dict[str, Any]:
    """Field name -> type of the fields that the constructor takes, in order."""
    hints = typing.get_type_hints(kind)
    return {item.name: hints[item.name] for item in dataclasses.fields(kind) if item.init}
