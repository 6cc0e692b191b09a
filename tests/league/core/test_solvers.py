"""Every registered solver on games whose solution is known, and on random ones by what can still be won."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import league.linear_program
from league.core.registry import SOLVERS
from league.core.solvers import AUTO, Solver, exploitability, regret_matching, solver_of
from league.linear_program import MOST_POLICIES, nash

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
    most = {nash: 1e-9, regret_matching: 1e-3}.get(solve, 0.02)
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
    np.testing.assert_allclose(nash(win_rates), [1 / 3, 1 / 3, 1 / 3, 0.0], atol=1e-9)


def test_more_policies_than_the_program_is_meant_for_are_solved_by_regret_matching() -> None:
    win_rates = random_table("skill", MOST_POLICIES + 1)
    np.testing.assert_array_equal(nash(win_rates), regret_matching(win_rates))


def test_a_program_without_a_solution_is_made_up_for_by_regret_matching(monkeypatch: pytest.MonkeyPatch) -> None:
    class GaveUp:
        success = False

    monkeypatch.setattr(league.linear_program, "linprog", lambda *args, **kwargs: GaveUp())
    win_rates = cyclic(0.2, 0.3, 0.5)
    np.testing.assert_array_equal(nash(win_rates), regret_matching(win_rates))


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
    assert solver_of("my_solver:newest", num_sides=2)(np.full((3, 3), 0.5)).tolist() == [0.0, 0.0, 1.0]
    with pytest.raises(ValueError, match="nearest is 'nash'"):
        solver_of("nahs", num_sides=2)


def test_what_lies_within_doubt_is_no_reason_to_leave_a_policy_out() -> None:
    win_rates = np.array([[0.5, 0.54], [0.46, 0.5]])
    np.testing.assert_allclose(nash(win_rates), [1.0, 0.0])
    np.testing.assert_allclose(nash(win_rates, doubts=np.full((2, 2), 0.05)), [0.5, 0.5], atol=1e-9)
    # With half that doubt the better one must weigh enough to gain no more than is in doubt: 0.04 * (1 - p) = 0.02.
    doubts = np.array([[0.0, 0.02], [0.02, 0.0]])
    np.testing.assert_allclose(nash(win_rates, doubts=doubts, favour=np.array([1.0, 9.0])), [1.0, 0.0], atol=1e-9)


def test_policies_that_nothing_tells_apart_share_their_weight_by_favour() -> None:
    np.testing.assert_allclose(nash(np.full((3, 3), 0.5), favour=np.array([1.0, 2.0, 5.0])), [1 / 8, 2 / 8, 5 / 8])
