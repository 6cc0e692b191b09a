"""Ratings against a slow fit, and what may and may not move them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.core.metagame.ratings import (
    ELO_PER_LOGIT,
    ROOT_DRAWS,
    PairGames,
    anchor_of,
    bradley_terry,
    league_ratings,
    strongest,
)
from league.core.state.commands import ConfirmSnapshot, FinishLease, RequestSnapshot
from league.core.state.league_config import RatingConfig
from tests.league.core.simulated_league import DIGEST, SimulatedLeague, outcome_of, three_roles


def pairs_of(rows: list[tuple[int, int, float, float]]) -> PairGames:
    """rows: (first, second, score of the first, games)."""
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    first, second = (np.array(column, dtype=np.int64) for column in columns[:2])
    return PairGames(first, second, np.array(columns[2], dtype=float), np.array(columns[3], dtype=float))


def slow_fit(num: int, rows: list[tuple[int, int, float, float]], parents: list[int], draws: float) -> list[float]:
    """Coordinate ascent on the posterior, one policy at a time, by bisection; policy 0 is the anchor."""
    games = [list(row) for row in rows]
    for child in range(1, num):
        virtual = draws if parents[child] >= 0 else ROOT_DRAWS
        games.append([child, max(parents[child], 0), virtual / 2, virtual])
    ratings = [0.0] * num

    def slope(policy: int, value: float) -> float:
        total = 0.0
        for first, second, score, count in games:
            if policy == first:
                total += score - count / (1 + math.exp(ratings[second] - value))
            elif policy == second:
                total += (count - score) - count / (1 + math.exp(ratings[first] - value))
        return total

    for _ in range(3_000):
        before = list(ratings)
        for policy in range(1, num):
            low, high = -40.0, 40.0
            for _ in range(60):
                middle = (low + high) / 2
                low, high = (middle, high) if slope(policy, middle) > 0 else (low, middle)
            ratings[policy] = (low + high) / 2
        if max(abs(a - b) for a, b in zip(before, ratings, strict=True)) < 1e-9:
            break
    return ratings


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 12), st.integers(0, 12)), min_size=1, max_size=5
    ),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_ratings_are_the_most_probable_ones(results: list, has_parent: list[bool]) -> None:
    rows = [(a, a + b, float(won), float(won + lost)) for a, b, won, lost in results if a + b < 4]
    parents = [-1] + [i - 1 if has_parent[i] else -1 for i in range(1, 4)]
    found, _ = bradley_terry(4, pairs_of(rows), parents=np.array(parents), anchor=0, parent_draws=3.0)
    np.testing.assert_allclose(found, slow_fit(4, rows, parents, 3.0), atol=1e-4)


@pytest.mark.parametrize("games", [0.0, 1.0, 1e3, 1e7])
def test_one_who_always_wins_has_a_finite_rating(games: float) -> None:
    rows = [(1, 0, games, games), (2, 1, games, games), (2, 0, games, games)]
    ratings, deviations = bradley_terry(3, pairs_of(rows), parents=np.array([-1, 0, -1]), anchor=0, parent_draws=4.0)
    assert np.all(np.isfinite(ratings))
    assert np.all(deviations[1:] > 0.0)
    assert ratings[2] >= ratings[1] >= 0.0


def test_lopsided_results_do_not_throw_the_fit_off() -> None:
    # A full Newton step from the start overshoots here until the Hessian is singular.
    rows = [(0, 2, 1e5, 1e5), (1, 3, 1e4, 1e4), (2, 3, 1e2, 1e2)]
    found, _ = bradley_terry(4, pairs_of(rows), parents=np.full(4, -1), anchor=0, parent_draws=4.0)
    np.testing.assert_allclose(found, slow_fit(4, rows, [-1] * 4, 4.0), atol=1e-3)


def test_a_child_without_games_is_rated_like_its_parent_and_with_less_confidence() -> None:
    rows = [(1, 0, 75.0, 100.0)]
    ratings, deviations = bradley_terry(3, pairs_of(rows), parents=np.array([-1, -1, 1]), anchor=0, parent_draws=4.0)
    assert ratings[1] == pytest.approx(math.log(3), abs=0.02)
    assert ratings[2] == pytest.approx(ratings[1], abs=1e-6)
    assert deviations[2] == pytest.approx(math.hypot(deviations[1], 1.0), rel=1e-3)


def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    rng, inside = np.random.default_rng(0), []
    truth = np.linspace(0.0, 2.0, 5)
    for _ in range(200):
        rows = []
        for i in range(5):
            for j in range(i):
                rows.append((i, j, float(rng.binomial(40, 1 / (1 + math.exp(truth[j] - truth[i])))), 40.0))
        ratings, deviations = bradley_terry(5, pairs_of(rows), parents=np.full(5, -1), anchor=0, parent_draws=4.0)
        inside.extend(np.abs(ratings - truth)[1:] <= 1.96 * deviations[1:])
    assert 0.93 <= np.mean(inside) <= 0.97


def played(rating_fraction: float = 0.5, **ratings: object) -> SimulatedLeague:
    wishes = dataclasses.replace(three_roles().ratings, step_fraction=rating_fraction, **ratings)  # type: ignore[arg-type]
    strength = {"bot:weak": -2.0, "bot:strong": 4.0}
    league = SimulatedLeague(
        dataclasses.replace(three_roles(), ratings=wishes),
        strength=lambda policy: strength.get(policy, 0.25 * int(policy.rpartition("-s")[2]) if "-s" in policy else 0.0),
    )
    league.run(300)
    return league


def test_rating_matches_find_the_order_of_strength() -> None:
    league = played(bots=("bot:weak", "bot:strong"), anchor="bot:weak")
    rows = league_ratings(league.state)
    assert len(rows) == len(league.state.snapshots) + 2
    rated = {row.policy: row for row in rows}
    assert rated["bot:weak"].elo == rated["bot:weak"].low == 0.0
    assert rated["bot:strong"].elo == pytest.approx(6.0 * ELO_PER_LOGIT, rel=0.2)
    newest = f"main-0-s{league.state.players['main-0'].num_snapshots - 1}"
    assert rated[newest].elo > rated["main-0-s0"].elo
    assert [row.elo for row in rows] == sorted((row.elo for row in rows), reverse=True)
    best = strongest(rows)
    assert best is not None
    assert best.policy.startswith("main-0-s")
    assert best.low == max(row.low for row in rows if not row.policy.startswith("bot:"))


def test_games_of_a_learning_player_move_no_rating() -> None:
    league = played()
    before = league_ratings(league.state)
    for _ in range(30):
        lease = league.grant("train")
        outcomes = [
            outcome_of(assignment.policies, (0, 1), games=50, winners=[0] * 50) for assignment in lease.assignments
        ]
        league.ask(FinishLease(lease.lease_id, lease.token, 1, tuple(outcomes)))
    assert league_ratings(league.state) == before


def test_the_anchor_is_the_first_snapshot_unless_named() -> None:
    league = played()
    assert next(row for row in league_ratings(league.state) if row.policy == "main-0-s0").elo == 0.0


@pytest.mark.parametrize("first", [0, 1, 2])
def test_the_anchor_is_the_first_player_s_first_snapshot_whichever_is_confirmed_first(first: int) -> None:
    league = SimulatedLeague(three_roles())
    directives = list(league.state.directives.values())
    assert anchor_of(league.state) == ""
    for directive in (directives[first], *directives):
        if directive.directive_id in league.state.directives:
            league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 0, 0))
    assert anchor_of(league.state) == "main-0-s0"


@pytest.mark.parametrize("teams", [(0,), (0, 1)])
def test_there_is_no_rating_where_nothing_can_be_compared(teams: tuple[int, ...]) -> None:
    assert league_ratings(SimulatedLeague(three_roles(), teams=teams).state) == ()
    assert strongest(()) is None


def test_bots_are_named_as_bots() -> None:
    with pytest.raises(ValueError, match="bot:NAME"):
        RatingConfig(bots=("random",))


@pytest.mark.parametrize("size", [3, 40, 150])
def test_thousands_of_policies_are_rated_by_the_same_numbers_as_few(size: int) -> None:
    """The sparse solver against the dense one on the same games; its deviations are estimates, to about 10 %."""
    rng = np.random.default_rng(size)
    first, second = np.triu_indices(size, 1)
    met = rng.random(len(first)) < 8 / size
    first, second = first[met], second[met]
    games = rng.integers(1, 60, len(first)).astype(float)
    strength = rng.normal(size=size)
    score = rng.binomial(games.astype(int), 1 / (1 + np.exp(strength[second] - strength[first]))).astype(float)
    pairs = PairGames(first, second, score, games)
    parents = np.arange(size) - 1
    dense = bradley_terry(size, pairs, parents=parents, anchor=0, parent_draws=2.0)
    sparse = bradley_terry(size, pairs, parents=parents, anchor=0, parent_draws=2.0, max_dense=0)
    np.testing.assert_allclose(sparse[0], dense[0], atol=1e-3)
    ratio = sparse[1][1:] / dense[1][1:]
    assert np.all((ratio > 0.6) & (ratio < 1.5))
    assert np.median(ratio) == pytest.approx(1.0, abs=0.12)
    assert sparse[1][0] == 0.0


def test_a_deep_line_of_snapshots_is_solved_by_the_sparse_solver_too() -> None:
    size = 400
    nothing = PairGames(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
    pairs = PairGames(np.array([0]), np.array([size - 1]), np.array([9.0]), np.array([10.0]))
    parents = np.arange(size) - 1
    flat, _ = bradley_terry(size, nothing, parents=parents, anchor=0, parent_draws=4.0)
    np.testing.assert_allclose(flat, 0.0)
    sparse, _ = bradley_terry(size, pairs, parents=parents, anchor=0, parent_draws=4.0)
    dense, _ = bradley_terry(size, pairs, parents=parents, anchor=0, parent_draws=4.0, max_dense=size)
    np.testing.assert_allclose(sparse, dense, atol=2e-2)


def test_snapshots_without_a_game_stand_below_those_with_games_whatever_their_parents_rating() -> None:
    league = SimulatedLeague(three_roles(), strength=lambda policy: 3.0 * (policy == "main-0-s1"))
    league.run(120)
    league.confirm_directives()
    assert league.state.rating_games.values.any()
    league.ask(RequestSnapshot("main-0", "final"))
    league.confirm_directives()
    newest = list(league.state.snapshots)[-1]
    rows = league_ratings(league.state)
    unrated = [row.policy for row in rows if not row.games]
    assert newest in unrated
    assert [row.policy for row in rows[-len(unrated) :]] == unrated
    elos = [row.elo for row in rows if row.games]
    assert elos == sorted(elos, reverse=True)


@pytest.mark.parametrize("gap", [(0.0, 50.0), (100.0, 50.0), (200.0, 0.0), (200.0, 100.0)])
@pytest.mark.parametrize(("games", "met"), [(20, 1), (20, 3), (100, 2), (1000, 2)])
def test_intervals_of_a_lineage_cover_its_strength_as_often_as_they_say(
    gap: tuple[float, float], games: int, met: int
) -> None:
    """95 % of 16 lineages of 20 snapshots, each so many Elo above its parent, by games with the last few.

    With four draws instead of one, 20 games against the last covered 0.72 and left the newest 674 Elo too low.
    """
    rng = np.random.default_rng(games + met)
    covered = []
    for _ in range(16):
        truth = np.concatenate([[0.0], rng.normal(*gap, 19)]).cumsum() / ELO_PER_LOGIT
        rows = []
        for child in range(1, 20):
            parents = range(max(child - met, 0), child)
            for parent in parents:
                played = games // len(parents)
                chance = 1.0 / (1.0 + math.exp(truth[parent] - truth[child]))
                rows.append((child, parent, float(rng.binomial(played, chance)), float(played)))
        lineage, draws = np.arange(20) - 1, RatingConfig().parent_draws
        found, deviations = bradley_terry(20, pairs_of(rows), parents=lineage, anchor=0, parent_draws=draws)
        covered.append((np.abs(found - truth)[1:] <= 1.96 * deviations[1:]).mean())
    assert 0.88 <= np.mean(covered) <= 1.0
