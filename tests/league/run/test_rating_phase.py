"""Ratings are settled after training within their share of what was spent, and their steps are not training's."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import yaml

from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.core.state.commands import NothingToLease, RequestLease
from league.core.state.events import LeaseGranted
from league.core.state.state import LeagueState
from league.reports.status.report import read_status
from league.run.budget import Limits, Spent
from league.run.rating_phase import RatingAllowance, RatingPhase, rating_allowance
from league.runtime.protocol import PlayLease, Task
from tests.league.core.simulated_league import SimulatedLeague, three_roles
from tests.league.run.fake_runtime import STEPS_PER_LEASE, Bench
from tests.league.tiny_runs import tiny

UNTIL = Spent(seconds=200.0, core_seconds=400.0, env_steps=101_000)


def config_of(*, budget: dict[str, float], **ratings: float) -> RunConfig:
    """12 envs, leases of 16 steps."""
    league = {**tiny()["league"], "ratings": {"final_leases": 10, **ratings}}
    return parse_config(yaml.safe_dump(tiny(league=league, budget=budget)), source="test")


def test_the_allowance_is_a_share_of_the_steps_and_of_the_time_in_leases_that_are_the_shorter_for_it() -> None:
    since = Spent(seconds=100.0, core_seconds=200.0, env_steps=1_000)
    config = config_of(budget={"seconds": 1_000.0}, final_share=0.01)
    allowance = rating_allowance(config, since=since, until=UNTIL, limits=Limits())
    # A hundredth of 100,000 steps is 1,000, a tenth of it for each lease of 12 envs: 8 steps.
    assert allowance == RatingAllowance(leases=10, steps=8, lease_steps=96, seconds=1.0, core_seconds=2.0)


def test_leases_are_no_longer_than_configured_and_fewer_where_steps_are_scarce() -> None:
    many = rating_allowance(
        config_of(budget={"seconds": 9.0}, final_share=0.5), since=Spent(), until=UNTIL, limits=Limits()
    )
    assert (many.leases, many.steps) == (10, 16)
    few = rating_allowance(
        config_of(budget={"seconds": 9.0}, final_share=0.0005), since=Spent(), until=UNTIL, limits=Limits()
    )
    assert (few.leases, few.steps) == (4, 1)
    assert few.leases * few.lease_steps <= 0.0005 * UNTIL.env_steps
    none = rating_allowance(
        config_of(budget={"seconds": 9.0}, final_share=0.0), since=Spent(), until=UNTIL, limits=Limits()
    )
    assert none.leases == 0


@pytest.mark.parametrize(
    ("budget", "limits", "timed"),
    [
        ({"env_steps": 10}, Limits(), False),
        ({"seconds": 10.0}, Limits(env_steps=10), False),
        ({"env_steps": 10}, Limits(seconds=1.0), True),
        ({"core_seconds": 10.0}, Limits(), True),
    ],
)
def test_time_counts_only_where_time_limited_the_training(
    budget: dict[str, float], limits: Limits, timed: bool
) -> None:
    allowance = rating_allowance(config_of(budget=budget), since=Spent(), until=UNTIL, limits=limits)
    assert (allowance.seconds is not None) is timed
    assert (allowance.core_seconds is not None) is timed


def test_several_idle_hosts_are_not_given_more_leases_than_there_are() -> None:
    phase = RatingPhase(RatingAllowance(2, 4, 48, None, None), LeagueState(), begun=Spent())
    assert phase.request("a") == RequestLease("a", "settle", steps=4)
    assert phase.request("b") == RequestLease("b", "settle", steps=4)
    assert phase.request("c") is None


def test_the_phase_ends_with_its_time_and_where_nothing_moves() -> None:
    state, begun = LeagueState(), Spent(10.0, 10.0, 0)
    phase = RatingPhase(RatingAllowance(9, 4, 48, seconds=2.0, core_seconds=None), state, begun=begun)
    assert phase.continues(state, begun)
    state.next_lease_id += 1
    assert phase.continues(state, Spent(11.9, 99.0, 0))
    state.next_lease_id += 1
    assert not phase.continues(state, Spent(12.0, 10.0, 0)), "its time is over"
    idle = RatingPhase(RatingAllowance(9, 4, 48, None, None), state, begun=begun)
    assert idle.continues(state, begun)
    assert not idle.continues(state, begun), "a turn granted nothing and nothing is in hand"


def test_steps_of_rating_games_after_training_are_shown_as_such_and_not_counted_as_training(tmp_path: Path) -> None:
    league = {**tiny()["league"], "ratings": {"step_fraction": 0.2, "final_leases": 5, "final_share": 1.0}}
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000}, league=league)
    bench.daemon(Limits()).run()
    totals = bench.league.state.totals
    leases = [task.lease for task in bench.runtime.of(PlayLease) if isinstance(task, PlayLease)]
    assert sum(lease.after_training for lease in leases) == 5
    assert any(lease.home is None and not lease.after_training for lease in leases), "rated while training went on"
    trained = STEPS_PER_LEASE * (len(leases) - 5)
    assert (totals.env_steps, totals.settling_steps) == (trained, 5 * STEPS_PER_LEASE)
    status = read_status(bench.folder.path)
    assert (status.league.env_steps, status.league.settling_steps) == (trained, 5 * STEPS_PER_LEASE)
    assert f"{trained:,} env steps and 500 of rating games after training" in status.text()


def test_a_slow_game_is_rated_no_longer_than_its_share_of_the_time(tmp_path: Path) -> None:
    league = {**tiny()["league"], "ratings": {"step_fraction": 0.0, "final_leases": 400}}
    bench = Bench(tmp_path / "run", budget={"seconds": 200.0}, league=league)
    began: list[float] = []

    def note(task: Task) -> None:
        if isinstance(task, PlayLease) and task.lease.after_training:
            began.append(bench.runtime.now)

    bench.runtime.watch = note
    bench.daemon(Limits()).run()
    assert 1 <= len(began) <= 12
    assert began[-1] - began[0] <= 0.05 * 200.0 + 2.0


def test_the_leases_after_training_bring_no_more_than_their_share_of_the_steps(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000})
    bench.daemon(Limits()).run()
    leases = [task.lease for task in bench.runtime.of(PlayLease) if isinstance(task, PlayLease)]
    steps = sum(lease.steps * lease.num_envs for lease in leases if lease.after_training)
    assert 0 < steps <= 0.05 * bench.league.state.totals.env_steps


def test_there_is_nothing_to_settle_in_a_game_of_one_team_and_nothing_else_is_granted_instead() -> None:
    alone = SimulatedLeague(three_roles(), teams=(0,))
    alone.confirm_directives()
    with pytest.raises(NothingToLease, match="no two frozen policies"):
        alone.ask(RequestLease("host", "settle"))
    pair = SimulatedLeague(three_roles())
    pair.confirm_directives()
    (granted,) = pair.ask(RequestLease("host", "settle", steps=3))
    assert isinstance(granted, LeaseGranted)
    assert (granted.lease.steps, granted.lease.home, granted.lease.after_training) == (3, None, True)
    assert dataclasses.asdict(pair.grant("rate"))["after_training"] is False
