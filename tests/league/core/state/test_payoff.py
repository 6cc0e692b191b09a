"""The payoff against a slow table that keeps every game and ages each by its own clock."""

from __future__ import annotations

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from league.core.state.payoff import Payoff
from league.core.state.state_codec import decode, encode

HALF_LIFE = 1_000.0
NUM_POLICIES = 4


def new_payoff(num_seats: int = 2) -> Payoff:
    return Payoff(num_seats=num_seats, half_life_steps=HALF_LIFE, prior_games=2.0)


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


@settings(max_examples=100, deadline=None, derandomize=True)
@given(games_or_moves)
def test_a_stored_payoff_comes_back_the_same_and_continues_the_same(history: list[tuple]) -> None:
    """Columns are what they would be if every cell had a clock and weights of its own from the first game on."""
    payoff, staleness_clock = new_payoff(), np.zeros(NUM_POLICIES)
    cells: dict[tuple[int, int], dict] = {}
    for step in history:
        if step[0] == "move":
            staleness_clock[step[1]] += step[2]
        elif step[0] == "forget":
            payoff.forget(step[1])
            for pair, cell in cells.items():
                cell["weights"] *= step[1] not in pair
        else:
            _, home, away, seat, results = step
            now = float(staleness_clock[home] + staleness_clock[away])
            counts = results[1] != 9  # some games are of weights that were thrown away
            score = results[0] + results[1] / 3
            payoff.add(home, away, seat=seat, results=results, score=score, now=now, counts=counts)
            blank = {"clock": now, "weights": np.zeros((2, 2)), "totals": np.zeros((2, 3)), "scores": np.zeros(2)}
            cell = cells.setdefault((home, away), blank)
            cell["totals"][seat] += results
            cell["scores"][seat] += score
            if counts:
                cell["weights"] *= 2.0 ** ((cell["clock"] - now) / HALF_LIFE)
                cell["clock"] = now
                cell["weights"][seat] += (score, sum(results))
        plain = json.loads(json.dumps(encode(payoff)))
        again = decode(Payoff, plain)
        assert encode(again) == plain
        payoff = again if step[0] == "move" else payoff  # so that either goes on
    assert list(zip(payoff.home.tolist(), payoff.away.tolist(), strict=True)) == list(cells)
    for name in ("clock", "weights", "totals", "scores"):
        np.testing.assert_array_equal(
            getattr(payoff, name).tolist(), [np.array(cell[name]).tolist() for cell in cells.values()]
        )


def test_counts_and_scores_stay_exact_when_they_outgrow_their_type() -> None:
    payoff = new_payoff()
    for wins, score in ((65_535, 0.5), (1, 0.1), (2**32, 2.0**53), (2**40, 0.0)):
        payoff.add(0, 1, seat=0, results=(wins, 0, 0), score=score, now=0.0)
        payoff.add(1, 0, seat=1, results=(0, 7, 0), score=3.5, now=0.0)
    assert payoff.seat_totals(0, 1).tolist() == [[65_536 + 2**32 + 2**40, 0, 0], [0, 0, 0]]
    assert payoff.seat_totals(1, 0).tolist() == [[0, 0, 0], [0, 28, 0]]
    assert payoff.scores.tolist() == [[0.5 + 0.1 + 2.0**53, 0.0], [0.0, 14.0]]
    record(payoff, 40_000, 70_000, (1, 0, 0))
    assert (payoff.home.tolist(), payoff.away.tolist()) == ([0, 1, 40_000], [1, 0, 70_000])
    assert payoff.posterior(40_000, np.zeros(70_001)).games[70_000] == 1.0


def test_two_frozen_policies_cost_at_most_60_bytes_in_each_direction() -> None:
    tracemalloc.start()
    try:
        payoff = new_payoff()
        for home in range(70):
            for away in range(home):
                record(payoff, home, away, (9, 2, 9))
                record(payoff, away, home, (9, 2, 9), seat=1)
        held_bytes, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held_bytes / len(payoff) < 60  # with an entry of a dictionary and a weight for each it was 240
    assert most_bytes / len(payoff) < 90  # while it grew


@pytest.mark.parametrize("first", [0.0, 500.0])
def test_a_cell_is_found_among_all_others(first: float) -> None:
    payoff, rng = new_payoff(), np.random.default_rng(0)
    pairs = [(int(home), int(away)) for home, away in rng.permutation(list(np.ndindex(12, 12)))]
    for wins, (home, away) in enumerate(pairs):
        record(payoff, home, away, (wins, 0, 0), now=first)
    assert [int(payoff.seat_totals(*pair).sum()) for pair in pairs] == list(range(len(pairs)))
    assert payoff.cells_of(5).tolist() == [cell for cell, (home, _) in enumerate(pairs) if home == 5]
    assert payoff.seat_totals(12, 0).sum() == payoff.seat_totals(0, 12).sum() == 0
