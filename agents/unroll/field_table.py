"""Records that are a table of fields: a line for each array states its axes and its dtype.

Shape letter: R rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = TypeVar("Array")
Rows = TypeVar("Rows")
Allocator = Callable[[tuple[int, ...], "np.dtype[Any]"], "NDArray[Any]"]

ANY = "..."
"""As an axis of a field: any further axes. As its dtype: one that the line does not state."""


@dataclass(frozen=True)
class FieldLine:
    """One line of a table.

    Fields:
      name: of the attribute and of the field in a chunk.
      axes: shape letters; the first is R. "T+1" is one more than "T".
      dtype: numpy's name, or `ANY`.
      optional: None if one of its axes has no extent, as for the mask of a game without one.
      asked: None unless the kind of acting records it, see `UnrollSpec.recorded`.
    """

    name: str
    axes: tuple[str, ...]
    dtype: str
    optional: bool
    asked: bool = False

    @property
    def per_decision(self) -> bool:
        """True for [R, T, ...]."""
        return self.axes[1:2] == ("T",)

    @property
    def per_observation(self) -> bool:
        """True for [R, T+1, ...]."""
        return self.axes[1:2] == ("T+1",)

    @property
    def is_added(self) -> bool:
        """True for [R]: nobody records it, a row source adds it to the rows that it hands out."""
        return self.axes == ("R",)


def table_line(axes: str, dtype: str, *, asked: bool = False) -> dict[str, tuple[str, str, bool]]:
    """Metadata of a dataclass field that is a line of the table."""
    return {"line": (axes, dtype, asked)}


def table_lines(axes: str) -> dict[str, str]:
    """Metadata of a dataclass field that maps names to arrays, each with these axes and a dtype of its own."""
    return {"lines": axes}


@dataclass(frozen=True, kw_only=True)
class FieldTable(Generic[Array]):
    """R rows of every field; a subclass states the fields. A field that maps names to arrays holds "FIELD.NAME"."""

    def arrays(self) -> dict[str, Array]:
        """Every array by name, those of a mapping as "obs.NAME"; fields that are None are omitted."""
        found: dict[str, Array] = {}
        for name, value in vars(self).items():
            if isinstance(value, Mapping):
                found.update({f"{name}.{key}": array for key, array in value.items()})
            elif value is not None:
                found[name] = value
        return found

    def converted(self, function: Callable[[Array], Any]) -> dict[str, Any]:
        """Arguments for a record of the same fields with `function` of every array."""
        return {name: _of_each(function, value) for name, value in vars(self).items()}

    def rows(self, start: int, stop: int) -> Self:
        """Rows [start, stop) as views."""
        return type(self)(**self.converted(lambda array: array[start:stop]))  # type: ignore[index]


def _of_each(function: Callable[[Any], Any], value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: function(array) for name, array in value.items()}
    return None if value is None else function(value)


def joined(parts: Sequence[Rows], *, join: Callable[[list[Any]], Any]) -> Rows:
    """Join the rows of several tables of one type in order. join: arrays to one array, along the rows."""
    values: dict[str, Any] = {}
    for name, value in vars(parts[0]).items():
        pieces = [getattr(part, name) for part in parts]
        if isinstance(value, Mapping):
            values[name] = {key: join([piece[key] for piece in pieces]) for key in value}
        else:
            values[name] = None if value is None else join(pieces)
    return type(parts[0])(**values)


def lines_of(table: type[FieldTable[Any]]) -> tuple[FieldLine, ...]:
    """The lines of a table in the order of a chunk, without fields that map names to arrays."""
    return tuple(_lines(table))


def mappings_of(table: type[FieldTable[Any]]) -> dict[str, tuple[str, ...]]:
    """Field that maps names to arrays -> their axes."""
    return {each.name: tuple(each.metadata["lines"].split()) for each in fields(table) if "lines" in each.metadata}


def _lines(table: type[FieldTable[Any]]) -> Iterator[FieldLine]:
    for each in fields(table):
        if "line" in each.metadata:
            axes, dtype, asked = each.metadata["line"]
            yield FieldLine(each.name, tuple(axes.split()), dtype, optional=each.default is None, asked=asked)


class Record(Protocol):
    """The record that an arena hands over and a chunk carries: a `FieldTable` of numpy arrays.

    Attributes:
      num_rows: R.
      versions: integers [R, ...] of the weights that acted.
    """

    @property
    def num_rows(self) -> int: ...

    @property
    def versions(self) -> NDArray[Any]: ...

    def arrays(self) -> dict[str, NDArray[Any]]: ...

    def rows(self, start: int, stop: int) -> Self: ...
