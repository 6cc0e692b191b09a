"""What a game counts, against scores taken game by game; and leagues in which wins and returns say different things."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.core.league import apply
from league.core.metagame.ratings import league_ratings
from league.core.state.commands import FinishLease
from league.core.state.events import LeagueCreated
from league.core.state.league_config import GateConfig, LeagueConfig, PayoffConfig, PlayerConfig, RatingConfig
from league.core.state.population_config import PopulationConfig
from league.core.state.records import AssignmentOutcome
from league.core.state.scoring import BY_WINS, Scoring, score_sum
from league.core.state.state import LeagueState, digest
from league.policies.nash_export import league_mixture
from tests.league.core.simulated_league import SimulatedLeague, outcome_of, three_roles

SHAPES = ((0, 1), (0, 1, 2), (0, 1, 0, 1), (0, 0, 1), (1, 0, 2, 0))
UNEQUAL_STAKES = np.array([[0.0, -2.0, 1.0], [2.0, 0.0, -3.0], [-1.0, 3.0, 0.0]])
"""Rock, paper, scissors from the row's side; a win takes 1, 2 or 3 by the winner's choice."""


def outcome_from(returns: np.ndarray, teams: tuple[int, ...]) -> AssignmentOutcome:
    """The totals of games with these returns, [G, S]; wins and draws by the teams' mean returns."""
    side = np.array([[row[np.equal(teams, team)].mean() for team in teams] for row in returns]).reshape(-1, len(teams))
    above = (side[:, :, None] > side[:, None, :]).sum(axis=0)
    even = ((side[:, :, None] == side[:, None, :]) & np.not_equal.outer(teams, teams)).sum(axis=0)
    return AssignmentOutcome(
        policies=tuple(f"p{seat}" for seat in range(len(teams))),
        games=len(returns),
        aborted=0,
        decisions=len(returns),
        wins=tuple(tuple(row) for row in above.tolist()),
        draws=tuple(tuple(row) for row in even.tolist()),
        return_sums=tuple(returns.sum(axis=0).tolist()),
    )


def gate_opponents(teams: tuple[int, ...]) -> list[tuple[int, int]]:
    return [(i, j) for i, one in enumerate(teams) for j, other in enumerate(teams) if one != other]


@st.composite
def games(draw: st.DrawFn) -> tuple[tuple[int, ...], np.ndarray]:
    teams = draw(st.sampled_from(SHAPES))
    number = draw(st.integers(1, 12))
    earned = draw(st.lists(st.floats(-5, 5), min_size=number * len(teams), max_size=number * len(teams)))
    return teams, np.array(earned).reshape(number, len(teams))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(games(), st.floats(10.0, 40.0))
def test_the_score_is_the_sum_of_the_scores_of_single_games(played: tuple, scale: float) -> None:
    teams, returns = played
    outcome = outcome_from(returns, teams)
    for seat, opponent in gate_opponents(teams):
        expected = 0.0
        for row in returns:
            own = [earned for earned, team in zip(row, teams, strict=True) if team == teams[seat]]
            other = [earned for earned, team in zip(row, teams, strict=True) if team == teams[opponent]]
            expected += 0.5 + 0.5 * (sum(own) / len(own) - sum(other) / len(other)) / scale
        found = score_sum(Scoring("returns", scale), outcome, teams=teams, seat=seat, opponent=opponent)
        assert found == pytest.approx(expected, abs=1e-9)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(games(), st.floats(1e-3, 40.0), st.booleans())
def test_what_one_side_scores_the_other_does_not(played: tuple, scale: float, by_returns: bool) -> None:
    teams, returns = played
    outcome = outcome_from(returns, teams)
    scoring = Scoring("returns", scale) if by_returns else BY_WINS
    for seat, opponent in gate_opponents(teams):
        scored = score_sum(scoring, outcome, teams=teams, seat=seat, opponent=opponent)
        conceded = score_sum(scoring, outcome, teams=teams, seat=opponent, opponent=seat)
        assert 0.0 <= scored <= outcome.games
        assert scored + conceded == pytest.approx(outcome.games)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(games(), st.sampled_from([0.01, 3.0, 100.0]), st.floats(-7, 7))
def test_the_unit_of_returns_and_what_all_earn_alike_change_nothing(played: tuple, unit: float, gift: float) -> None:
    teams, returns = played
    for seat, opponent in gate_opponents(teams):
        scores = [
            score_sum(Scoring("returns", scale), outcome_from(earned, teams), teams=teams, seat=seat, opponent=opponent)
            for scale, earned in ((4.0, returns), (4.0 * unit, unit * returns), (4.0, returns + gift))
        ]
        assert scores == pytest.approx([scores[0]] * 3)


@pytest.mark.parametrize("teams", [(0, 1), (0, 1, 0, 1)])
def test_games_won_drawn_or_lost_score_alike_by_wins_and_by_returns(teams: tuple[int, ...]) -> None:
    sign = np.where(np.equal(teams, 0), 1.0, -1.0)
    returns = np.random.default_rng(0).integers(-1, 2, 40)[:, None] * sign
    outcome = outcome_from(returns, teams)
    for seat, opponent in gate_opponents(teams):
        won = score_sum(BY_WINS, outcome, teams=teams, seat=seat, opponent=opponent)
        assert score_sum(Scoring("returns", 2.0), outcome, teams=teams, seat=seat, opponent=opponent) == won


@pytest.mark.parametrize("scale", [0.0, -1.0, float("inf"), float("nan")])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    with pytest.raises(ValueError, match="return_scale"):
        Scoring("returns", scale)
    with pytest.raises(ValueError, match="return_scale"):
        PayoffConfig(score="returns", return_scale=scale)


def test_a_scale_for_games_won_is_refused() -> None:
    with pytest.raises(ValueError, match="no meaning with score: wins"):
        PayoffConfig(score="wins", return_scale=2.0)


def three_choices(scoring: Scoring, *, games_each: int = 1000) -> SimulatedLeague:
    """A league whose three snapshots are rock, paper and scissors of unequal stakes, all pairs played exactly."""
    never = GateConfig(min_steps=10**9, timeout_steps=10**9)
    league = SimulatedLeague(LeagueConfig(players=(PlayerConfig(count=3, gate=never),)), scoring=scoring)
    league.confirm_directives()
    choices = list(league.state.snapshots)
    for first, second in ((i, j) for i in range(3) for j in range(3) if i != j):
        lease = league.grant("rate")
        won = UNEQUAL_STAKES[first, second]
        played = outcome_of(
            (choices[first], choices[second]), (0, 1), games=games_each, winners=[0 if won > 0 else 1] * games_each
        )
        earned = (won * games_each, -won * games_each)
        played = dataclasses.replace(played, return_sums=earned)
        league.ask(FinishLease(lease.lease_id, lease.token, games_each, (played,)))
    return league


def lost_by(league: SimulatedLeague) -> float:
    """NashConv of the league's mixture over rock, paper and scissors, as a share of the range of the payoffs."""
    weights = dict(league_mixture(league.state))
    mixture = np.array([weights.get(name, 0.0) for name in league.state.snapshots])
    return float(2.0 * (UNEQUAL_STAKES @ mixture).max() / 6.0)


def test_the_mixture_of_unequal_stakes_is_right_by_returns_and_wrong_by_wins() -> None:
    by_returns = three_choices(Scoring("returns", 6.0))
    weights = dict(league_mixture(by_returns.state))
    # Each choice is played in proportion to the stake of the pairing that it is not in: 3, 1 and 2.
    assert [weights[name] for name in by_returns.state.snapshots] == pytest.approx([3 / 6, 1 / 6, 2 / 6], abs=0.01)
    assert lost_by(by_returns) < 0.01
    assert lost_by(three_choices(BY_WINS)) > 0.1


@pytest.mark.parametrize("unit", [0.01, 1.0, 100.0])
def test_no_rating_and_no_weight_depends_on_the_unit_of_the_returns(unit: float) -> None:
    def scaled(league: SimulatedLeague) -> tuple:
        return league_ratings(league.state), dict(league_mixture(league.state))

    league = SimulatedLeague(three_roles(rating_fraction=0.5), seed=3, scoring=Scoring("returns", 2.0))
    other = SimulatedLeague(three_roles(rating_fraction=0.5), seed=3, scoring=Scoring("returns", 2.0 * unit))
    plain = other.play
    other.play = lambda lease, games=20: tuple(  # type: ignore[method-assign]
        dataclasses.replace(outcome, return_sums=tuple(unit * total for total in outcome.return_sums))
        for outcome in plain(lease, games=games)
    )
    for one in (league, other):
        one.run(60)
    (ratings, weights), (other_ratings, other_weights) = scaled(league), scaled(other)
    assert [row.policy for row in ratings] == [row.policy for row in other_ratings]
    assert [row.elo for row in ratings] == pytest.approx([row.elo for row in other_ratings], abs=1e-6)
    assert weights == pytest.approx(other_weights, abs=1e-6)


def test_who_loses_more_games_may_be_rated_higher_for_what_it_earns() -> None:
    """A policy that folds nine hands of ten and takes a large pot with the tenth."""
    ratings = {}
    for scoring in (BY_WINS, Scoring("returns", 26.0)):
        league = SimulatedLeague(LeagueConfig(players=(PlayerConfig(count=2),)), scoring=scoring)
        league.confirm_directives()
        lease = league.grant("rate")
        assignment = tuple(league.state.snapshots)
        played = outcome_of(assignment, (0, 1), games=1000, winners=[0] * 100 + [1] * 900)
        played = dataclasses.replace(played, return_sums=(100 * 13.0 - 900.0, 900.0 - 100 * 13.0))
        league.ask(FinishLease(lease.lease_id, lease.token, 1000, (played,)))
        ratings[scoring.score] = league_ratings(league.state)[0].policy
    assert ratings == {"wins": "main-1-s0", "returns": "main-0-s0"}


def test_a_fold_of_the_events_needs_neither_the_game_nor_the_configuration() -> None:
    scoring = Scoring("returns", 2.0)
    league = SimulatedLeague(three_roles(), seed=7, scoring=scoring)
    league.run(40)
    replayed = LeagueState()
    for event in league.journal:
        apply(replayed, event)
    assert replayed.scoring == scoring
    assert digest(replayed) == digest(league.state)
    other = LeagueState()
    for event in league.journal:
        apply(other, dataclasses.replace(event, scoring=BY_WINS) if isinstance(event, LeagueCreated) else event)
    assert digest(other) != digest(league.state), "the journal's own scoring decides"


def test_the_quality_of_a_snapshot_falls_by_what_is_scored_against_it() -> None:
    falls = {}
    for scoring in (BY_WINS, Scoring("returns", 4.0)):
        preset = LeagueConfig(
            preset="openai_five", population=PopulationConfig(save_steps=10**9), ratings=RatingConfig(step_fraction=0.0)
        )
        league = SimulatedLeague(preset, scoring=scoring)
        league.confirm_directives()
        lease = league.grant("train")
        (snapshot,) = league.state.snapshots
        played = outcome_of(("main-0", snapshot), (0, 1), games=8, winners=[0] * 8)
        played = dataclasses.replace(played, return_sums=(8.0, -8.0))
        league.ask(FinishLease(lease.lease_id, lease.token, 8, (played,)))
        number = league.state.population.index[snapshot]
        falls[scoring.score] = -float(league.state.qualities["main-0"].values[number])
    assert falls["wins"] == pytest.approx(0.08)
    assert falls["returns"] == pytest.approx(0.08 * 0.75), "a margin of 2 in 4 scores three quarters"
