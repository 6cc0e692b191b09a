"""Counters from the start of a game of teams: they stay while one of the newest lives wins, and scouts may follow."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable

import pytest

from league.core import scouting
from league.core.adapting import Facts, collapsed_entropy, next_remedy
from league.core.scouting import (
    BEATEN,
    COUNTERS,
    HOPELESS,
    HOPELESS_LIVES,
    LIVES,
    NEWEST,
    next_step,
    population_of,
    scout_of,
)
from league.core.settings import value_of
from league.core.state.commands import RequestSnapshot
from league.core.state.events import PlayerReset, SettingsChanged
from league.core.state.state import KEPT_LIVES, Life
from league.core.state.state_codec import encode
from tests.league.core.simulated_league import SimulatedLeague
from tests.league.core.test_scouting import SEATS, TEAMS, UPDATES, measured, run
from tests.league.core.test_settings import replayed

GO, LIFE_LEASES = "counters go", 2 * UPDATES
STRONG, WEAK = 2.0, -2.0


@pytest.fixture(autouse=True)
def short_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lives of a fifth, so that a simulated league is short too."""
    monkeypatch.setattr(scouting, "MIN_LIFE_UPDATES", UPDATES)


def league_of(wins: Callable[[SimulatedLeague], bool], *, teams: tuple[int, ...] = TEAMS) -> SimulatedLeague:
    """A league with counters from the start. wins: whether the scout is stronger than the main agent now."""
    found: list[SimulatedLeague] = []

    def strength(policy: str) -> float:
        return (STRONG if found and wins(found[0]) else WEAK) if policy == "scout-0" else 0.0

    found.append(measured(strength, teams, counters=True))
    return found[0]


def lives_of(league: SimulatedLeague) -> tuple[Life, ...]:
    scout = scout_of(league.state)
    assert scout is not None
    return scout.lives


def settings_of(league: SimulatedLeague) -> tuple[object, ...]:
    """The share of self-play, the chance that the scout starts again, its weight, and True if it waits."""
    keys = ("league.players.0.matchmaker.self_play", "league.players.1.gate.reset_probability")
    return tuple(
        value_of(league.state, key) for key in (*keys, "players.scout-0.step_weight", "players.scout-0.paused")
    )


def test_counters_are_there_from_the_start_and_stay_while_they_win() -> None:
    league = league_of(lambda now: True)
    assert population_of(league.state) == (COUNTERS, "counters from the start, and no life of theirs has ended yet")
    assert run(league) == []
    assert len(lives_of(league)) == KEPT_LIVES and min(life.score for life in lives_of(league)) > 0.8
    assert settings_of(league) == (0.1, 1.0, 1.0, False)
    population, reason = population_of(league.state)
    assert (
        population == COUNTERS
        and reason.endswith("and 0.6 beats the main agents")
        and reason.count("0.8") >= HOPELESS_LIVES
    )


def test_counters_go_once_the_newest_lives_all_lose_and_scouts_follow() -> None:
    league = league_of(lambda now: False)
    taken = run(league, until=0.4, leases=1_500)
    assert taken[:3] == [GO, "scout 1 begins", f"scout 1: {NEWEST}"]
    (gone,) = [event for event in league.journal if isinstance(event, SettingsChanged) and event.remedy == GO]
    assert gone.reason.startswith("the newest lives of counters scored 0.") and gone.reason.endswith(NEWEST)
    assert population_of(league.state)[0] == NEWEST
    assert settings_of(league) == (1.0, 0.0, 0.25, True)
    assert f"after {UPDATES} updates" in population_of(league.state)[1]
    events = [getattr(event, "remedy", "") or type(event).__name__ for event in league.journal]
    assert PlayerReset.__name__ in events[events.index("scout 1 begins") : events.index(f"scout 1: {NEWEST}")]


def test_early_wins_do_not_keep_counters_whose_newest_lives_lose() -> None:
    league = league_of(lambda now: len(lives_of(now)) < 2)
    assert run(league, until=(1 + HOPELESS_LIVES) * LIFE_LEASES / 700) == []
    assert run(league, until=(4 + HOPELESS_LIVES) * LIFE_LEASES / 700) == [GO]
    assert [life.score > 0.5 for life in lives_of(league)] == [True] * 2 + [False] * HOPELESS_LIVES


def test_a_scout_that_wins_brings_counters_back_and_their_own_lives_judge_them() -> None:
    league = league_of(lambda now: "scout 1 begins" in now.state.remedies and len(lives_of(now)) < HOPELESS_LIVES + 1)
    taken = run(league, leases=2_000)
    assert taken[:4] == [GO, "scout 1 begins", f"scout 1: {COUNTERS}", f"{GO} after scout 1"]
    assert settings_of(league)[0] == 1.0


def test_scouts_rest_after_counters_and_have_their_own_share_of_what_is_learnt() -> None:
    league = league_of(lambda now: False)
    leases = 1_500
    taken: list[tuple[str, float]] = []
    for percent in range(2, 100, 2):
        taken += [(name, percent / 100) for name in run(league, until=percent / 100, leases=leases)]
    at = dict(taken)
    assert at["scout 1 begins"] >= at[GO] + 0.13
    begun = [name for name in at if name.endswith("begins")]
    all_steps = sum(player.trained_steps for player in league.state.players.values())
    assert len(begun) >= 1 and len(begun) * UPDATES * 400 <= scouting.MAX_SHARE * all_steps
    assert "scout 2 begins" not in at or at["scout 2 begins"] >= at["scout 1 begins"] + 0.13


def goes_in(league: SimulatedLeague, *scores: float, games: float = 1_000.0, first_seat: float = 0.5) -> bool:
    """True if counters go after lives of these scores."""
    scout = scout_of(league.state)
    assert scout is not None
    seats = ((500.0 * first_seat, 500.0), (0.0, 0.0), (250.0, 500.0), (0.0, 0.0))
    scout.lives = tuple(Life(score, games, seats, 0) for score in scores)
    return [step.name for step in next_step(league.state, 0.5)] == [GO]


@pytest.mark.parametrize("kind", ["wins", "returns"])
def test_one_life_of_the_newest_that_wins_by_a_little_is_enough(kind: str) -> None:
    league = league_of(lambda now: True)
    league.state.scoring = dataclasses.replace(league.state.scoring, score=kind)  # type: ignore[arg-type]
    lost, won = BEATEN[kind] - 0.01, BEATEN[kind]

    goes = functools.partial(goes_in, league)
    assert goes(won, *[lost] * LIVES) and goes(*[lost] * LIVES)
    assert not goes(won, *[lost] * (LIVES - 1)) and not goes(*[lost] * (LIVES - 1), won)
    assert not goes(*[lost] * (LIVES - 1)) and not goes(*[lost] * LIVES, games=20.0)


def test_a_few_lives_are_enough_where_all_are_far_from_winning_in_every_seat() -> None:
    league = league_of(lambda now: True)
    far, near = HOPELESS - 0.01, HOPELESS
    assert goes_in(league, *[far] * HOPELESS_LIVES)
    assert not goes_in(league, *[far] * (HOPELESS_LIVES - 1), near) and not goes_in(
        league, *[far] * (HOPELESS_LIVES - 1)
    )
    league.run(4 * LIFE_LEASES)
    for _ in range(4):
        league.ask(RequestSnapshot("main-0", "budget"))
        league.run(2 * LIFE_LEASES)
    assert goes_in(league, *[far] * HOPELESS_LIVES)
    assert not goes_in(league, *[far] * HOPELESS_LIVES, first_seat=0.8)


def test_a_choice_after_a_stop_is_the_one_without_and_the_journal_gives_the_same_state() -> None:
    league = league_of(lambda now: False)
    run(league, until=0.4)
    again = replayed(league)
    assert lives_of(league) and encode(again) == encode(league.state)
    facts = Facts(0.9, snapshots_by_budget=True)
    assert next_remedy(again, facts) == next_remedy(league.state, facts)
    assert json.dumps(encode(again))  # a life is stored as it is


def test_lives_are_kept_of_exploiters_alone_and_end_with_a_gate_or_a_timeout() -> None:
    league = league_of(lambda now: True, teams=SEATS)
    league.run(3 * LIFE_LEASES)
    assert league.state.players["main-0"].lives == ()
    ended = [snapshot for snapshot in league.state.snapshots.values() if snapshot.reason in ("gate", "timeout")]
    assert len(lives_of(league)) == len(ended) >= 2
    life = lives_of(league)[-1]
    assert life.seats[0][1] > 0.0 and life.seats[0][0] / life.seats[0][1] > 0.7


@pytest.mark.parametrize("choice", ["measured", "given"])
def test_an_answer_to_the_main_agents_need_not_mix(choice: str) -> None:
    state = measured(lambda policy: 0.0, TEAMS, choice=choice, counters=True).state
    collapsed = {name: Facts(0.2, entropies={name: (0.01, 2.0, 0.01)}) for name in ("scout-0", "main-0")}
    assert list(collapsed_entropy(state, collapsed["scout-0"])) == []
    assert list(collapsed_entropy(state, collapsed["main-0"])) != []
