"""Ratings that are shown are made beside the daemon's loop: nothing waits for them, and they take a bounded share."""

from __future__ import annotations

import threading

import pytest

from league.core.metagame.ratings import league_ratings
from league.run.monitor.observer import BackgroundRatings, Job
from tests.league.core.simulated_league import SimulatedLeague, three_roles


class Clock:
    """Seconds, moved by hand; a job may take some."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def rated() -> SimulatedLeague:
    """A league with rating games."""
    league = SimulatedLeague(three_roles(rating_fraction=0.5), strength=lambda policy: float(len(policy) % 3))
    league.run(60)
    return league


def play_one(league: SimulatedLeague) -> None:
    league.finish(league.grant("rate"))


def test_a_refresh_returns_before_the_ratings_are_made_and_rates_the_games_of_when_it_began(
    rated: SimulatedLeague,
) -> None:
    jobs: list[Job] = []
    ratings = BackgroundRatings(every_s=2.0, start=jobs.append, monotonic=Clock())
    then = {row.policy: row for row in league_ratings(rated.state)}
    ratings.refresh(rated.state)
    assert ratings.rows == {}, "nobody has made them yet"
    play_one(rated)
    assert {row.policy: row for row in league_ratings(rated.state)} != then
    ratings.refresh(rated.state)
    assert len(jobs) == 1, "one at a time"
    jobs[0]()
    assert ratings.rows == then


def test_games_that_are_rated_already_are_not_rated_again(rated: SimulatedLeague) -> None:
    clock = Clock()
    jobs: list[Job] = []
    ratings = BackgroundRatings(every_s=2.0, start=jobs.append, monotonic=clock)
    ratings.refresh(rated.state)
    jobs[0]()
    clock.now = 3.0
    ratings.refresh(rated.state)
    assert len(jobs) == 1
    play_one(rated)
    clock.now = 6.0
    ratings.refresh(rated.state)
    assert len(jobs) == 2


def test_a_refresh_that_took_long_is_followed_by_a_long_pause(
    rated: SimulatedLeague, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    made: list[float] = []

    def three_seconds(inputs: object) -> tuple[()]:
        made.append(clock.now)
        clock.now += 3.0
        return ()

    monkeypatch.setattr("league.run.monitor.observer.rate", three_seconds)
    ratings = BackgroundRatings(every_s=2.0, start=lambda job: job(), monotonic=clock)
    ratings.refresh(rated.state)
    play_one(rated)
    clock.now = 59.0
    ratings.refresh(rated.state)
    assert made == [0.0], "three seconds of work are a twentieth of sixty"
    clock.now = 61.0
    ratings.refresh(rated.state)
    assert made == [0.0, 61.0]


def test_nothing_to_compare_is_no_ratings() -> None:
    alone = SimulatedLeague(three_roles(), teams=(0,))
    ratings = BackgroundRatings(every_s=2.0, start=lambda job: job(), monotonic=Clock())
    ratings.refresh(alone.state)
    assert ratings.rows == {}


def test_by_itself_it_works_in_a_thread_of_its_own(rated: SimulatedLeague) -> None:
    ratings = BackgroundRatings(every_s=2.0)
    ratings.refresh(rated.state)
    for thread in threading.enumerate():
        if thread.name == "ratings":
            thread.join(timeout=30.0)
    assert ratings.rows == {row.policy: row for row in league_ratings(rated.state)}
