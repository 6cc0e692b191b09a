"""The generator: the accepted snapshot makes the games, and a candidate is judged once by its rating games."""

from __future__ import annotations

import pytest

from league.core.league import apply
from league.core.matchmaking.generator import Generator, candidate_of, generator_of
from league.core.retention import needed_snapshots
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.state import LeagueState
from tests.league.core.simulated_league import SimulatedLeague

GATE = GateConfig(min_steps=1_000, timeout_steps=2_000)


def league_of(strength=lambda policy: 0.0, *, teams: tuple[int, ...] = (0, 1), **options) -> SimulatedLeague:
    player = PlayerConfig(matchmaker={"kind": "generator", **options}, gate=GATE)
    config = LeagueConfig(players=(player,), ratings=RatingConfig(step_fraction=0.3))
    league = SimulatedLeague(config, strength=strength, teams=teams)
    league.confirm_directives()
    return league


def rise(policy: str) -> float:
    """Each snapshot beats the one before it in 73 % of games."""
    return float(policy.rpartition("-s")[2]) if "-s" in policy else 0.0


def test_the_accepted_snapshot_plays_all_seats_and_the_player_learns_from_all_of_them():
    league = league_of()
    lease = league.grant("train")
    (assignment,) = lease.assignments
    assert lease.home == "main-0"
    assert assignment.policies == ("main-0-s0", "main-0-s0") and assignment.records == (True, True)
    league.finish(lease)  # its answer counts, though the home has no seat in it
    assert league.state.players["main-0"].games == 20


def test_a_candidate_is_accepted_after_400_games_at_more_than_55_per_cent():
    rule = Generator()
    assert rule.verdict(score=399.0, games=399) is None
    assert rule.verdict(score=220.0, games=400) is False  # 55 % is not more than 55 %
    assert rule.verdict(score=220.5, games=400) is True


def test_a_stronger_candidate_takes_over_and_a_weaker_one_never_does():
    rising, falling = league_of(rise, games=100), league_of(lambda policy: -2 * rise(policy), games=100)
    for league in (rising, falling):
        league.run(400)
    state = rising.state
    held = state.generations["main-0"]
    assert held.num_judged > 2 and held.accepted != "main-0-s0"
    assert generator_of(state, "main-0") == held.accepted
    assert rising.grant("train").assignments[0].policies == (held.accepted,) * 2
    down = falling.state.generations["main-0"]
    assert down.num_judged > 2 and down.num_accepted == 0 and down.accepted == "main-0-s0"


def test_rating_games_are_of_the_candidate_against_what_it_would_replace():
    league = league_of(games=60)
    while candidate_of(league.state, "main-0") is None:
        league.run(1)
    name = candidate_of(league.state, "main-0")
    lease = league.grant("rate")
    assert {frozenset(row.policies) for row in lease.assignments} == {frozenset((name, "main-0-s0"))}
    league.finish(lease)
    league.run(0)
    assert candidate_of(league.state, "main-0") == name  # it goes on with the one that has games


def test_the_verdict_is_a_fold_of_the_journal():
    league = league_of(rise, games=100)
    league.run(300)
    again = LeagueState()
    for event in league.journal:
        apply(again, event)
    assert again.generations == league.state.generations and again.generations["main-0"].num_judged > 1


def test_what_makes_the_games_and_what_may_next_is_kept():
    league = league_of(games=10**6)
    league.run(200)
    kept = needed_snapshots(league.state)
    assert kept["main-0-s0"] and candidate_of(league.state, "main-0") in kept


def test_an_e_value_accepts_early_and_rarely_without_reason():
    rule = Generator(confidence=0.95)
    assert rule.verdict(score=40.0, games=50) is True and Generator().verdict(score=40.0, games=50) is None
    assert rule.verdict(score=26.0, games=50) is None
    assert rule.verdict(score=205.0, games=400) is False


def test_a_game_of_one_team_has_a_generator_too_but_nothing_to_judge_by():
    league = league_of(teams=(0,))
    assert league.grant("train").assignments[0].policies == ("main-0-s0",)


@pytest.mark.parametrize(("option", "value"), [("games", 0), ("win_rate", 1.0), ("confidence", -0.1)])
def test_options_out_of_range_are_refused(option, value):
    with pytest.raises(ValueError, match=option):
        Generator(**{option: value})
