"""Every registered solver on games whose solution is known, and on random ones by what can still be won."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import league.policies.most_even
import league.policies.nash_lp
from league.core.metagame.solvers import AUTO, Solver, exploitability, regret_matching, solver_of
from league.core.state.built_ins import SOLVERS
from league.envs.plugins import admit
from league.policies.most_even import most_even
from league.policies.nash_lp import MAX_POLICIES, least_beaten, nash

every_solver = pytest.mark.parametrize("solve", [solver_of(name, num_sides=2) for name in SOLVERS], ids=list(SOLVERS))


def cyclic(first: float, second: float, third: float) -> np.ndarray:
    """Rock-paper-scissors in which the stakes of the three pairings differ; win rates in [0, 1]."""
    gains = np.array([[0.0, -first, second], [first, 0.0, -third], [-second, third, 0.0]])
    return 0.5 + 0.5 * gains


def random_table(kind: str, size: int) -> np.ndarray:
    """Win rates of a random game; estimates of the two directions of a pair agree."""
    rng = np.random.default_rng(size)
    skill, disc = rng.normal(size=size), rng.normal(size=(size, 2))
    gains = {
        "random": rng.uniform(-1, 1, (size, size)),
        "disc": 0.2 * np.outer(disc[:, 0], disc[:, 1]),
        "skill": np.tanh(skill[:, None] - skill[None, :]),
        "transitive and cyclic": 0.2 * (skill[:, None] - skill[None, :]) + 0.3 * np.outer(disc[:, 0], disc[:, 1]),
        "won or lost": np.sign(rng.uniform(-1, 1, (size, size))),
    }[kind]
    return np.clip(0.5 + 0.25 * (gains - gains.T), 0.0, 1.0)


@every_solver
def test_the_mixture_of_a_cyclic_game_is_found(solve: Solver) -> None:
    np.testing.assert_allclose(solve(cyclic(1.0, 1.0, 1.0)), np.full(3, 1 / 3), atol=1e-3)
    # Each of the three is played in proportion to the stake of the pairing that it is not in.
    np.testing.assert_allclose(solve(cyclic(0.2, 0.3, 0.5)), [0.5, 0.3, 0.2], atol=0.02)


@every_solver
def test_a_dominating_policy_is_played_alone(solve: Solver) -> None:
    mixture = solve(np.array([[0.5, 0.9, 0.9], [0.1, 0.5, 0.8], [0.1, 0.2, 0.5]]))
    assert mixture[0] == pytest.approx(1.0, abs=1e-2)


@every_solver
def test_copies_of_a_policy_share_its_weight(solve: Solver) -> None:
    base = cyclic(1.0, 1.0, 1.0)
    doubled = base[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]
    mixture = solve(doubled)
    assert mixture[:2].sum() == pytest.approx(1 / 3, abs=2e-3)
    assert mixture[:2].max() < 0.34


@every_solver
def test_where_nothing_tells_policies_apart_they_weigh_the_same(solve: Solver) -> None:
    np.testing.assert_allclose(solve(np.full((5, 5), 0.5)), np.full(5, 0.2), atol=1e-9)


@pytest.mark.parametrize("size", [1, 2, 7, 60, 128])
@pytest.mark.parametrize("kind", ["random", "disc", "skill", "transitive and cyclic", "won or lost"])
@every_solver
def test_no_row_wins_much_against_the_mixture(solve: Solver, kind: str, size: int) -> None:
    most = {nash: 1e-7, regret_matching: 1e-3}.get(solve, 0.02)
    win_rates = random_table(kind, size)
    mixture = solve(win_rates)
    assert mixture.sum() == pytest.approx(1.0)
    assert np.all(mixture >= 0.0)
    assert exploitability(win_rates, mixture) < most


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 8).flatmap(lambda size: arrays(np.float64, (size, size), elements=st.floats(0.0, 1.0))))
def test_the_linear_program_is_exact_whatever_the_table(win_rates: np.ndarray) -> None:
    mixture = nash(win_rates)
    assert mixture.sum() == pytest.approx(1.0)
    assert np.all(mixture >= 0.0)
    assert exploitability(win_rates, mixture) < 1e-6


def test_of_several_solutions_the_linear_program_takes_the_most_even_one() -> None:
    # Three alike, and a fourth that loses to each of them: any mixture of the three solves it.
    win_rates = np.full((4, 4), 0.5)
    win_rates[:3, 3], win_rates[3, :3] = 0.8, 0.2
    np.testing.assert_allclose(nash(win_rates), [1 / 3, 1 / 3, 1 / 3, 0.0], atol=1e-7)


def copies_and_rocks() -> np.ndarray:
    """Rock, a copy of it, paper and scissors: any split of a third between the two rocks is a Nash mixture."""
    return cyclic(1.0, 1.0, 1.0)[np.ix_([0, 0, 1, 2], [0, 0, 1, 2])]


def test_copies_of_a_policy_share_its_weight_evenly() -> None:
    np.testing.assert_allclose(nash(copies_and_rocks()), [1 / 6, 1 / 6, 1 / 3, 1 / 3], atol=1e-7)


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_the_nash_mixture_does_not_depend_on_the_order_of_the_rows(order: tuple[int, ...]) -> None:
    win_rates = copies_and_rocks()
    expected = np.array([1 / 6, 1 / 6, 1 / 3, 1 / 3])[list(order)]
    np.testing.assert_allclose(nash(win_rates[np.ix_(order, order)]), expected, atol=1e-7)


@pytest.mark.parametrize("seed", range(20))
def test_of_all_nash_mixtures_it_is_the_one_of_the_least_sum_of_squares_whatever_the_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, kinds = int(rng.integers(3, 14)), int(rng.integers(2, 6))
    kind = rng.integers(0, kinds, size)  # several rows of the table are copies, so that there are many solutions
    win_rates = random_table("won or lost" if seed % 2 else "random", kinds)[np.ix_(kind, kind)]
    mixture = nash(win_rates)
    order = rng.permutation(size)
    np.testing.assert_allclose(nash(win_rates[np.ix_(order, order)]), mixture[order], atol=1e-5)
    for number in range(kinds):
        np.testing.assert_allclose(mixture[kind == number], mixture[kind == number].mean() if number in kind else 0)
    # p is the nearest point to the origin of a convex set if and only if no point of the set lies before its tangent.
    gains = 0.5 * (win_rates - win_rates.T)
    nearest = scipy.optimize.linprog(mixture, A_ub=gains, b_ub=np.zeros(size), A_eq=np.ones((1, size)), b_eq=[1.0])
    assert nearest.fun >= mixture @ mixture - 1e-6


def test_the_weakest_win_over_a_mixture_is_found_among_members_that_opponents_beat() -> None:
    # A opponent beats each of two members, the second by less; a third loses to the second by as much as the opponent
    # wins.
    gains = np.array([[0.3, 0.1, 0.25], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(least_beaten(gains, favour=np.ones(3)), [0.0, 1.0, 0.0], atol=1e-6)
    crossed = np.array([[0.2, 0.0], [0.0, 0.2]])
    np.testing.assert_allclose(least_beaten(crossed, favour=np.array([1.0, 9.0])), [0.5, 0.5], atol=1e-6)


@pytest.mark.parametrize("seed", range(10))
def test_no_other_mixture_is_certainly_beaten_less(seed: int) -> None:
    rng = np.random.default_rng(seed)
    gains = rng.uniform(-0.4, 0.5, (int(rng.integers(1, 30)), int(rng.integers(1, 20))))
    mixture = least_beaten(gains, favour=rng.uniform(0.5, 2.0, gains.shape[1]))
    assert mixture.sum() == pytest.approx(1.0)
    assert np.all(mixture >= 0.0)
    others = rng.dirichlet(np.full(gains.shape[1], 0.3), 500)
    assert (gains @ mixture).max() <= max((gains @ others.T).max(axis=0).min(), 0.0) + 1e-6


def test_more_policies_than_the_program_is_meant_for_are_solved_by_regret_matching() -> None:
    win_rates = random_table("skill", MAX_POLICIES + 1)
    np.testing.assert_array_equal(nash(win_rates), regret_matching(win_rates))


def test_a_program_without_a_solution_is_made_up_for_by_regret_matching(monkeypatch: pytest.MonkeyPatch) -> None:
    class GaveUp:
        success = False

    monkeypatch.setattr(league.policies.nash_lp, "most_even", lambda *args, **kwargs: None)
    win_rates = cyclic(0.2, 0.3, 0.5)
    np.testing.assert_array_equal(nash(win_rates), regret_matching(win_rates))
    gains = np.array([[0.2, 0.1], [-0.1, 0.3]])
    np.testing.assert_allclose(least_beaten(gains, favour=np.ones(2)), [2 / 5, 3 / 5])
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *args, **kwargs: GaveUp())
    np.testing.assert_array_equal(least_beaten(gains, favour=np.ones(2)), [1.0, 0.0])


def test_digits_that_do_not_suffice_are_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(league.policies.most_even, "TOLERANCES", (1e-30,))
    assert most_even(random_table("random", 9) - 0.5, bound=0.0, favour=np.ones(9)) is None


@every_solver
@pytest.mark.parametrize("shape", [(0, 0), (2, 3)])
def test_a_table_that_is_not_square_is_refused(solve: Solver, shape: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match="must be"):
        solve(np.full(shape, 0.5))


def test_the_number_of_sides_chooses_where_the_user_does_not() -> None:
    assert solver_of(AUTO, num_sides=2) is solver_of("nash", num_sides=2) is nash
    assert solver_of(AUTO, num_sides=3) is solver_of("replicator", num_sides=3)
    assert solver_of("regret_matching", num_sides=3) is regret_matching


def test_a_solver_may_be_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "my_solver", type(sys)("my_solver"))
    monkeypatch.setattr(sys.modules["my_solver"], "newest", lambda win_rates: np.eye(len(win_rates))[-1], raising=False)
    admit(["my_solver:newest"])
    assert solver_of("my_solver:newest", num_sides=2)(np.full((3, 3), 0.5)).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="nearest is 'nash'"):
        solver_of("nahs", num_sides=2)


def test_a_gain_within_its_error_is_no_reason_to_leave_a_policy_out() -> None:
    win_rates = np.array([[0.5, 0.54], [0.46, 0.5]])
    gains, favour = win_rates - 0.5, np.array([1.0, 9.0])
    np.testing.assert_allclose(nash(win_rates), [1.0, 0.0])
    np.testing.assert_allclose(least_beaten(gains - 0.05, favour=np.ones(2)), [0.5, 0.5], atol=1e-7)
    # With a smaller error than the better one gains, it is the only one that nothing surely beats.
    errors = np.array([[0.0, 0.02], [0.02, 0.0]])
    np.testing.assert_allclose(least_beaten(gains - errors, favour=favour), [1.0, 0.0], atol=1e-7)


def test_policies_that_nothing_tells_apart_share_their_weight_by_favour() -> None:
    mixture = least_beaten(np.zeros((3, 3)), favour=np.array([1.0, 2.0, 5.0]))
    np.testing.assert_allclose(mixture, [1 / 8, 2 / 8, 5 / 8], atol=1e-7)
