"""The choice of a population by a scout: when it begins, what its evidence leads to, and that its cost is bounded."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import numpy as np
import pytest

from league.core import scouting
from league.core.adapting import Facts, next_remedy
from league.core.scouting import (
    COUNTER_GAMES,
    COUNTERS,
    EXPLOITERS,
    MAX_SHARE,
    MEASURED,
    NEWEST,
    PAST,
    PAST_OF_MIXED,
    ScoutEvidence,
    evidence_of,
    population_of,
    scout_of,
)
from league.core.state.commands import ChangeLeague, RequestReset, RequestSnapshot
from league.core.state.events import ConfigChange, SettingsChanged
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig
from league.core.state.population_config import PopulationConfig
from league.core.state.state_codec import encode
from tests.league.core.simulated_league import SimulatedLeague
from tests.league.core.test_settings import replayed

STEPS = 400
UPDATES = 20
LIFE = UPDATES * STEPS
TEAMS, SEATS = (0, 0, 1, 1), (0, 1)


@pytest.fixture(autouse=True)
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lives of a fifth, so that a simulated league is short too."""
    monkeypatch.setattr(scouting, "MIN_LIFE_UPDATES", UPDATES)


def measured(
    strength: Callable[[str], float], teams: tuple[int, ...], *, choice: str = MEASURED, counters: bool = False
) -> SimulatedLeague:
    """A league with a scout that waits, or with counters from the start."""
    far = GateConfig(min_steps=10**9, timeout_steps=10**9)
    life = GateConfig(min_steps=LIFE, timeout_steps=LIFE, reset_probability=float(counters))
    games = COUNTER_GAMES if counters else {"self_play": 1.0, "pfsp": 0.0}
    config = LeagueConfig(
        players=(
            PlayerConfig(matchmaker={"kind": "main_agent", "verification": 0.0, **games}, gate=far),
            PlayerConfig(role="main_exploiter", name="scout", step_weight=1.0 if counters else 0.25, gate=life),
        ),
        population=PopulationConfig(choice=choice),  # type: ignore[arg-type]  # one of the literals
    )
    league = SimulatedLeague(config, teams=teams, strength=strength)
    league.confirm_directives()
    return league


def run(league: SimulatedLeague, *, until: float = 1.0, leases: int = 700) -> list[str]:
    """Play until a part of a budget of so many leases; the names of the remedies that were taken."""
    taken = []
    while (done := league.state.totals.leases_finished) < until * leases:
        league.run(5, steps_per_lease=STEPS)
        remedy = next_remedy(league.state, Facts(done / leases, snapshots_by_budget=True))
        if remedy is not None:
            changes = tuple(ConfigChange(key, "null", json.dumps(value)) for key, value in remedy.pairs)
            league.ask(ChangeLeague(changes, by="adapt", reason=remedy.reason, remedy=remedy.name))
            if remedy.resets:
                league.ask(RequestReset(remedy.resets))
            taken.append(remedy.name)
    return taken


def scout_is(strength: float) -> Callable[[str], float]:
    """The strength, in log-odds, of the scout over a main agent that never changes."""
    return lambda policy: strength if policy.startswith("scout") else 0.0


@pytest.mark.parametrize(
    ("strength", "teams", "found"),
    [
        (-2.0, SEATS, ["scout 1 begins", f"scout 1: {NEWEST}", "scout 2 begins", f"scout 2: {NEWEST}"]),
        (2.0, SEATS, ["scout 1 begins", f"scout 1: {PAST}", "scout 2 begins", f"scout 2: {EXPLOITERS}"]),
        (2.0, TEAMS, ["scout 1 begins", f"scout 1: {COUNTERS}"]),
        (-2.0, TEAMS, ["scout 1 begins", f"scout 1: {NEWEST}", "scout 2 begins", f"scout 2: {NEWEST}"]),
    ],
    ids=["nothing found", "a weakness", "a trap for teams", "no trap for teams"],
)
def test_the_population_follows_from_what_the_scout_finds(
    strength: float, teams: tuple[int, ...], found: list[str]
) -> None:
    league = measured(scout_is(strength), teams)
    assert run(league, leases=1_200) == found
    assert population_of(league.state)[0] == found[-1].partition(": ")[2]


def test_a_scout_waits_and_its_share_of_the_updates_is_bounded() -> None:
    league = measured(scout_is(-2.0), SEATS)
    run(league, until=0.1)
    scout = scout_of(league.state)
    assert scout is not None and scout.paused and scout.version == 0
    assert population_of(league.state) == (NEWEST, "no scout has begun yet")
    run(league)
    main = league.state.players["main-0"]
    assert LIFE <= scout.trained_steps <= MAX_SHARE * main.trained_steps + 10 * STEPS


def test_a_budget_too_short_for_a_life_has_no_scout() -> None:
    league = measured(scout_is(2.0), TEAMS)
    assert run(league, leases=300) == []
    assert population_of(league.state)[0] == NEWEST


def test_nothing_is_scouted_where_the_population_is_given() -> None:
    league = measured(scout_is(2.0), TEAMS, choice="given")
    assert not [name for name in run(league, leases=500) if name.startswith("scout")]
    assert population_of(league.state) == ("", "")


def test_a_choice_is_in_the_journal_with_its_numbers_and_replays_to_the_same_state() -> None:
    league = measured(scout_is(2.0), SEATS)
    run(league, until=0.4)
    changes = [event for event in league.journal if isinstance(event, SettingsChanged)]
    assert [event.remedy for event in changes] == ["scout 1 begins", f"scout 1: {PAST}"]
    assert "the scout scored 0." in changes[-1].reason and changes[-1].reason.endswith(PAST)
    config = league.state.config
    assert config is not None
    options = config.players[0].matchmaker
    assert isinstance(options, dict)
    assert (options["self_play"], options["pfsp"]) == (1.0 - PAST_OF_MIXED, PAST_OF_MIXED)
    assert encode(replayed(league)) == encode(league.state)


def test_counters_start_again_and_again_and_no_other_remedy_touches_them() -> None:
    league = measured(scout_is(2.0), TEAMS)
    taken = run(league, until=0.9)
    assert taken == ["scout 1 begins", f"scout 1: {COUNTERS}"]
    scout = scout_of(league.state)
    assert scout is not None and scout.generation >= 3 and not scout.paused
    weights = league.state.fair_share.step_weight.values
    assert weights[scout.index] == weights[0]


@pytest.mark.parametrize(
    ("score", "expected", "games", "exploits", "beats"),
    [
        (0.62, None, 200.0, True, True),
        (0.43, 0.12, 200.0, True, False),
        (0.43, None, 200.0, False, False),
        (0.29, 0.02, 200.0, False, False),
        (0.45, 0.40, 200.0, False, False),
        (0.62, 0.1, 20.0, False, False),
    ],
)
def test_a_weakness_is_a_win_or_far_more_than_as_much_training_brings_without_a_target(
    score: float, expected: float | None, games: float, exploits: bool, beats: bool
) -> None:
    evidence = ScoutEvidence(100, 1_000, 0.6, score, games, expected, (0.5, 0.5), (0.6, 0.4), None)
    assert (evidence.exploits, evidence.beats) == (exploits, beats)


@pytest.mark.parametrize(
    ("scores", "even", "found"),
    [
        ((0.85, 0.15), (0.6, 0.4), True),
        ((0.85, 0.15), (0.8, 0.2), False),  # the first to move wins among even players too
        ((0.85, math.nan), (math.nan, 0.5), False),
    ],
)
def test_a_weakness_of_one_seat_counts_beside_what_even_players_score_there(
    scores: tuple[float, float], even: tuple[float, float], found: bool
) -> None:
    assert ScoutEvidence(100, 1_000, 0.6, 0.5, 200.0, 0.45, scores, even, None).beats is found


def test_even_scores_are_those_of_frozen_main_agents_by_seat() -> None:
    league = measured(lambda policy: 0.0, SEATS)
    for _ in range(4):
        league.run(60, steps_per_lease=STEPS)
        league.ask(RequestSnapshot("main-0", "budget"))
    league.run(60, steps_per_lease=STEPS)
    main, scout = league.state.players["main-0"], scout_of(league.state)
    assert scout is not None
    names, payoff, clock = [*main.snapshot_ids()], league.state.payoff, league.state.population.staleness_clock.values
    index = league.state.population.index
    pairs = [payoff.seat_games(index[one], index[two], clock) for one in names for two in names if one != two]
    expected = [score / number for score, number in np.sum(pairs, axis=0)]
    assert min(number for _, number in np.sum(pairs, axis=0)) >= scouting.MIN_SEAT_GAMES
    assert evidence_of(league.state, scout, main).even_scores == pytest.approx(expected) and min(expected) > 0.0
