"""Dotted keys: places of lists in either form, names with dots, and what is there although it is empty."""

from __future__ import annotations

import pytest

from league.config.dotted_keys import dotted_key, generic_key, value_at
from league.config.problems import apply_override

PLAIN = {"league": {"players": [{"role": "main"}, {}]}, "kwargs": {}, "moments": {"team.x": [1.0], "own": {"y": 2}}}


@pytest.mark.parametrize(
    ("key", "dotted", "generic"),
    [
        ("league.players[0].role", "league.players.0.role", "league.players[].role"),
        (" league.players.12.role ", "league.players.12.role", "league.players[].role"),
        ("league.players[].role", "league.players..role", "league.players[].role"),
        ("network.hidden.1", "network.hidden.1", "network.hidden[]"),
        ("seed", "seed", "seed"),
        ("a.²", "a.²", "a.²"),
    ],
)
def test_a_place_in_a_list_may_be_written_either_way(key: str, dotted: str, generic: str) -> None:
    assert (dotted_key(key), generic_key(key)) == (dotted, generic)


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("league.players.0.role", (True, "main")),
        ("league.players.1", (True, {})),
        ("league.players.2", (False, None)),
        ("league.players.-1", (False, None)),
        ("league.players.²", (False, None)),
        ("league.players.0.role.name", (False, None)),
        ("kwargs", (True, {})),
        ("kwargs.size", (False, None)),
        ("moments.team.x.0", (True, 1.0)),
        ("moments.team.y", (False, None)),
        ("moments.own.y", (True, 2)),
    ],
)
def test_the_value_under_a_key(key: str, found: tuple[bool, object]) -> None:
    assert value_at(PLAIN, key) == found


def test_a_digit_that_is_no_number_is_no_place() -> None:
    said = apply_override({"players": [{"role": "main"}]}, "players.²=1")
    assert said == "-s players.²: there is no place '²' in that list; set the whole list instead"
