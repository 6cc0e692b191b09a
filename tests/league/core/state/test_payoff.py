"""The payoff against a slow table that keeps every game and ages each by its own clock."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.core.state.payoff import Payoff, counted_pairs, empty_payoff

HALF_LIFE = 1_000.0
NUM_POLICIES = 4


def new_payoff(num_seats: int = 2) -> Payoff:
    return empty_payoff(num_seats=num_seats, half_life_steps=HALF_LIFE, prior_games=2.0)


def record(
    payoff: Payoff, home: int, away: int, results: tuple[int, int, int], *, now: float = 0.0, **more: int
) -> None:
    """Records games that are won, drawn or lost, with the home on seat 0 unless said."""
    score = results[0] + 0.5 * results[1]
    payoff.add(home, away, results=results, score=score, now=now, **{"seat": 0, **more})  # type: ignore[arg-type]


games_or_moves = st.lists(
    st.one_of(
        st.tuples(
            st.just("games"),
            st.integers(0, NUM_POLICIES - 1),
            st.integers(0, NUM_POLICIES - 1),
            st.integers(0, 1),
            st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)),
        ),
        st.tuples(st.just("move"), st.integers(0, 1), st.integers(1, 5_000)),
        st.tuples(st.just("forget"), st.integers(0, 1)),
    ),
    max_size=30,
)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(games_or_moves)
def test_a_game_fades_by_how_far_the_learning_sides_have_moved_since(history: list[tuple]) -> None:
    payoff, staleness_clock = (
        new_payoff(),
        np.zeros(NUM_POLICIES),
    )  # policies 0 and 1 learn, 2 and 3 are frozen and never move
    kept: list[list] = []
    for step in history:
        if step[0] == "move":
            staleness_clock[step[1]] += step[2]
        elif step[0] == "forget":
            payoff.forget(step[1])
            kept = [game for game in kept if step[1] not in game[:2]]
        else:
            _, home, away, seat, results = step
            now = staleness_clock[home] + staleness_clock[away]
            record(payoff, home, away, results, seat=seat, now=now)
            kept.append([home, away, now, results])
    for home in range(NUM_POLICIES):
        expected = np.zeros((NUM_POLICIES, 3))
        for game_home, away, then, results in kept:
            if game_home == home:
                expected[away] += np.array(results) * 0.5 ** (
                    (staleness_clock[home] + staleness_clock[away] - then) / HALF_LIFE
                )
        known = payoff.posterior(home, staleness_clock)
        np.testing.assert_allclose(known.games, expected.sum(axis=1), rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(known.alpha, expected[:, 0] + 0.5 * expected[:, 1] + 1.0, rtol=1e-9)
        np.testing.assert_allclose(known.beta, expected[:, 2] + 0.5 * expected[:, 1] + 1.0, rtol=1e-9)


def test_evidence_between_frozen_policies_never_ages() -> None:
    payoff = new_payoff()
    record(payoff, 2, 3, (7, 0, 3))
    assert payoff.posterior(2, np.array([1e9, 1e9, 0.0, 0.0])).games[3] == 10.0


def test_a_half_life_halves_the_weight() -> None:
    payoff = new_payoff()
    record(payoff, 0, 2, (8, 0, 0))
    assert payoff.posterior(0, np.array([HALF_LIFE, 0.0, 0.0])).games[2] == pytest.approx(4.0)


def test_a_pair_that_never_met_is_even_and_unsure() -> None:
    known = new_payoff().posterior(0, np.zeros(3))
    assert known.mean.tolist() == [0.5] * 3
    assert known.games.tolist() == [0.0] * 3
    assert known.lower.max() < 0.1


def test_one_game_does_not_settle_a_pair() -> None:
    payoff = new_payoff()
    record(payoff, 0, 1, (1, 0, 0))
    assert payoff.posterior(0, np.zeros(2)).mean[1] == pytest.approx(2 / 3)


def test_draws_are_half_a_win() -> None:
    payoff = new_payoff()
    record(payoff, 0, 1, (0, 100, 0))
    assert payoff.posterior(0, np.zeros(2)).mean[1] == pytest.approx(0.5)


def test_a_score_is_a_share_of_a_win_whoever_won_the_games() -> None:
    payoff = new_payoff()
    payoff.add(0, 1, seat=0, results=(1, 0, 9), score=7.5, now=0.0)
    known = payoff.posterior(0, np.zeros(2))
    assert (known.alpha[1], known.beta[1], known.games[1]) == (8.5, 3.5, 10.0)
    assert payoff.seat_totals(0, 1)[0].tolist() == [1, 0, 9]


def test_seats_are_kept_apart() -> None:
    payoff = new_payoff()
    record(payoff, 0, 1, (9, 0, 1))
    record(payoff, 0, 1, (2, 0, 8), seat=1)
    assert payoff.seat_games(0, 1, np.zeros(2)).tolist() == [[9.0, 10.0], [2.0, 10.0]]
    assert payoff.seat_totals(0, 1).tolist() == [[9, 0, 1], [2, 0, 8]]
    assert payoff.seat_totals(1, 0).sum() == 0


def test_games_of_thrown_away_weights_count_in_the_totals_alone() -> None:
    payoff = new_payoff()
    record(payoff, 0, 1, (5, 0, 0), counts=False)
    assert payoff.posterior(0, np.zeros(2)).games[1] == 0.0
    assert payoff.seat_totals(0, 1).sum() == 5


def test_samples_follow_the_posterior() -> None:
    payoff = new_payoff()
    record(payoff, 0, 1, (30, 0, 10))
    rng = np.random.default_rng(0)
    drawn = np.array([payoff.posterior(0, np.zeros(3)).sample(rng) for _ in range(4_000)])
    assert drawn[:, 1].mean() == pytest.approx(31 / 42, abs=0.01)
    assert drawn[:, 2].mean() == pytest.approx(0.5, abs=0.02)
    assert drawn[:, 2].var() == pytest.approx(1 / 12, abs=0.01)


@pytest.mark.parametrize(
    ("policies", "teams", "pairs"),
    [
        (("a", "b"), (0, 1), {(0, 1), (1, 0)}),
        (("a", "a"), (0, 1), {(0, 1), (1, 0)}),
        (("a",), (0,), set()),
        (("a", "b", "b"), (0, 1, 2), {(0, 1), (0, 2), (1, 0), (2, 0), (1, 2), (2, 1)}),
        (("a", "a", "b", "b"), (0, 0, 1, 1), {(0, 2), (2, 0)}),
        (("a", "c", "b", "b"), (0, 0, 1, 1), {(0, 2), (2, 0), (1, 2), (2, 1)}),
    ],
)
def test_a_policy_counts_once_per_opposing_team(policies: tuple, teams: tuple, pairs: set) -> None:
    assert set(counted_pairs(policies, teams)) == pairs


def test_pairs_of_a_growing_league_are_not_remembered_by_name() -> None:
    counted_pairs(("a", "b"), (0, 1))
    tracemalloc.start()
    try:
        for number in range(4_000):
            counted_pairs((f"main-{number}", f"main-{number + 1}"), (0, 1))
        held_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes < 400_000  # by their names it would be 1.9 MB; other threads of the test allocate too
