"""A match outlives games of the env that fail: their groups count for nobody, and the others as if nothing had been."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

from league.envs.protocol import EnvConfig, EnvError
from league.judge.matches.match import Match
from league.judge.matches.match_result import MatchResult
from tests.league.judge.matches import fragile_games
from tests.league.judge.matches.eval_runs import RulePolicy, always
from tests.league.judge.matches.fragile_games import ROUNDS, Fragile


def played(games: int = 80, **rules: Any) -> MatchResult:
    Fragile.made = -1  # the one that only shows its spec comes first
    policies = [RulePolicy(always(0)), RulePolicy(always(1))]
    return Match(EnvConfig(f"{fragile_games.__name__}:Fragile", kwargs=rules), policies, seed=3).play(games)


def test_groups_with_a_failed_game_count_for_nobody_and_the_others_as_ever(caplog: pytest.LogCaptureFixture) -> None:
    whole = played()
    assert (whole.games, caplog.messages) == (80, [])
    with caplog.at_level(logging.WARNING):
        result = played(chance=0.02)
    assert 0 < result.games < 80
    (message,) = caplog.messages
    assert message.startswith(f"{40 - result.num_groups} of 40 groups of games failed and count for nobody: ")
    assert "the dice fell under the table" in message
    kept = [
        int(np.flatnonzero(np.isclose(whole.team_returns[0, :, 0], value))[0]) for value in result.team_returns[0, :, 0]
    ]
    np.testing.assert_array_equal(result.team_returns, whole.team_returns[:, kept])
    assert result.mean_steps == ROUNDS


def test_a_game_that_is_given_up_is_missed_in_later_rotations() -> None:
    result = played(games=8, num_sound=3)
    assert (result.games, result.mean_steps) == (6, ROUNDS)


def test_a_match_of_which_no_game_is_left_is_an_error() -> None:
    with pytest.raises(EnvError, match="the dice fell under the table"):
        played(chance=1.0)
