"""The mixture over the snapshots of a league: from the games between them, by the league's own solver."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from simulated_league import SimulatedLeague, three_roles

from league.core.meta_game import league_mixture, snapshot_win_rates
from league.core.population_settings import MetaGameSettings


def test_the_mixture_of_a_league_is_over_its_snapshots_and_follows_strength() -> None:
    league = SimulatedLeague(three_roles(rating_share=0.5), strength=lambda policy: float(policy == "main-0-s3") * 3.0)
    assert league_mixture(league.state) == ()
    league.run(300)
    mixture = league_mixture(league.state)
    assert sum(weight for _, weight in mixture) == pytest.approx(1.0)
    assert {policy for policy, _ in mixture} <= set(league.state.snapshots)
    assert mixture[0][0] == "main-0-s3"
    assert mixture[0][1] > 0.8


def test_pairs_that_never_met_are_forecast_by_the_ratings() -> None:
    league = SimulatedLeague(three_roles(rating_share=0.0))
    league.run(100)
    np.testing.assert_allclose(snapshot_win_rates(league.state, list(league.state.snapshots)), 0.5)


def test_a_single_seat_league_exports_its_newest_snapshot() -> None:
    league = SimulatedLeague(three_roles(), teams=(0,))
    league.run(60)
    assert league_mixture(league.state) == ((list(league.state.snapshots)[-1], 1.0),)


def test_the_solver_of_the_settings_makes_the_exported_mixture() -> None:
    league = SimulatedLeague(three_roles(rating_share=0.5), strength=lambda policy: 0.1 * float(policy == "main-0-s3"))
    league.run(200)
    settings = league.state.settings
    assert settings is not None
    by_program = dict(league_mixture(league.state))
    league.state.settings = dataclasses.replace(settings, meta_game=MetaGameSettings(solver="replicator"))
    by_replicator = dict(league_mixture(league.state))
    assert len(by_replicator) > len(by_program), "a time average forgets nobody as fast as a program does"


def test_a_solver_that_does_not_exist_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match="nearest is 'replicator'"):
        MetaGameSettings(solver="replicater")
