"""The game between snapshots: what is known of their win rates, and how sure."""

from __future__ import annotations

import numpy as np
import pytest

from league.core.metagame.meta_game import estimated_win_rates, snapshot_win_rates
from league.core.state.population_config import MetaGameConfig
from tests.league.core.simulated_league import SimulatedLeague, three_roles


def test_pairs_that_never_met_are_forecast_by_the_ratings() -> None:
    league = SimulatedLeague(three_roles(rating_fraction=0.0))
    league.run(100)
    names = list(league.state.snapshots)
    np.testing.assert_allclose(snapshot_win_rates(league.state, names), 0.5)
    _, deviations = estimated_win_rates(league.state, names)
    assert deviations.max() == 0.5, "without a game anything may be"


def test_deviations_shrink_with_games_and_hold_how_far_estimates_are_off() -> None:
    def played(rating_fraction: float) -> tuple[np.ndarray, np.ndarray]:
        league = SimulatedLeague(three_roles(rating_fraction=rating_fraction))
        league.run(400)
        return estimated_win_rates(league.state, list(league.state.snapshots)[:20])

    few, many = played(0.1), played(0.8)
    assert many[1].mean() < 0.7 * few[1].mean()
    for win_rates, deviations in (few, many):
        np.testing.assert_allclose(deviations, deviations.T)
        assert np.all(deviations.diagonal() == 0.0)
        # All are equal in truth: most estimates lie within two deviations of a half.
        assert np.mean(np.abs(win_rates - 0.5) <= 2.0 * deviations) > 0.8


def test_a_solver_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="nearest is 'replicator'"):
        MetaGameConfig(solver="replicater")
