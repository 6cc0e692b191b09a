"""Prints the last line of every benchmark: one JSON object with its rows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TextIO


@dataclass(frozen=True)
class Row:
    """One measured figure.

    Fields:
      name: what was measured, the baseline of a ratio included.
      value: the figure, None where it could not be measured here.
      unit: of the value.
      required: the bound that it was held against as text (">= 2.5"), None where it is only reported.
      met: whether the bound holds, None where there is no bound or no value.
    """

    name: str
    value: float | None
    unit: str
    required: str | None = None
    met: bool | None = None


@dataclass
class Report:
    """Collects rows and prints them."""

    rows: list[Row] = field(default_factory=list)

    def add(
        self,
        name: str,
        value: float | None,
        unit: str,
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Row:
        """Append a figure, with a lower or an upper bound or none.

        Raises:
          ValueError: both bounds are given.
        """
        if at_least is not None and at_most is not None:
            raise ValueError(f"{name}: give at_least or at_most, not both")
        required, met = None, None
        if at_least is not None:
            required = f">= {at_least:g}"
            met = None if value is None else value >= at_least
        elif at_most is not None:
            required = f"<= {at_most:g}"
            met = None if value is None else value <= at_most
        row = Row(name, value, unit, required, met)
        self.rows.append(row)
        return row

    @property
    def failed(self) -> list[Row]:
        """Rows whose bound does not hold."""
        return [row for row in self.rows if row.met is False]

    def print(self, stream: TextIO, *, as_json: bool) -> None:
        """A line for each row and, where asked for, the JSON object as the last line."""
        for row in self.rows:
            value = "not measured" if row.value is None else f"{row.value:.6g}"
            bound = "" if row.required is None else f"  (required {row.required}: {_verdict(row)})"
            print(f"{row.name:<64} {value:>14} {row.unit}{bound}", file=stream)
        if as_json:
            print(json.dumps({"rows": [asdict(row) for row in self.rows]}), file=stream)
        stream.flush()


def _verdict(row: Row) -> str:
    return {True: "met", False: "NOT met", None: "not measured"}[row.met]
