"""Options of a component: found by annotation, checked field by field, every problem named at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import pytest

from league.envs.component_choice import given_options, kind_of
from league.envs.plugin_options import OptionsError, make_options, options_argument, options_record
from league.envs.plugins import PluginError


@dataclass(frozen=True)
class Config:
    count: int
    rate: float = 0.5
    name: str = ""
    is_fast: bool = False
    mode: Literal["up", "down"] = "up"
    bound: float | None = 1.0
    groups: tuple[tuple[int, ...], ...] = ()
    table: dict[str, int] | None = None

    def __post_init__(self) -> None:
        if self.count > 10:
            raise ValueError(f"count {self.count} is above 10")

    def problems(self) -> list[str]:
        return ["rate: must be at least 0"] if self.rate < 0 else []


RATE = "x.rate: [] does not fit: it should be a number"


class WithOptions:
    def __init__(self, first: int, options: Config) -> None: ...


def with_options(first: int, *, options: Config) -> None: ...


def without(first: int) -> None: ...


def open_to_all(*arguments: object, **options: object) -> None: ...


def unannotated(first: int, *, options: Any) -> None: ...


def test_a_choice_is_a_name_or_a_mapping_with_a_kind() -> None:
    assert (kind_of("mlp"), given_options("mlp")) == ("mlp", {})
    assert (kind_of({"kind": "mlp", "depth": 3}), given_options({"kind": "mlp", "depth": 3})) == ("mlp", {"depth": 3})
    assert kind_of({"depth": 3}, "vtrace") == "vtrace"


def test_the_record_is_found_by_the_annotation_of_a_class_or_function() -> None:
    assert options_record(WithOptions) is Config
    assert options_record(with_options) is Config
    assert options_record(without) is None
    assert options_record(open_to_all) is None
    with pytest.raises(PluginError, match="annotated with a dataclass"):
        options_record(unannotated)


INFINITE, NOTHING = float("inf"), float("nan")


@pytest.mark.parametrize("value", [INFINITE, -INFINITE, NOTHING, 2.5, 1e400, "3", True, None])
def test_a_number_that_is_no_integer_does_not_fit_where_one_belongs(value: object) -> None:
    with pytest.raises(OptionsError) as caught:
        make_options(Config, {"count": value}, place="x")
    assert caught.value.problems == (f"x.count: {value!r} does not fit: it should be an integer",)


@pytest.mark.parametrize(("value", "expected"), [(INFINITE, INFINITE), (3, 3.0), ("1e3", 1000.0), (".5", 0.5)])
def test_a_number_may_be_infinite_where_a_number_belongs(value: object, expected: float) -> None:
    assert make_options(Config, {"count": 1, "rate": value}, place="x").rate == expected
    assert make_options(Config, {"count": 1, "bound": value}, place="x").bound == expected


def test_options_are_made_with_their_defaults_and_types() -> None:
    given = {"count": 2.0, "rate": 1, "bound": None, "groups": [[0, 1], [2]], "table": {"a": 1}}
    made = make_options(Config, given, place="x")
    assert made == Config(2, 1.0, bound=None, groups=((0, 1), (2,)), table={"a": 1})
    assert isinstance(made.count, int) and isinstance(made.rate, float)
    assert options_argument(with_options, {"kind": "f", "count": 3}, place="x") == {"options": Config(3)}
    assert options_argument(without, "f", place="x") == {}


@pytest.mark.parametrize(
    ("given", "problems"),
    [
        ({}, ("x.count: is missing",)),
        ({"count": 1, "rat": 1}, ("x.rat: unknown key, nearest is 'rate'",)),
        ({"count": True}, ("x.count: True does not fit: it should be an integer",)),
        ({"count": 1.5}, ("x.count: 1.5 does not fit: it should be an integer",)),
        ({"count": 1, "rate": "much"}, ("x.rate: 'much' does not fit: it should be a number",)),
        ({"count": 1, "name": 3}, ("x.name: 3 does not fit: it should be text",)),
        ({"count": 1, "is_fast": 1}, ("x.is_fast: 1 does not fit: it should be true or false",)),
        ({"count": 1, "mode": "left"}, ("x.mode: 'left' is none of up, down",)),
        ({"count": 1, "groups": 3}, ("x.groups: 3 does not fit: it should be a list",)),
        ({"count": 1, "table": 3}, ("x.table: 3 does not fit: it should be a mapping",)),
        ({"count": 11}, ("x: count 11 is above 10",)),
        ({"count": 1, "rate": -1}, ("x.rate: must be at least 0",)),
        ({"kount": 1, "rate": []}, ("x.kount: unknown key, nearest is 'count'", "x.count: is missing", RATE)),
    ],
)
def test_every_option_that_does_not_fit_is_named(given: dict[str, object], problems: tuple[str, ...]) -> None:
    with pytest.raises(OptionsError) as caught:
        make_options(Config, given, place="x")
    assert caught.value.problems == problems


def test_options_of_a_component_without_any_are_refused() -> None:
    with pytest.raises(OptionsError, match=r"x.depth: unknown key, f has no options"):
        options_argument(without, {"kind": "f", "depth": 3}, place="x")
