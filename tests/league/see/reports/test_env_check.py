"""`league check-env` reads options as a configuration does: what it tries is what a run would play."""

from __future__ import annotations

import pytest

from league.envs.games.matrix import MatrixGame
from league.errors import ConfigError, LeagueError
from league.see.reports.env_check import check_environment

GIVEN: list[object] = []


def noted(*, num_envs: int, **options: object) -> MatrixGame:
    """Matching pennies that notes its options."""
    GIVEN[:] = list(options.values())
    return MatrixGame(num_envs=num_envs)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1e3", 1000.0), ("on", "on"), ("2020-01-01", "2020-01-01"), ("12:30", "12:30"), ("[1, x]", [1, "x"]), ("", None)],
)
def test_an_option_is_what_it_is_in_a_configuration(text: str, value: object) -> None:
    report = check_environment(f"{__name__}:noted", [f"option={text}"], steps=3, seconds=0)
    assert not report.problems
    assert [value] == GIVEN


def test_settings_are_chosen_for_a_game_whose_option_looks_like_a_date() -> None:
    report = check_environment(f"{__name__}:noted", ["option=2020-01-01"], steps=3, seconds=0.01)
    assert report.settings
    assert GIVEN == ["2020-01-01"]


@pytest.mark.parametrize("option", ["size", "=3"])
def test_an_option_without_name_or_value_is_refused(option: str) -> None:
    with pytest.raises(LeagueError, match="is not NAME=VALUE"):
        check_environment("tic_tac_toe", [option])


def test_a_value_that_is_no_yaml_is_refused_with_the_reason() -> None:
    with pytest.raises(ConfigError, match=r"size=\["):
        check_environment("tic_tac_toe", ["size=["])
