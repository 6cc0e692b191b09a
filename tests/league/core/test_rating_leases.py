"""Rating leases: who is rated against whom, during training and after it."""

from __future__ import annotations

import dataclasses

from league.core.metagame.ratings import league_ratings, strongest
from league.core.state.league_config import RatingConfig
from tests.league.core.simulated_league import SimulatedLeague, three_roles


def rated(league: SimulatedLeague, policy: str) -> int:
    return int(league.state.rating_games.values[league.state.population.index[policy]])


def test_a_rating_match_is_of_the_least_rated_against_other_frozen_policies_and_records_nothing() -> None:
    config = dataclasses.replace(three_roles(), ratings=RatingConfig(bots=("bot:random",)))
    league = SimulatedLeague(config)
    league.confirm_directives()
    met = set()
    for _ in range(20):
        lease = league.grant("rate")
        assert lease.home is None
        (subject,) = set.intersection(*(set(assignment.policies) for assignment in lease.assignments))
        assert rated(league, subject) == min(
            rated(league, policy) for policy in ("bot:random", *league.state.snapshots)
        )
        for assignment in lease.assignments:
            assert len(set(assignment.policies)) == 2, "a policy against itself rates nothing"
            assert not any(assignment.records)
            assert not set(assignment.policies) & set(league.state.players)
            met |= set(assignment.policies)
        league.finish(lease)
    assert met == {"bot:random", *league.state.snapshots}


def perhaps_strongest(league: SimulatedLeague) -> set[str]:
    mains = {name for name, snapshot in league.state.snapshots.items() if snapshot.role == "main_agent"}
    rows = tuple(row for row in league_ratings(league.state) if row.policy in mains)
    top = strongest(rows)
    assert top is not None
    return {row.policy for row in rows if row.high >= top.low}


def test_after_training_those_that_may_be_strongest_are_rated_and_no_others() -> None:
    league = SimulatedLeague(
        three_roles(), strength=lambda policy: 0.3 * int(policy.rpartition("-s")[2]) if "-s" in policy else 0.0
    )
    league.run(300)
    for _ in range(20):
        league.finish(league.grant("rate"))
    for _ in range(20):
        even = perhaps_strongest(league)
        assert 2 <= len(even) < len(league.state.snapshots) / 4
        lease = league.grant("settle")
        named = [set(assignment.policies) for assignment in lease.assignments]
        assert set.union(*named) <= even
        assert min(rated(league, policy) for policy in even) in {
            rated(league, policy) for policy in set.intersection(*named)
        }
        league.finish(lease)


def test_after_training_all_are_rated_where_one_alone_may_be_the_strongest() -> None:
    league = SimulatedLeague(three_roles(), strength=lambda policy: 9.0 if policy == "main-0-s1" else 0.0)
    league.run(60)
    for _ in range(200):
        league.finish(league.grant("rate"))
    assert perhaps_strongest(league) == {"main-0-s1"}
    met: set[str] = set()
    for _ in range(60):
        lease = league.grant("settle")
        met |= {policy for assignment in lease.assignments for policy in assignment.policies}
        league.finish(lease)
    assert met == {*league.state.snapshots}


def test_exploiters_stronger_than_every_main_agent_do_not_displace_them_after_training() -> None:
    league = SimulatedLeague(three_roles(), strength=lambda policy: 0.0 if policy.startswith("main-0") else 3.0)
    league.run(150)
    for _ in range(80):
        league.finish(league.grant("rate"))
    assert max(league_ratings(league.state), key=lambda row: row.elo).policy.rpartition("-s")[0] != "main-0"
    for _ in range(10):
        lease = league.grant("settle")
        assert all(policy.startswith("main-0-s") for one in lease.assignments for policy in one.policies)
        league.finish(lease)
