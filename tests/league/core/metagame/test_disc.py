"""The disc plot of a payoff, against the definition of its area and a slow search for the best plane."""

from __future__ import annotations

import numpy as np
import pytest

from league.core.metagame.disc import disc_of


def game_of(points: np.ndarray) -> np.ndarray:
    """Win rates whose gains are twice the areas of the triangles with the origin."""
    return np.array([[0.5 + a[0] * b[1] - a[1] * b[0] for b in points] for a in points])


def best_plane(gains: np.ndarray) -> np.ndarray:
    """The best approximation of rank two, by powers of the squared matrix on a random vector."""
    rng = np.random.default_rng(1)
    first = rng.normal(size=len(gains))
    for _ in range(3_000):
        first = -gains @ (gains @ first)
        first /= np.linalg.norm(first)
    second = gains @ first
    size = np.linalg.norm(second)
    second /= size
    return size * (np.outer(second, first) - np.outer(first, second))


def test_points_of_a_game_that_is_a_disc_stand_for_its_very_win_rates() -> None:
    points = np.random.default_rng(0).normal(size=(7, 2)) * 0.2
    disc = disc_of(game_of(points))
    np.testing.assert_allclose(disc.gains(), game_of(points) - 0.5, atol=1e-12)
    assert disc.explained == pytest.approx(1.0)


def test_any_game_is_drawn_in_its_best_plane() -> None:
    rng = np.random.default_rng(2)
    rates = rng.uniform(size=(9, 9))
    gains = 0.5 * (rates - rates.T)
    disc = disc_of(rates)
    expected = best_plane(gains)
    np.testing.assert_allclose(disc.gains(), expected, atol=1e-6)
    assert disc.explained == pytest.approx((expected**2).sum() / (gains**2).sum(), abs=1e-6)
    assert 0.1 < disc.explained < 0.9


def test_a_ring_goes_round_the_centre_and_everyone_beats_the_next_counter_clockwise() -> None:
    rates = np.array([[0.5, 1.0, 0.0], [0.0, 0.5, 1.0], [1.0, 0.0, 0.5]])
    disc = disc_of(rates)
    angles = np.unwrap(np.arctan2(disc.points[:, 1], disc.points[:, 0]))
    np.testing.assert_allclose(np.diff(angles), 2.0 * np.pi / 3.0)


def test_a_ladder_lies_on_one_side_of_the_centre_with_its_mean_on_the_first_axis() -> None:
    skill = np.linspace(-1.0, 1.0, 6)
    disc = disc_of(1.0 / (1.0 + np.exp(skill[None, :] - skill[:, None])))
    assert (disc.points[:, 0] > 0.0).all()
    assert disc.points[:, 1].mean() == pytest.approx(0.0, abs=1e-12)
    assert (np.diff(np.arctan2(disc.points[:, 1], disc.points[:, 0])) < 0.0).all()


def test_a_game_in_which_nobody_beats_anybody_is_one_point() -> None:
    disc = disc_of(np.full((3, 3), 0.5))
    assert not disc.points.any() and disc.explained == 1.0


def test_a_table_that_is_no_square_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\[2, 3\]"):
        disc_of(np.zeros((2, 3)))
