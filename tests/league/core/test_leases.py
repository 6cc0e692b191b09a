"""Granting, answering and losing leases."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from league.core.state.commands import (
    ExpireLease,
    FinishLease,
    NothingToLease,
    Refused,
    RequestLease,
    RequestReset,
    StartRun,
    StopRun,
)
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.records import Lease
from league.core.state.state import digest
from tests.league.core.simulated_league import QUICK_GATE, SimulatedLeague, env_steps_of, outcome_of, three_roles

SHAPES = {"single": (0,), "pair": (0, 1), "three": (0, 1, 2), "two against two": (0, 1, 0, 1), "one team": (0, 0)}
NEVER = GateConfig(min_steps=10**9, timeout_steps=10**9)


def ready(config: LeagueConfig | None = None, *, teams: tuple[int, ...] = (0, 1)) -> SimulatedLeague:
    league = SimulatedLeague(config or three_roles(), teams=teams)
    league.confirm_directives()
    return league


def refused(league: SimulatedLeague, command: object) -> str:
    """The reason, after checking that the state is untouched."""
    before = digest(league.state)
    with pytest.raises(Refused) as caught:
        league.ask(command)  # type: ignore[arg-type]
    assert digest(league.state) == before
    return str(caught.value)


def answer(lease: Lease, league: SimulatedLeague, **changes: object) -> FinishLease:
    return FinishLease(
        **{"lease_id": lease.lease_id, "token": 1, "env_steps": 9, "outcomes": league.play(lease), **changes}
    )


def test_env_steps_follow_the_shares() -> None:
    league = ready(three_roles(gate=NEVER, rating_fraction=0.1))
    league.run(400, steps_per_lease=137)
    steps = list(env_steps_of(league.state).values())
    rating = league.state.fair_share.rating_env_steps
    total = sum(steps) + rating
    assert rating / total == pytest.approx(0.1, abs=0.01)
    assert [s / sum(steps) for s in steps] == pytest.approx([0.5, 0.25, 0.25], abs=0.01)


def test_open_leases_count_toward_the_shares() -> None:
    league = ready(three_roles(gate=NEVER, rating_fraction=0.0))
    homes = [league.grant().home for _ in range(40)]
    assert [homes.count(name) for name in league.state.players] == [20, 10, 10]


def test_a_lost_lease_gives_its_share_back() -> None:
    league = ready(three_roles(gate=NEVER, rating_fraction=0.0))
    lost = league.grant()
    league.ask(ExpireLease(lost.lease_id, "host died"))
    assert league.grant().home == lost.home
    assert league.state.totals.leases_expired == 1


@pytest.mark.parametrize("teams", SHAPES.values(), ids=SHAPES)
def test_the_home_sits_in_every_team_equally_often(teams: tuple[int, ...]) -> None:
    league = ready(teams=teams)
    league.run(30)
    for _ in range(30):
        lease = league.grant()
        assert sum(assignment.probability for assignment in lease.assignments) == pytest.approx(1.0)
        home = lease.home or lease.assignments[0].policies[0]
        against: dict[frozenset[str], list[tuple[int, ...]]] = {}
        for assignment in lease.assignments:
            assert set(assignment.policies) <= set(league.state.population.index)
            assert home in assignment.policies
            seats = tuple(seat for seat, policy in enumerate(assignment.policies) if policy == home)
            assert len({teams[seat] for seat in seats}) in (1, len(set(teams)))
            recorded = tuple(seat for seat, records in enumerate(assignment.records) if records)
            assert recorded == (seats if lease.home is not None else ())
            against.setdefault(frozenset(assignment.policies), []).append(seats)
        for policies, seated in against.items():
            sides = len(set(teams)) if len(policies) > 1 else 1
            assert len(seated) == len(set(seated)) == sides


def test_a_single_seat_game_has_leases_without_opponents() -> None:
    league = ready(teams=(0,))
    league.run(20)
    lease = league.grant()
    assert [assignment.policies for assignment in lease.assignments] == [(lease.home,)]
    assert league.grant("rate").home is not None, "there is nothing to rate"


def test_training_and_bots_do_not_mix() -> None:
    config = dataclasses.replace(three_roles(), ratings=RatingConfig(step_fraction=0.0, bots=("bot:random",)))
    league = ready(config)
    league.run(60)
    assert league.state.rating_games.values[league.state.population.index["bot:random"]] == 0


def test_a_lease_is_answered_once() -> None:
    league = ready()
    lease = league.grant()
    league.finish(lease)
    assert "answered" in refused(league, answer(lease, league))
    assert "answered" in refused(league, ExpireLease(lease.lease_id, "late"))
    assert "never granted" in refused(league, answer(dataclasses.replace(lease, lease_id=99), league))


def test_an_expired_lease_cannot_be_answered() -> None:
    league = ready()
    lease = league.grant()
    league.ask(ExpireLease(lease.lease_id, "host died"))
    assert "given up" in refused(league, answer(lease, league))


def test_a_restart_fences_off_the_leases_before_it() -> None:
    league = ready()
    lease = league.grant()
    league.ask(StartRun())
    assert league.state.token == 2
    assert not league.state.leases
    refused(league, answer(lease, league))
    fresh = league.grant()
    assert "run 1" in refused(league, answer(fresh, league, token=1))
    league.ask(answer(fresh, league, token=2))


def test_a_stopped_league_grants_nothing() -> None:
    league = ready()
    league.grant()
    league.ask(StopRun("budget spent"))
    assert not league.state.leases
    assert "no run" in refused(league, RequestLease("host"))
    assert "no run" in refused(league, StopRun("again"))


def test_no_player_is_leased_before_its_first_weights_are_frozen() -> None:
    league = SimulatedLeague(three_roles())
    with pytest.raises(NothingToLease):
        league.grant()


def good_outcome(lease: Lease) -> dict[str, object]:
    return {"policies": lease.assignments[0].policies, "games": 3, "winners": [0, 1, None]}


@pytest.mark.parametrize(
    "change",
    [
        {"games": 4},
        {"games": -1},
        {"aborted": -1},
        {"decisions": -1},
        {"truncated": 4},
        {"truncated": -1},
        {"wins": ((0, 2), (1, 0))},
        {"wins": ((0, -1), (3, 0))},
        {"draws": ((0, 1), (0, 0))},
        {"wins": ((0, 1),)},
        {"wins": ()},
        {"draws": ((0,), (1,))},
        {"return_sums": (0.0,)},
        {"return_sums": (0.0, float("nan"))},
        {"policies": ("main-0", "nobody")},
        {"policies": ("main-0",)},
        {"policies": ("main-exploiter-0", "main-exploiter-0")},
    ],
    ids=str,
)
def test_counts_that_no_games_can_have_are_refused(change: dict[str, object]) -> None:
    league = ready()
    lease = league.grant()
    assert lease.home == "main-0"
    outcome = outcome_of(lease.assignments[0].policies, (0, 1), games=3, winners=[0, 1, None])
    refused(league, answer(lease, league, outcomes=(dataclasses.replace(outcome, **change),)))  # type: ignore[arg-type]
    league.ask(answer(lease, league, outcomes=(outcome,)))
    assert league.state.totals.games == 3


ORDERED = {
    "three": ((0, 1, 2), (0, 2, None), (((0, 0, 0), 1), ((0, 1, 1), 1), ((1, 1, 0), 1))),
    "two against two": ((1, 0, 1, 0), (1, 0, 1), (((0, 1), 2), ((1, 0), 1))),
}
BAD_ORDERS = {
    "none": lambda placements: (),
    "of fewer games": lambda placements: placements[1:],
    "unsorted": lambda placements: placements[::-1],
    "one twice": lambda placements: (placements[0], *placements),
    "one of no game": lambda placements: (*placements, ((9,) * len(placements[0][0]), 0)),
    "of other games": lambda placements: ((placements[0][0], 3),),
    "of too few teams": lambda placements: tuple((ranks[:-1], times) for ranks, times in placements),
    "of too many teams": lambda placements: tuple(((*ranks, 0), times) for ranks, times in placements),
    "no ranks": lambda placements: tuple((tuple(rank + 1 for rank in ranks), times) for ranks, times in placements),
}


@pytest.mark.parametrize("change", BAD_ORDERS.values(), ids=BAD_ORDERS)
@pytest.mark.parametrize("shape", ORDERED.values(), ids=ORDERED)
def test_finishing_orders_that_the_counts_contradict_are_refused(shape: tuple, change: Callable) -> None:
    teams, winners, placements = shape
    league = ready(teams=teams)
    lease = league.grant()
    outcome = outcome_of(lease.assignments[0].policies, teams, games=3, winners=winners)
    assert outcome.placements == placements
    bad = dataclasses.replace(outcome, placements=change(placements))
    refused(league, answer(lease, league, outcomes=(bad,)))
    league.ask(answer(lease, league, outcomes=(outcome,)))
    assert league.state.totals.games == 3


@pytest.mark.parametrize("teams", [(0, 1), (0, 0)], ids=str)
def test_where_wins_say_it_all_there_are_no_orders(teams: tuple[int, ...]) -> None:
    league = ready(teams=teams)
    lease = league.grant()
    outcome = outcome_of(lease.assignments[0].policies, teams, games=1, winners=[0])
    assert outcome.placements == ()
    with_placement = dataclasses.replace(outcome, placements=(((0, 1), 1),))
    assert "no placements" in refused(league, answer(lease, league, outcomes=(with_placement,)))
    league.ask(answer(lease, league, outcomes=(outcome,)))


def test_ranks_leave_room_for_ties_before_them() -> None:
    """Two teams level in front put the third in rank 2, not 1."""
    league = ready(teams=(0, 1, 2))
    lease = league.grant()
    outcome = outcome_of(lease.assignments[0].policies, (0, 1, 2), games=1, winners=[None])
    level = dataclasses.replace(
        outcome, wins=((0, 0, 1), (0, 0, 1), (0, 0, 0)), draws=((0, 1, 0), (1, 0, 0), (0, 0, 0))
    )
    dense, right = (dataclasses.replace(level, placements=(((0, 0, last), 1),)) for last in (1, 2))
    assert "finished before" in refused(league, answer(lease, league, outcomes=(dense,)))
    league.ask(answer(lease, league, outcomes=(right,)))


def test_negative_env_steps_are_refused() -> None:
    league = ready()
    refused(league, answer(league.grant(), league, env_steps=-1))


def test_a_rating_match_cannot_report_a_learning_player() -> None:
    league = ready()
    lease = league.grant("rate")
    outcome = outcome_of(("main-0", "main-0-s0"), (0, 1), games=1, winners=[0])
    assert "still learn" in refused(league, answer(lease, league, outcomes=(outcome,)))


def test_a_game_may_end_under_a_later_lease_of_its_home() -> None:
    league = ready(LeagueConfig(players=(PlayerConfig(gate=QUICK_GATE),)))
    league.finish(league.grant("train"))
    lease = league.grant("train")
    earlier = outcome_of(("main-0", "main-0-s0"), (0, 1), games=2, winners=[0, 0])
    league.ask(answer(lease, league, outcomes=(earlier,)))
    assert league.state.payoff.seat_totals(0, 1)[0].tolist()[0] >= 2


def test_aborted_games_are_in_no_other_count() -> None:
    league = ready()
    lease = league.grant()
    outcome = dataclasses.replace(outcome_of(lease.assignments[0].policies, (0, 1), games=0, winners=[]), aborted=5)
    league.ask(answer(lease, league, outcomes=(outcome,)))
    assert (league.state.totals.games, league.state.totals.aborted) == (0, 5)
    assert len(league.state.payoff) == 0


def test_games_that_a_time_limit_ended_are_counted_for_the_home_and_for_the_league() -> None:
    league = ready()
    for purpose in ("train", "rate"):
        lease = league.grant(purpose)
        outcome = outcome_of(lease.assignments[0].policies, (0, 1), games=4, winners=[0, 1, None, None])
        league.ask(answer(lease, league, outcomes=(dataclasses.replace(outcome, truncated=2),)))
    state = league.state
    assert state.totals.truncated == 4
    assert [player.truncated for player in state.players.values()] == [2, 0, 0], "rating matches are nobody's own"


def test_self_play_shows_what_a_seat_is_worth_and_no_draw_is_invented() -> None:
    league = ready()
    lease = league.grant()
    outcome = outcome_of(("main-0", "main-0"), (0, 1), games=10, winners=[0] * 7 + [1] * 3)
    league.ask(answer(lease, league, outcomes=(outcome,)))
    number = league.state.players["main-0"].policy
    assert league.state.payoff.seat_totals(number, number).tolist() == [[7, 0, 3], [3, 0, 7]]


def learning_from_the_past(number: int) -> SimulatedLeague:
    """Main learns from so many of its newest snapshots; its exploiter from none. Both have some."""
    config = three_roles(rating_fraction=0.0)
    main = dataclasses.replace(config.players[0], learn_from_past=number, opponents_per_lease=8)
    league = ready(dataclasses.replace(config, players=(main, *config.players[1:])))
    league.run(120)
    league.confirm_directives()
    return league


def recorded_others(league: SimulatedLeague, player: str) -> set[str]:
    """The others whose decisions some leases of a player record."""
    found: set[str] = set()
    for _ in range(150):
        lease = league.grant()
        if lease.home == player:
            for row in lease.assignments:
                seats = zip(row.policies, row.records, strict=True)
                found |= {policy for policy, records in seats if records and policy != player}
        league.ask(ExpireLease(lease.lease_id, "not played"))
    return found


@pytest.mark.parametrize("number", [0, 2, 1000])
def test_a_player_learns_from_its_newest_snapshots_where_it_is_asked_to(number: int) -> None:
    league = learning_from_the_past(number)
    own = [name for name, info in league.state.snapshots.items() if info.player == "main-0"]
    assert len(own) > 3
    found = recorded_others(league, "main-0")
    assert found <= set(own[len(own) - number :] if number else ())
    assert bool(found) == bool(number)
    assert not recorded_others(league, "main-exploiter-0")


def test_what_was_before_a_reset_is_not_learnt_from() -> None:
    league = learning_from_the_past(1000)
    before = set(league.state.snapshots)
    league.ask(RequestReset("main-0"))
    league.confirm_directives()
    assert not recorded_others(league, "main-0") & before


def test_a_player_that_is_named_gets_its_lease_whatever_the_shares_say() -> None:
    league = ready(three_roles(gate=NEVER, rating_fraction=0.0))
    named = [league.grant("train", player="league-exploiter-0").home for _ in range(5)]
    assert named == ["league-exploiter-0"] * 5
    assert league.grant("train").home != "league-exploiter-0"


def test_a_player_that_is_named_must_be_there_and_free() -> None:
    league = SimulatedLeague(three_roles())
    assert "main-0 waits for its learner" in refused(league, RequestLease("host", "train", player="main-0"))
    assert "no player 'mian-0'" in refused(league, RequestLease("host", "train", player="mian-0"))
