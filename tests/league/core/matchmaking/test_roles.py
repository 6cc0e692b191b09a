"""Whom each role meets, and the traps of the published pseudocode."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from league.core.matchmaking.roles import MatchmakingView, matchmaker_of, monotone_tail_start
from league.core.state.built_ins import MATCHMAKERS
from league.core.state.league_config import PlayerConfig
from league.core.state.payoff import Posterior
from league.core.state.population import FIXED_OPPONENT, PLAYER, SNAPSHOT, Population
from tests.league.core.own_components import MATCHMAKER

ROLE_OF = {"main": "main_agent", "opponent": "main_agent", "exploiter": "main_exploiter", "hunter": "league_exploiter"}


def view_of(
    home: str, names: list[str], *, rates: dict[str, float] | None = None, games: float = 1e6, **wishes: float
) -> MatchmakingView:
    """A league of players ("main", "opponent", "exploiter", "hunter") and snapshots ("main-s0"); rates: of the home."""
    population = Population()
    for name in names:
        owner, _, snapshot = name.partition("-s")
        if name.startswith("bot:"):
            population.add(name, kind=FIXED_OPPONENT)
        elif snapshot:
            population.add(name, kind=SNAPSHOT, owner=population.index[owner], role=ROLE_OF[owner])
        else:
            population.add(name, kind=PLAYER, role=ROLE_OF[owner])
    mean = np.array([(rates or {}).get(name, 0.5) for name in names])
    weight = games + 2.0
    posterior = Posterior(mean * weight + 1e-9, (1.0 - mean) * weight + 1e-9, games=np.full(len(names), games))
    config = PlayerConfig(role=ROLE_OF[home], matchmaker=dict(wishes))
    return MatchmakingView(home=population.index[home], population=population, posterior=posterior, config=config)


def probabilities(view: MatchmakingView, seed: int = 0) -> dict[str, float]:
    """Opponent -> share, zero ones left out."""
    result = matchmaker_of(view.config).opponents(view, np.random.default_rng(seed))
    assert result.sum() == pytest.approx(1.0)
    return {view.population.names[i]: float(result[i]) for i in np.flatnonzero(result > 0.0)}


def gate_opponents(view: MatchmakingView) -> list[str]:
    return [view.population.names[i] for i in matchmaker_of(view.config).gate_opponents(view)]


EVERYONE = ["bot:random", "main", "exploiter", "hunter", "main-s0", "exploiter-s0", "hunter-s0", "main-s1"]


def test_a_main_agent_plays_35_percent_itself_50_the_past_and_verification_becomes_self_play() -> None:
    found = probabilities(view_of("main", EVERYONE))
    assert found["main"] == pytest.approx(0.5)
    assert sum(probability for name, probability in found.items() if "-s" in name) == pytest.approx(0.5)
    assert set(found) == {"main", "main-s0", "exploiter-s0", "hunter-s0", "main-s1"}


def test_a_main_agent_verifies_against_exploiters_that_beat_it() -> None:
    found = probabilities(view_of("main", EVERYONE, rates={"exploiter-s0": 0.1}))
    assert found["main"] == pytest.approx(0.35)
    assert found["exploiter-s0"] > 0.15


def test_a_main_agent_verifies_against_the_past_it_forgot() -> None:
    names = ["main", *(f"main-s{i}" for i in range(4))]
    rates = dict(zip(names, [0.5, 0.95, 0.4, 0.9, 0.8], strict=True))
    found = probabilities(view_of("main", names, rates=rates, pfsp=0.0, self_play=0.5, verification=0.5))
    assert set(found) == {"main", "main-s0", "main-s1", "main-s2"}
    assert found["main"] == pytest.approx(0.5)
    assert found["main-s1"] == max(found[name] for name in names[1:4])


def test_opponents_that_grow_harder_toward_the_newest_are_not_forgotten() -> None:
    names = ["main", *(f"main-s{i}" for i in range(4))]
    rates = dict(zip(names, [0.5, 0.95, 0.8, 0.6, 0.5], strict=True))
    found = probabilities(view_of("main", names, rates=rates, pfsp=0.0, self_play=0.5, verification=0.5))
    assert found == {"main": pytest.approx(1.0)}


def test_unmeasured_pairs_are_neither_forgotten_nor_exploiters_to_verify() -> None:
    view = view_of("main", EVERYONE, rates={"exploiter-s0": 0.0, "main-s0": 0.1, "main-s1": 0.2}, games=3.0)
    assert probabilities(view)["main"] == pytest.approx(0.5)


def test_a_main_agent_meets_the_past_of_another_main_that_is_too_strong() -> None:
    names = ["main", "opponent", "main-s0", "opponent-s0"]
    weak = probabilities(view_of("main", names, rates={"opponent": 0.1}, pfsp=0.0, self_play=1.0, verification=0.0))
    even = probabilities(view_of("main", names, rates={"opponent": 0.4}, pfsp=0.0, self_play=1.0, verification=0.0))
    assert weak == {"main": pytest.approx(0.5), "opponent-s0": pytest.approx(0.5)}
    assert even == {"main": pytest.approx(0.5), "opponent": pytest.approx(0.5)}


@pytest.mark.parametrize(("rate", "present"), [(0.5, 0.5), (0.25, 0.5), (0.15, 0.0)])
def test_a_main_exploiter_leaves_a_hopeless_main_for_its_past(rate: float, present: float) -> None:
    found = probabilities(view_of("exploiter", EVERYONE, rates={"main": rate}))
    assert found.get("main", 0.0) == pytest.approx(present)
    assert found["main-s0"] + found["main-s1"] == pytest.approx(1.0 - present)


def test_a_main_exploiter_does_not_call_an_unmeasured_main_hopeless() -> None:
    assert probabilities(view_of("exploiter", EVERYONE, rates={"main": 0.1}, games=1.0))["main"] == pytest.approx(0.5)


def test_a_league_exploiter_meets_every_snapshot_and_nobody_else() -> None:
    assert set(probabilities(view_of("hunter", EVERYONE))) == {"main-s0", "exploiter-s0", "hunter-s0", "main-s1"}


@pytest.mark.parametrize(
    ("home", "names", "expected"),
    [
        ("main", ["main"], {"main": 1.0}),
        ("exploiter", ["exploiter", "main"], {"main": 1.0}),
        ("exploiter", ["exploiter"], {"exploiter": 1.0}),
        ("exploiter", ["hunter", "exploiter", "hunter-s0"], {"hunter-s0": 1.0}),
        ("hunter", ["hunter", "main"], {"main": 1.0}),
        ("hunter", ["hunter"], {"hunter": 1.0}),
    ],
)
def test_an_empty_candidate_list_falls_back(home: str, names: list[str], expected: dict[str, float]) -> None:
    assert probabilities(view_of(home, names)) == pytest.approx(expected)


def test_all_win_rates_of_one_or_zero_still_choose() -> None:
    for home in ("main", "exploiter", "hunter"):
        for rate in (0.0, 1.0):
            probabilities(view_of(home, EVERYONE, rates=dict.fromkeys(EVERYONE, rate)))


def test_a_main_exploiter_must_beat_the_present_mains_and_others_the_whole_past() -> None:
    assert gate_opponents(view_of("exploiter", EVERYONE)) == ["main"]
    past = ["main-s0", "exploiter-s0", "hunter-s0", "main-s1"]
    assert gate_opponents(view_of("main", EVERYONE)) == past
    assert gate_opponents(view_of("hunter", EVERYONE)) == past


@pytest.mark.parametrize("win_rates", [[], [0.5], [0.9, 0.8, 0.7], [0.2, 0.8, 0.5, 0.4], [0.1, 0.2, 0.3], [0.5, 0.5]])
def test_the_monotone_tail_is_that_of_the_pseudocode(win_rates: list[float]) -> None:
    def slow(values: list[float]) -> int:
        for i in range(len(values) - 1, 0, -1):
            if values[i - 1] < values[i]:
                return i + 1
        return 0

    assert monotone_tail_start(np.array(win_rates)) == slow(win_rates)


@pytest.mark.parametrize("name", [*sorted(MATCHMAKERS), MATCHMAKER])
def test_every_matchmaker_meets_the_contract(name: str) -> None:
    view = view_of("main", EVERYONE)
    config = dataclasses.replace(view.config, matchmaker=name)
    view = dataclasses.replace(view, config=config)
    matchmaker = matchmaker_of(config)
    for seed in range(5):
        found = matchmaker.opponents(view, np.random.default_rng(seed))
        assert found.shape == (len(EVERYONE),)
        assert np.all(found >= 0.0)
        assert found.sum() == pytest.approx(1.0)
        assert found[0] == 0.0, "bots stay out of training"
    assert set(matchmaker.gate_opponents(view)) <= set(range(len(EVERYONE)))
