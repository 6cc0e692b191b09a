"""The base of reports: records that a command prints for people or, on demand, as one JSON object."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import Field, asdict
from typing import Any, ClassVar


class JsonReport:
    """A dataclass that prints as JSON. A subclass with `must_be_finite` refuses infinite numbers and NaN."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    must_be_finite: ClassVar[bool] = False

    def to_json(self) -> str:
        """All fields, and those of `json_extras`, as one JSON object.

        Raises:
          ValueError: a number is not finite in a report that must be.
        """
        fields = _without_bounds_as_null({**self.json_fields(), **self.json_extras()})
        return json.dumps(fields, allow_nan=not self.must_be_finite)

    def json_fields(self) -> Mapping[str, object]:
        """The fields as they stand in the JSON object."""
        return asdict(self)

    def json_extras(self) -> Mapping[str, object]:
        """Further keys of the JSON object; one that names a field replaces its value."""
        return {}


def _without_bounds_as_null(value: Any) -> Any:
    """The same with null for a bound that an interval lacks, as that of the mean of one group: JSON has no infinity."""
    if isinstance(value, Mapping):
        unbounded = {key for key in ("low", "high") if isinstance(one := value.get(key), float) and math.isinf(one)}
        return {key: None if key in unbounded else _without_bounds_as_null(one) for key, one in value.items()}
    return [_without_bounds_as_null(one) for one in value] if isinstance(value, list | tuple) else value
