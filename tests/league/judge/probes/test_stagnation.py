"""The test "ratings rise, yardsticks do not": found in a league that chases itself, silent in those that are well."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from league.core.metagame import stagnation
from league.core.metagame.probe_series import Point, Series, series_of
from league.core.metagame.ratings import RatingRow, league_ratings
from league.core.metagame.stagnation import MIN_SNAPSHOTS, Stagnation, find_stagnation, saturated
from league.core.state.events import Event
from league.core.state.state import LeagueState
from league.run.alerts.condition import AlertInputs, make_condition
from league.see.reports.doctor import examine
from tests.league.judge.probes.leagues import PairLeague, chasing, improving

CHECK = "ratings rise, yardsticks do not"


def found_in(state: LeagueState) -> Stagnation | None:
    return find_stagnation(series_of(state), {row.policy: row for row in league_ratings(state)})


def checks_of(state: LeagueState, journal: list[Event]) -> list[str]:
    return [finding.check for finding in examine(state, iter(journal), run="made up").findings]


def rated(elos: list[float], *, width: float = 20.0) -> dict[str, RatingRow]:
    return {f"s{n}": RatingRow(f"s{n}", elo, elo - width, elo + width, 50) for n, elo in enumerate(elos)}


def series(
    values: list[float], *, scale: str = "score", probe: str = "yardsticks", name: str = "bot"
) -> dict[str, Series]:
    points = tuple(Point(n + 1, f"s{n}", n, n, value, value, value, 200, "", 1.0) for n, value in enumerate(values))
    return {f"{probe}.{name}": Series(probe, name, scale, points)}  # type: ignore[arg-type]


RISING = rated([20.0 * n for n in range(24)])
FLAT = series([0.5 + 0.01 * (-1) ** n for n in range(24)])


def test_a_league_that_chases_itself_is_found_by_the_doctor_and_by_the_alert() -> None:
    league = PairLeague(chasing, lambda number: 0.0, snapshots=20)
    found = found_in(league.state)
    assert found is not None and found.gain is not None
    assert found.rise > 300.0 and abs(found.gain) < 50.0
    assert CHECK in checks_of(league.state, league.journal)
    condition = make_condition("ratings_without_strength", place="alerts.conditions.0")
    ratings = {row.policy: row for row in league_ratings(league.state)}
    seen = AlertInputs(now=0.0, phase="training", state=league.state, ratings=ratings)
    assert condition.check(replace(seen, ratings={})) == {}
    assert condition.check(seen)[""].startswith("ratings rose by")


@pytest.mark.parametrize("seed", range(3))
def test_a_league_that_gets_stronger_is_left_alone(seed: int) -> None:
    league = PairLeague(improving, lambda number: 0.25 * number - 2.0, snapshots=24, seed=seed)
    rows = {row.policy: row.elo for row in league_ratings(league.state)}
    assert rows["main-0-s23"] > 500.0
    assert found_in(league.state) is None and CHECK not in checks_of(league.state, league.journal)


def test_a_league_that_stands_still_is_left_alone() -> None:
    league = PairLeague(lambda first, second: 0.0, lambda number: 0.0, snapshots=24)
    assert found_in(league.state) is None


def test_too_few_snapshots_or_ratings_within_their_intervals_say_nothing() -> None:
    assert find_stagnation(FLAT, RISING) is not None
    few = MIN_SNAPSHOTS - 1
    assert find_stagnation(FLAT, dict(itertools.islice(RISING.items(), few))) is None
    assert find_stagnation(FLAT, rated([20.0 * n for n in range(24)], width=400.0)) is None
    assert find_stagnation(FLAT, rated([3.0 * n for n in range(24)])) is None
    assert find_stagnation({}, RISING) is None


def test_one_kind_of_evidence_that_improves_is_enough_to_be_silent() -> None:
    falling = series([0.3 * math.exp(-0.05 * n) for n in range(24)], scale="loss", probe="exact", name="nash_conv")
    level = series([0.3 + 0.01 * (-1) ** n for n in range(24)], scale="loss", probe="exact", name="nash_conv")
    assert find_stagnation({**FLAT, **falling}, RISING) is None
    found = find_stagnation({**FLAT, **level}, RISING)
    assert found is not None and abs(found.falls["nash_conv"]) < 0.05
    assert "nash_conv fell by" in found.text()
    assert find_stagnation(level, RISING) is not None


def test_the_past_and_yardsticks_that_are_always_beaten_are_no_evidence() -> None:
    assert find_stagnation(series([0.5] * 24, probe="past"), RISING) is None
    beaten = series([0.995] * 24)
    assert find_stagnation(beaten, RISING) is None
    assert saturated(beaten) == ("bot",) and saturated({**beaten, **series([0.5] * 24, name="other")}) == ()


def test_the_permutation_is_that_over_all_splits() -> None:
    """Against every split of six values into halves, counted one by one."""
    values = np.array([0.3, -1.2, 0.8, -0.4, -2.0, -0.9])
    shift, p_value = stagnation._shift(values, higher=False)
    splits = list(itertools.combinations(range(6), 3))
    shifts = [values[list(late)].mean() - np.delete(values, late).mean() for late in splits]
    assert shift == pytest.approx(values[3:].mean() - values[:3].mean())
    exact = sum(other <= shift + 1e-12 for other in shifts) / len(splits)
    assert p_value == pytest.approx(exact, abs=0.03)  # 1,999 draws: three standard deviations


def test_a_snapshot_that_loses_to_its_past_is_a_finding() -> None:
    league = PairLeague(improving, lambda number: 0.0, snapshots=3)
    assert "the past is unlearnt" not in checks_of(league.state, league.journal)
    league.lose_to_the_past("main-0-s2", "main-0-s0")
    assert "the past is unlearnt" in checks_of(league.state, league.journal)


def test_a_snapshot_that_a_fresh_player_beats_is_a_finding() -> None:
    league, name = PairLeague(improving, lambda number: 0.0, snapshots=3), "a fresh player beats the newest snapshot"
    league.exploit("main-0-s2", score=0.45)
    assert name not in checks_of(league.state, league.journal)
    league.exploit("main-0-s2", score=0.25)
    assert name in checks_of(league.state, league.journal)


def test_readings_against_a_policy_that_has_changed_under_its_name_are_not_compared() -> None:
    (key, flat), *_ = FLAT.items()
    changed = [replace(point, identity="old" if point.number < 14 else "new") for point in flat.points]
    same = [replace(point, identity="new") for point in flat.points]
    assert find_stagnation({key: replace(flat, points=tuple(same))}, RISING) is not None
    assert find_stagnation({key: replace(flat, points=tuple(changed))}, RISING) is None


def test_mean_returns_of_a_game_of_one_team_are_no_evidence_against_ratings() -> None:
    returns = series([7.0] * 24, scale="return", probe="mean_return", name="mean_return")
    assert find_stagnation(returns, RISING) is None
    assert saturated(returns) == ()
