"""Whom the simpler populations meet, and how qualities and mixtures follow the games."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from league.core.directives import view_of
from league.core.leases import with_fixed_opponents
from league.core.matchmaking.matchmakers import softmax
from league.core.matchmaking.roles import matchmaker_of
from league.core.metagame.meta_game import mixture_weights
from league.core.metagame.ratings import league_ratings
from league.core.state.built_ins import MATCHMAKERS, load, options_of
from league.core.state.commands import FinishLease, ImportPolicy, Refused
from league.core.state.events import MixtureSolved, PlayerReset
from league.core.state.league_config import (
    GateConfig,
    LeagueConfig,
    PlayerConfig,
    RatingConfig,
)
from league.core.state.population_config import FixedOpponentConfig, MetaGameConfig, PopulationConfig
from league.core.state.records import AssignmentOutcome, Lease
from league.policies.nash_export import league_mixture
from tests.league.core.own_components import MATCHMAKER
from tests.league.core.simulated_league import SimulatedLeague, outcome_of
from tests.oracles.quality_per_game import chances_after as per_game

DIGEST = "1" * 64


def league_of(
    matchmaker: str,
    *,
    snapshots: int = 4,
    teams: tuple[int, ...] = (0, 1),
    count: int = 1,
    opponents_per_lease: int = 4,
    **matchmaking: float,
) -> SimulatedLeague:
    """A league of `count` players with so many snapshots each."""
    given = {"self_play": 0.25, "pfsp": 0.75, "verification": 0.0, **matchmaking}
    known = options_of(load(MATCHMAKERS, matchmaker, what="matchmaker")())  # type: ignore[operator]
    options = {name: value for name, value in given.items() if name in known}
    gate = GateConfig(min_steps=1_000, timeout_steps=1_000)
    group = PlayerConfig(
        count=count, matchmaker={"kind": matchmaker, **options}, opponents_per_lease=opponents_per_lease, gate=gate
    )
    league = SimulatedLeague(LeagueConfig(players=(group,), ratings=RatingConfig(step_fraction=0.0)), teams=teams)
    league.confirm_directives()
    for _ in range(snapshots - 1):
        for player in list(league.state.players):
            league.train(player, 1_000)
        league.confirm_directives()
    return league


def probabilities(league: SimulatedLeague, player: str = "main-0", seed: int = 0) -> dict[str, float]:
    view = view_of(league.state, player)
    result = matchmaker_of(view.config).opponents(view, np.random.default_rng(seed))
    return {league.state.population.names[i]: float(result[i]) for i in np.flatnonzero(result > 0.0)}


@pytest.mark.parametrize("name", [*sorted(MATCHMAKERS), MATCHMAKER])
@pytest.mark.parametrize("teams", [(0, 1), (0, 1, 2), (0, 0, 1, 1)], ids=str)
def test_every_matchmaker_shares_out_all_games_with_and_without_a_past(name: str, teams: tuple[int, ...]) -> None:
    for snapshots in (1, 5):
        league = league_of(name, snapshots=snapshots, teams=teams, count=2)
        found = probabilities(league)
        assert sum(found.values()) == pytest.approx(1.0)
        assert min(found.values()) > 0.0
        view = view_of(league.state, "main-0")
        gate_opponents = matchmaker_of(view.config).gate_opponents(view)
        assert set(gate_opponents.tolist()) <= set(range(len(league.state.population)))
        league.run(10)


def test_self_play_meets_nobody_else() -> None:
    assert probabilities(league_of("self_play")) == {"main-0": pytest.approx(1.0)}


def test_fictitious_play_meets_every_snapshot_alike() -> None:
    found = probabilities(league_of("fictitious", count=2, self_play=0.0, pfsp=1.0))
    assert found == {f"main-{player}-s{n}": pytest.approx(1 / 8) for player in (0, 1) for n in range(4)}


def test_a_window_holds_the_newest_of_the_players_own_snapshots() -> None:
    found = probabilities(league_of("window", count=2, window=2, self_play=0.5, pfsp=0.5))
    assert found == {"main-0": pytest.approx(0.5), "main-0-s2": pytest.approx(0.25), "main-0-s3": pytest.approx(0.25)}


def test_without_a_past_everything_is_self_play() -> None:
    league = SimulatedLeague(LeagueConfig(preset="openai_five"))
    assert probabilities(league) == {"main-0": pytest.approx(1.0)}


def play(league: SimulatedLeague, opponent: str, *, wins: int, losses: int) -> None:
    lease = league.grant("train")
    outcome = outcome_of(("main-0", opponent), (0, 1), games=wins + losses, winners=[0] * wins + [1] * losses)
    league.ask(FinishLease(lease.lease_id, lease.token, 10, (outcome,)))


def qualities(league: SimulatedLeague) -> list[float]:
    past = league.state.population.snapshots_of(0)
    return league.state.qualities["main-0"].values[past].tolist()


def test_a_beaten_snapshot_loses_quality_by_rate_over_n_and_its_chance_and_never_gains() -> None:
    league = league_of("quality", self_play=0.8, pfsp=0.2)
    assert qualities(league) == [0.0] * 4
    play(league, "main-0-s1", wins=8, losses=30)
    assert qualities(league) == pytest.approx([0.0, -0.01 * 8 / (4 * 0.25), 0.0, 0.0])
    before = qualities(league)
    play(league, "main-0-s1", wins=0, losses=30)
    assert qualities(league) == before
    found = probabilities(league)
    assert found["main-0"] == pytest.approx(0.8)
    np.testing.assert_allclose([found[f"main-0-s{i}"] for i in range(4)], 0.2 * softmax(np.array(before)))


WIN_RATES = np.linspace(0.5, 0.95, 6)


def chances_after(games: int, *, per_lease: int, seed: int, in_flight: int = 1) -> np.ndarray:
    """Chance of meeting each of six snapshots after so many games in leases of `per_lease`."""
    league = league_of("quality", snapshots=len(WIN_RATES), self_play=0.0, pfsp=1.0, opponents_per_lease=16)
    rng, leases = np.random.default_rng(seed), []
    for _ in range(games // per_lease):
        leases.append(league.grant("train"))
        if len(leases) == in_flight:
            answer(league, leases.pop(0), per_lease, rng)
    return softmax(np.array(qualities(league)))


def answer(league: SimulatedLeague, lease: Lease, games: int, rng: np.random.Generator) -> None:
    outcomes = []
    played = rng.multinomial(games, [assignment.probability for assignment in lease.assignments])
    for assignment, number in zip(lease.assignments, played.tolist(), strict=True):
        home = assignment.policies.index("main-0")
        won = int(rng.binomial(number, WIN_RATES[int(assignment.policies[1 - home].rpartition("s")[2])]))
        outcomes.append(won_by_home(assignment.policies, home, wins=won, losses=number - won))
    league.ask(FinishLease(lease.lease_id, lease.token, 10, tuple(outcomes)))


def won_by_home(policies: tuple[str, ...], home: int, *, wins: int, losses: int) -> AssignmentOutcome:
    table = ((0, wins), (losses, 0)) if home == 0 else ((0, losses), (wins, 0))
    return AssignmentOutcome(policies, wins + losses, 0, 0, table, ((0, 0), (0, 0)), (0.0, 0.0))


@pytest.mark.parametrize("per_lease", [20, 400, 4_000])
def test_qualities_follow_the_published_update_of_each_game_however_many_games_a_lease_has(per_lease: int) -> None:
    """Oracle: game by game. Both are means over four seeds; the bound is four times the largest deviation seen."""
    expected = np.mean([per_game(WIN_RATES.tolist(), games=12_000, rate=0.01, seed=s) for s in range(4)], axis=0)
    found = np.mean([chances_after(12_000, per_lease=per_lease, seed=s) for s in range(4)], axis=0)
    np.testing.assert_allclose(found, expected, atol=0.1)
    assert np.all(np.diff(found) <= 0.01), "the harder a snapshot, the more often it is met"


def test_qualities_keep_the_order_of_difficulty_where_many_large_leases_are_in_flight() -> None:
    found = np.mean([chances_after(400_000, per_lease=4_000, seed=s, in_flight=8) for s in range(4)], axis=0)
    assert found[0] > 2.0 * found[-1]
    assert np.all(np.isfinite(found))


def test_games_against_a_snapshot_that_is_hardly_ever_met_leave_its_quality_finite() -> None:
    league = league_of("quality", snapshots=2)
    for _ in range(60):
        lease = league.grant("train")
        outcome = won_by_home(("main-0", "main-0-s1"), 0, wins=10**6, losses=0)
        league.ask(FinishLease(lease.lease_id, lease.token, 10, (outcome,)))
    assert np.all(np.isfinite(qualities(league)))


def test_a_new_snapshot_joins_at_the_highest_quality() -> None:
    league = league_of("quality", snapshots=2)
    for opponent in ("main-0-s0", "main-0-s1"):
        play(league, opponent, wins=50, losses=0)
    best = max(qualities(league))
    assert best < 0.0
    league.train("main-0", 1_000)
    league.confirm_directives()
    assert qualities(league)[-1] == best


def test_even_odds_prefers_players_of_equal_strength() -> None:
    league = league_of("even_odds", count=3, self_play=0.0, pfsp=1.0)
    play(league, "main-1", wins=500, losses=500)
    lease = league.grant("train")
    while lease.home != "main-0":
        lease = league.grant("train")
    outcome = outcome_of(("main-0", "main-2"), (0, 1), games=1000, winners=[0] * 970 + [1] * 30)
    league.ask(FinishLease(lease.lease_id, lease.token, 10, (outcome,)))
    found = probabilities(league)
    assert set(found) == {"main-1", "main-2"}
    assert found["main-1"] > 0.95


def psro_league(*, teams: tuple[int, ...] = (0, 1)) -> SimulatedLeague:
    config = LeagueConfig(preset="psro", population=PopulationConfig(save_steps=3_000))
    strength = lambda policy: float(policy == "main-0-s2") * 3.0  # noqa: E731
    return SimulatedLeague(config, teams=teams, strength=strength)


@pytest.mark.parametrize("teams", [(0, 1), (0, 1, 2), (0, 0, 1, 1)], ids=str)
def test_the_mixture_is_solved_as_snapshots_and_games_come_and_is_what_is_met(teams: tuple[int, ...]) -> None:
    league = psro_league(teams=teams)
    league.run(120)
    solved = [event for event in league.journal if isinstance(event, MixtureSolved)]
    assert 2 <= len(solved) < 120
    assert solved[-1].members[0].policy == "main-0-s2"
    assert sum(member.weight for member in solved[-1].members) == pytest.approx(1.0, abs=0.05)
    weights = mixture_weights(league.state)
    assert weights is not None
    assert weights.sum() == pytest.approx(1.0)
    found = probabilities(league)
    assert found["main-0-s2"] > 0.6
    assert set(found) == set(league.state.snapshots), "exploration meets every snapshot"


def test_no_mixture_is_solved_where_nobody_asks_for_it() -> None:
    league = league_of("fictitious")
    for _ in range(20):
        league.finish(league.grant("rate"))
    assert not any(isinstance(event, MixtureSolved) for event in league.journal)


def test_the_mixture_leaves_out_old_snapshots_beyond_the_limit() -> None:
    config = dataclasses.replace(
        LeagueConfig(preset="psro", population=PopulationConfig(save_steps=1_000)),
        meta_game=MetaGameConfig(solve=True, max_policies=3),
    )
    league = SimulatedLeague(config)
    league.run(150)
    solved = [event for event in league.journal if isinstance(event, MixtureSolved)]
    assert max(len(event.members) for event in solved) <= 12
    assert solved[-1].num_snapshots > 12


FIXED_OPPONENTS = (
    FixedOpponentConfig("bot:random", 0.2),
    FixedOpponentConfig("imported:opponent", 0.1, roles=("main_agent",)),
)


def guested() -> SimulatedLeague:
    players = (PlayerConfig(), PlayerConfig(role="league_exploiter"))
    league = SimulatedLeague(
        LeagueConfig(players=players, fixed_opponents=FIXED_OPPONENTS, ratings=RatingConfig(step_fraction=0.0))
    )
    league.confirm_directives()
    return league


def test_fixed_opponents_take_their_part_of_the_games_and_the_rest_stays_in_proportion() -> None:
    league = guested()
    league.ask(ImportPolicy("imported:opponent", DIGEST))
    met: dict[str, dict[str, float]] = {"main-0": {}, "league-exploiter-0": {}}
    for _ in range(60):
        lease = league.grant("train")
        assert lease.home is not None
        for assignment in lease.assignments:
            (opponent,) = set(assignment.policies) - {lease.home} or {lease.home}
            met[lease.home][opponent] = met[lease.home].get(opponent, 0.0) + assignment.probability
        league.finish(lease, games=0)
    main, exploiter = ({name: probability / 30 for name, probability in met[home].items()} for home in met)
    assert main["bot:random"] == pytest.approx(0.2, abs=0.06)
    assert main["imported:opponent"] == pytest.approx(0.1, abs=0.06), (
        "its share as a fixed opponent: it is no part of the past"
    )
    assert exploiter["bot:random"] == pytest.approx(0.2, abs=0.06)
    assert "imported:opponent" not in exploiter


def test_a_players_shares_with_those_of_its_fixed_opponents_sum_to_one() -> None:
    league = guested()
    league.ask(ImportPolicy("imported:opponent", DIGEST))
    index = league.state.population.index
    probabilities = np.zeros(len(index))
    probabilities[index["main-0"]] = 1.0
    found = with_fixed_opponents(league.state, "main-0", probabilities)
    assert found[index["main-0"]] == pytest.approx(0.7)
    assert (found[index["bot:random"]], found[index["imported:opponent"]]) == (pytest.approx(0.2), pytest.approx(0.1))


def exploiters(*fixed_opponents: FixedOpponentConfig) -> SimulatedLeague:
    config = LeagueConfig(
        preset="exploit", population=PopulationConfig(save_steps=1_000), fixed_opponents=fixed_opponents
    )
    league = SimulatedLeague(config)
    league.confirm_directives()
    return league


def test_a_player_of_the_matchmaker_fixed_opponents_meets_nobody_else() -> None:
    league = exploiters(FixedOpponentConfig("bot:random", 0.75), FixedOpponentConfig("imported:prey", 0.25))
    league.ask(ImportPolicy("imported:prey", DIGEST))
    for _ in range(60):
        lease = league.grant("train")
        met: dict[str, float] = {}
        for assignment in lease.assignments:
            (opponent,) = set(assignment.policies) - {"main-exploiter-0"}
            met[opponent] = met.get(opponent, 0.0) + assignment.probability
            assert assignment.records == tuple(policy != opponent for policy in assignment.policies)
        assert met == {"bot:random": pytest.approx(0.75), "imported:prey": pytest.approx(0.25)}
        league.finish(lease)
        league.train("main-exploiter-0", 100)
        league.confirm_directives()
    assert len(league.state.snapshots) > 3, "there would be a past to meet"
    assert not any(isinstance(event, PlayerReset) for event in league.journal)


@pytest.mark.parametrize("probability", [0.5, 1.0])
def test_fixed_opponents_alone_share_all_games_whatever_their_shares_sum_to(probability: float) -> None:
    league = exploiters(FixedOpponentConfig("bot:random", probability))
    assert probabilities(league, "main-exploiter-0") == {"bot:random": pytest.approx(1.0)}


def test_fixed_opponents_that_take_every_game_leave_none_for_any_matchmaker() -> None:
    league = SimulatedLeague(
        LeagueConfig(players=(PlayerConfig(),), fixed_opponents=(FixedOpponentConfig("bot:random", 1.0),))
    )
    league.run(30)
    policies = len(league.state.population)
    found = with_fixed_opponents(league.state, "main-0", np.full(policies, 1.0 / policies))
    assert np.flatnonzero(found).tolist() == [league.state.population.index["bot:random"]]


def test_a_player_whose_fixed_opponents_are_not_there_yet_plays_itself() -> None:
    league = exploiters(FixedOpponentConfig("imported:prey", 1.0))
    lease = league.grant("train")
    assert {policy for assignment in lease.assignments for policy in assignment.policies} == {"main-exploiter-0"}


def test_an_imported_policy_that_is_not_there_yet_is_not_met() -> None:
    league = guested()
    for _ in range(20):
        assert all("imported:opponent" not in assignment.policies for assignment in league.grant().assignments)


def test_an_imported_policy_is_rated_and_no_part_of_the_exported_mixture() -> None:
    league = guested()
    league.ask(ImportPolicy("imported:opponent", DIGEST))
    for _ in range(30):
        league.finish(league.grant("rate"))
    assert "imported:opponent" in {row.policy for row in league_ratings(league.state) if row.games}
    assert "imported:opponent" not in dict(league_mixture(league.state))


@pytest.mark.parametrize("policy", ["opponent", "imported:", "bot:random", "imported:opponent"])
def test_an_imported_policy_needs_a_free_name_of_its_kind(policy: str) -> None:
    league = guested()
    league.ask(ImportPolicy("imported:opponent", DIGEST))
    with pytest.raises(Refused):
        league.ask(ImportPolicy(policy, DIGEST))
