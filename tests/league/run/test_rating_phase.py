"""Ratings are settled after training within their share of what was spent, and their steps are not training's."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import pytest
import yaml

from league.config.loading import parse_config
from league.config.run_config import RunConfig
from league.core.state.commands import ChangeLeague, NothingToLease, RequestLease
from league.core.state.events import ConfigChange, LeaseGranted
from league.hosts.protocol import HostLost, PlayLease, Task
from league.run.budget import Limits, Spent
from league.run.daemon import BUDGET
from league.run.rating_phase import RatingAllowance, RatingPhase, rating_allowance
from league.see.reports.status.status_report import read_status
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


def test_several_idle_hosts_are_not_given_more_leases_than_there_are_and_a_refused_one_takes_none() -> None:
    leases = itertools.count(7)
    next_lease_id = next(leases)
    phase = RatingPhase(RatingAllowance(2, 4, 48, None, None), next_lease_id=lambda: next_lease_id, begun=Spent())
    assert phase.request("refused") == RequestLease("refused", "settle", steps=4)
    assert phase.request("a") == RequestLease("a", "settle", steps=4)
    next_lease_id = next(leases)
    assert phase.request("b") == RequestLease("b", "settle", steps=4)
    next_lease_id = next(leases)
    assert phase.request("c") is None
    assert not phase.continues(Spent(), leases=(7, 8))


def test_the_phase_ends_with_its_time_and_where_nothing_can_be_rated() -> None:
    begun = Spent(10.0, 10.0, 0)
    phase = RatingPhase(RatingAllowance(9, 4, 48, 2.0, None), next_lease_id=lambda: 1, begun=begun)
    assert phase.continues(begun, leases=())
    assert phase.continues(Spent(11.9, 99.0, 0), leases=()), "no host has been free so far"
    assert not phase.continues(Spent(12.0, 10.0, 0), leases=()), "its time is over"
    phase.request("a")
    assert phase.continues(begun, leases=(0,))
    assert not phase.continues(begun, leases=()), "the league refused, and nothing is in hand"


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


MANY = {**tiny()["league"], "ratings": {"step_fraction": 0.0, "final_leases": 20, "final_share": 1.0}}
TWO_ACTORS = {"kind": "ray", "actor_hosts": 2, "learner_hosts": 1}


def num_rated(bench: Bench) -> int:
    """Rating leases after training that were handed to a host."""
    return sum(isinstance(task, PlayLease) and task.lease.after_training for task in bench.runtime.tasks)


@pytest.mark.parametrize("exact", [False, True])
def test_a_resumed_run_whose_budget_is_spent_waits_for_its_hosts_and_then_rates(exact: bool, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", exact=exact, budget={"env_steps": 1_000}, league=MANY)
    daemon = bench.daemon(Limits())
    bench.runtime.watch = lambda task: setattr(daemon, "stop_requested", num_rated(bench) > 0)
    daemon.run()
    bench.league.close()
    again = Bench(tmp_path / "run", exact=exact, budget={"env_steps": 1_000}, league=MANY)
    again.runtime.delay = 20
    assert again.daemon(Limits()).run() == BUDGET
    assert num_rated(again) == 20


def test_a_learner_host_that_is_lost_as_the_budget_ends_only_delays_the_rating_games(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000}, league=MANY)

    def lose(task: Task) -> None:
        if num_rated(bench) == 3:
            bench.runtime.lose("learner-0", "learner_host")

    bench.runtime.watch = lose
    bench.daemon(Limits()).run()
    assert num_rated(bench) == 20
    assert bench.seen[-1].troubles.hosts_lost >= 1


def test_rating_games_that_no_host_can_play_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000}, league=MANY)

    def lose(task: Task) -> None:
        if num_rated(bench) == 3:
            bench.runtime.report(HostLost("actor-0", "actor_host", "it was killed"))

    bench.runtime.watch = lose
    assert bench.daemon(Limits()).run() == BUDGET
    assert bench.said[-1] == "No host could play rating games for 180 s: they are left out."


def test_a_parked_host_takes_no_rating_games_from_the_others(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000}, league=MANY, runtime=TWO_ACTORS)
    bench.runtime.report(*bench.runtime.starts("actor-1"))
    bench.league.execute(ChangeLeague((ConfigChange("hosts.actor-1", '"working"', '"parked"'),), by="me"))
    bench.league.commit()
    bench.daemon(Limits()).run()
    assert num_rated(bench) == 20
