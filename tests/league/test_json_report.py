"""Reports as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import pytest

from league.json_report import JsonReport
from league.judge.matches.match_result import Interval


@dataclass(frozen=True)
class Loose(JsonReport):
    """A report that may hold any number."""

    value: float
    rows: tuple[str, ...] = ()


@dataclass(frozen=True)
class Strict(JsonReport):
    """A report of finite numbers that replaces a field and adds a key."""

    must_be_finite: ClassVar[bool] = True
    value: float
    rows: tuple[str, ...] = ()

    def json_extras(self) -> Mapping[str, object]:
        return {"rows": len(self.rows), "ok": True}


def test_a_report_prints_its_fields_in_their_order() -> None:
    assert Loose(0.5, ("a",)).to_json() == '{"value": 0.5, "rows": ["a"]}'


def test_further_keys_follow_the_fields_or_replace_them() -> None:
    assert Strict(0.5, ("a", "b")).to_json() == '{"value": 0.5, "rows": 2, "ok": true}'


def test_only_a_report_that_must_be_finite_refuses_other_numbers() -> None:
    assert json.loads(Loose(float("inf")).to_json())["value"] == float("inf")
    with pytest.raises(ValueError, match="not JSON compliant"):
        Strict(float("inf")).to_json()


def test_an_interval_without_bounds_has_null_for_them() -> None:
    """The mean of one group has a value alone, also in a report of finite numbers."""

    @dataclass(frozen=True)
    class Judged(Strict):
        mean: tuple[Interval, ...] = (Interval(0.5, -math.inf, math.inf), Interval(0.5, 0.4, 0.6))

    rows = json.loads(Judged(0.5).to_json())["mean"]
    assert rows == [{"value": 0.5, "low": None, "high": None}, {"value": 0.5, "low": 0.4, "high": 0.6}]
