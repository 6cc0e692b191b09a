"""Measures of random play against what is known of the games, with a clock that counts its readings."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable

import numpy as np
import pytest

from league.envs.adapters.bare import bare_rate
from league.envs.facts.clocks import Clocks
from league.envs.protocol import EnvConfig, EnvError
from league.envs.registry import make
from league.see.reports.env_check import check_environment
from league.see.reports.env_play import BATCHES, Measures, SeatReturn, measure


def ticking(step: float = 0.001) -> Callable[[], float]:
    """A clock that moves on by `step` with every reading."""
    ticks = itertools.count()
    return lambda: next(ticks) * step


def busy() -> Clocks:
    """Clocks of a game that computes all the time."""
    return Clocks(lambda: 0.0, ticking(), lambda: 0)


def test_a_game_that_sleeps_is_measured_by_the_wall() -> None:
    """Its processor time stands still: by that clock the measures would never end."""
    waits = itertools.count()
    clocks = Clocks(ticking(0.1), lambda: 0.0, lambda: 10 * next(waits))
    found = measure(EnvConfig("rock_paper_scissors"), seconds=3.0, clocks=clocks)
    assert found.speeds[0].decisions_per_core_s == pytest.approx(2 / 0.1)
    assert len(found.speeds) < len(BATCHES)


def test_a_game_of_which_only_resets_sleep_is_measured_in_a_few_times_its_seconds() -> None:
    """Every reading of the wall is a second after the one before, and the processor's clock stands still."""
    clocks = Clocks(ticking(1.0), lambda: 0.0, lambda: 0)
    found = measure(EnvConfig("tic_tac_toe"), seconds=3.0, clocks=clocks)
    assert [speed.num_envs for speed in found.speeds] == [1]


def test_a_game_of_which_resets_alone_sleep_is_measured_by_the_wall() -> None:
    """It has waited up to the end of the first reset, and does not wait in the steps after it."""
    waits = itertools.count()
    clocks = Clocks(ticking(0.01), lambda: 0.0, lambda: 10 * min(next(waits), 3))
    found = measure(EnvConfig("tic_tac_toe"), seconds=3.0, clocks=clocks)
    assert found.speeds[0].decisions_per_core_s == pytest.approx(1 / 0.01)


def test_random_play_of_tic_tac_toe_has_its_known_statistics() -> None:
    found = measure(EnvConfig("tic_tac_toe"), seconds=3.0, clocks=busy())
    assert [speed.num_envs for speed in found.speeds] == list(BATCHES)
    assert (found.lengths[0], found.lengths[2]) == (5, 9)
    assert found.returns == (-1, 1)
    first, second = found.seats
    assert first.low < 0.29 < first.high  # 0.585 won, 0.288 lost
    assert first.mean == -second.mean
    assert found.observations == {"board": (0, 1)}
    assert found.bare is None and found.share is None
    assert any("the seats are not equal" in line for line in found.lines())


def test_equal_seats_are_not_called_unequal() -> None:
    found = measure(EnvConfig("rock_paper_scissors"), seconds=1.0, clocks=busy())
    assert not any("are not equal" in line for line in found.lines())
    assert found.lengths == (1, 1, 1)


@pytest.mark.parametrize(
    ("half", "words"),
    [(0.02, "the seats are not equal"), (0.059, "the seats may differ a little"), (0.07, "no bias seen")],
)
def test_intervals_that_lie_apart_are_never_called_no_bias(half: float, words: str) -> None:
    """Two seats at -0.06 and 0.06: an interval that just leaves out 0 tells something."""
    seats = tuple(SeatReturn(name, mean, mean - half, mean + half) for name, mean in (("a", -0.06), ("b", 0.06)))
    found = Measures((), None, 100, (1.0, 1.0, 1.0), (-1.0, 1.0), seats, {})
    assert any(line.endswith(words) or f"; {words}" in line for line in found.lines())


def test_decisions_are_counted_by_slots_and_time_by_steps() -> None:
    """Every step takes one tick of this clock."""
    found = measure(EnvConfig("rock_paper_scissors"), seconds=1.0, clocks=busy())
    for speed in found.speeds:
        assert speed.decisions_per_core_s == pytest.approx(2 * speed.num_envs / 0.001)


def test_games_that_are_dear_to_make_are_not_made_by_the_hundred() -> None:
    found = measure(EnvConfig("rock_paper_scissors"), seconds=0.02, clocks=busy())
    assert [speed.num_envs for speed in found.speeds] == [1, 4]


@pytest.mark.parametrize(
    "env_id", ["pettingzoo:classic/tictactoe_v3", "pettingzoo:classic/rps_v2", "gymnasium:FrozenLake-v1"]
)
def test_a_bare_env_is_stepped_in_its_own_loop(env_id: str) -> None:
    env = make(EnvConfig(env_id), num_envs=1)
    rate = bare_rate(env, seconds=0.05)
    assert rate is not None and rate > 100
    env.close()


@pytest.mark.parametrize("failing", [("last",), ("close",), ("last", "close")])
def test_an_env_that_fails_in_its_own_loop_alone_is_named_with_its_first_error(
    monkeypatch: pytest.MonkeyPatch, failing: tuple[str, ...]
) -> None:
    env = make(EnvConfig("pettingzoo:classic/tictactoe_v3"), num_envs=1)
    with monkeypatch.context() as patched:
        for name in failing:
            patched.setattr(type(env.make_bare()), name, lambda self, key=name: {}[key])  # type: ignore[attr-defined]
        message = f"tictactoe_v3: played in the usual loop of its kind, it raised KeyError: '{failing[0]}'"
        with pytest.raises(EnvError, match=message):
            bare_rate(env, seconds=0.05)
    env.close()


def test_a_batched_game_has_no_bare_env() -> None:
    assert bare_rate(make(EnvConfig("tic_tac_toe"), num_envs=1), seconds=0.1) is None


def test_the_report_holds_the_measures() -> None:
    report = check_environment("pettingzoo:classic/tictactoe_v3", [], steps=20, seconds=0.3)
    plain = json.loads(report.to_json())
    assert plain["ok"]
    assert plain["measures"]["speeds"][0]["num_envs"] == 1
    assert plain["share_of_bare"] > 0
    assert np.isfinite(plain["measures"]["bare"])
    assert "bare env: " in report.text()
    assert check_environment("tic_tac_toe", [], steps=20, seconds=0).measures is None


def test_options_of_a_game_are_read_as_yaml() -> None:
    assert check_environment("matrix_game", ["payoffs=[[0, 1], [-1, 0]]", "rounds=2"], seconds=0).problems == ()
    assert check_environment("matrix_game", ["payoffs=7"], seconds=0).problems
