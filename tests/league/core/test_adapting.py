"""Remedies that a league takes by itself: when they are due, their bounds, and that they help bad set-ups."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from league.core import adapting
from league.core.adapting import Facts, Remedy, next_remedy
from league.core.league import apply
from league.core.state.events import ConfigChange, SettingsChanged
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.state import AppliedRemedy
from league.lab.simulation.simulate import Simulation
from league.lab.simulation.simulation_report import Pace
from league.lab.simulation.worlds import DiscWorld, SkillWorld
from tests.league.core.simulated_league import QUICK_GATE, SimulatedLeague


def group(role: str, weight: float, min_steps: int, timeout_steps: int) -> PlayerConfig:
    return PlayerConfig(
        role=role, step_weight=weight, gate=GateConfig(min_steps=min_steps, timeout_steps=timeout_steps)
    )


FAR = LeagueConfig(
    players=(
        group("main_agent", 2.0, 10**9, 2 * 10**9),
        group("main_exploiter", 1.0, 10**9, 2 * 10**9),
        group("league_exploiter", 1.0, 10**9, 2 * 10**9),
    )
)
IDLE = LeagueConfig(
    players=(group("main_agent", 1.0, 200_000, 800_000), group("main_exploiter", 8.0, 20_000, 40_000)),
)
SMALL = LeagueConfig(
    players=(
        group("main_agent", 1.0, 100_000, 400_000),
        group("main_exploiter", 4.0, 400_000, 1_600_000),
        group("league_exploiter", 4.0, 400_000, 1_600_000),
    )
)


def simulated(config: LeagueConfig, *, adapts: bool, seed: int, seconds: float = 450.0) -> Simulation:
    pace = Pace(10_000.0, 20, 2, lease_steps=16_384, snapshot_bytes=1)
    simulation = Simulation(config, (0, 1), world=SkillWorld(steps=1e5), pace=pace, seed=seed, adapts=adapts)
    simulation.run(seconds)
    return simulation


def skill_of(simulation: Simulation, player: str = "main-0") -> float:
    """Log-odds against an untrained policy."""
    return float(simulation.policy_of(player)[0])


@pytest.mark.parametrize("config", [FAR, IDLE, SMALL], ids=["gates too far", "idle exploiter", "small share"])
def test_a_bad_setup_makes_a_stronger_main_agent_where_the_league_adapts(config: LeagueConfig) -> None:
    left, adapted = (simulated(config, adapts=adapts, seed=0) for adapts in (False, True))
    assert left.state.remedies == {}
    assert adapted.state.remedies
    assert skill_of(adapted) > skill_of(left) + 0.05


def test_gates_that_are_too_far_come_nearer_and_fire() -> None:
    state = simulated(FAR, adapts=True, seed=1).state
    assert len(state.snapshots) >= 20
    assert state.config is not None
    for number, settings in enumerate(state.config.players):
        assert settings.gate.timeout_steps < 10**8
        assert state.remedies[f"gate of group {number} comes nearer"].times <= 2


def test_no_remedy_is_taken_more_often_than_it_may_or_without_rest() -> None:
    pace = Pace(10_000.0, 20, 2, lease_steps=16_384, snapshot_bytes=1)
    simulation = Simulation(FAR, (0, 1), world=DiscWorld(), pace=pace, seed=2, adapts=True)
    simulation.run(450.0)
    for name, known in simulation.state.remedies.items():
        assert 1 <= known.times <= 5, name


def due(league: SimulatedLeague, name: str, facts: Facts | None = None) -> list[Remedy]:
    """The remedies of that finder that could be taken."""
    find = getattr(adapting, name)
    found: Iterable[Remedy] = find(league.state, facts or Facts())
    return list(found)


def test_a_remedy_rests_until_the_league_has_played_a_fifth_more() -> None:
    league = SimulatedLeague(
        LeagueConfig(players=(PlayerConfig(gate=GateConfig(min_steps=10**6, timeout_steps=10**7)),))
    )
    league.run(60)
    facts = Facts(budget_fraction=0.5)
    remedy = next_remedy(league.state, facts)
    assert remedy is not None and "comes nearer" in remedy.name and remedy.most == 2
    steps, lease = league.state.totals.env_steps, league.state.next_lease_id
    for known, allowed in (
        (AppliedRemedy(1, lease, int(steps / 1.3), ""), False),
        (AppliedRemedy(1, lease - 50, int(steps / 1.1), ""), False),
        (AppliedRemedy(1, lease - 50, int(steps / 1.3), ""), True),
        (AppliedRemedy(2, lease - 50, int(steps / 1.3), ""), False),
    ):
        league.state.remedies[remedy.name] = known
        again = next_remedy(league.state, facts)
        assert (again is not None and again.name == remedy.name) is allowed


def test_without_a_budget_fraction_nothing_is_projected() -> None:
    league = SimulatedLeague(
        LeagueConfig(players=(PlayerConfig(gate=GateConfig(min_steps=10**6, timeout_steps=10**7)),))
    )
    league.run(20)
    assert due(league, "far_gates") == []
    assert due(league, "far_gates", Facts(budget_fraction=0.05)) == []
    assert due(league, "far_gates", Facts(budget_fraction=0.3))


def test_a_gate_stays_far_where_main_agents_are_frozen_as_the_budget_is_spent() -> None:
    gate = GateConfig(min_steps=10**6, timeout_steps=10**7)
    players = (PlayerConfig(gate=gate), PlayerConfig(role="main_exploiter", gate=gate))
    league = SimulatedLeague(LeagueConfig(players=players))
    league.run(20)
    found = due(league, "far_gates", Facts(budget_fraction=0.3, snapshots_by_budget=True))
    assert [remedy.name for remedy in found] == ["gate of group 1 comes nearer"]


def test_a_player_that_begins_again_with_every_snapshot_keeps_a_life_of_a_hundred_updates() -> None:
    """The preset `cross_play` named alone had counters whose lives were made too short to learn anything."""
    gate = GateConfig(min_steps=10**6, timeout_steps=10**7, reset_probability=1.0)
    players = (PlayerConfig(), PlayerConfig(role="main_exploiter", gate=gate))
    league = SimulatedLeague(LeagueConfig(players=players))
    league.run(20)
    player = league.state.players["main-exploiter-0"]
    of_update = player.trained_steps / player.version
    (remedy,) = (found for found in due(league, "far_gates", Facts(budget_fraction=0.3)) if "group 1" in found.name)
    pairs = dict(remedy.pairs)
    assert pairs["league.players.1.gate.min_steps"] == pytest.approx(100 * of_update, rel=0.01)
    by_budget = player.trained_steps / 0.3 / adapting.AIMED_LIVES
    assert pairs["league.players.1.gate.timeout_steps"] == pytest.approx(max(by_budget, 100 * of_update), rel=0.01)


def test_main_agents_of_teams_get_no_more_steps_for_beating_their_own_past() -> None:
    """Counters had a fifth of the steps at last: the main agents improved in a trap that only counters show."""
    for teams, expected in (((0, 1), True), ((0, 0, 1, 1), False)):
        pace = Pace(10_000.0, 20, len(teams), lease_steps=16_384, snapshot_bytes=1)
        simulation = Simulation(SMALL, teams, world=SkillWorld(steps=1e5), pace=pace, seed=0, adapts=True)
        simulation.run(450.0)
        assert (adapting.MORE_STEPS in simulation.state.remedies) == expected


def test_entropy_that_collapsed_early_is_worth_more_and_a_cost_of_nothing_becomes_one() -> None:
    league = SimulatedLeague(LeagueConfig(players=(PlayerConfig(gate=QUICK_GATE),)))
    league.run(5)
    (remedy,) = due(league, "collapsed_entropy", Facts(0.2, entropies={"main-0": (0.01, 2.0, 0.2)}))
    assert remedy.pairs == (("players.main-0.entropy_cost", 2.0),)
    (remedy,) = due(league, "collapsed_entropy", Facts(0.2, entropies={"main-0": (0.01, 2.0, 0.0)}))
    assert [key for key, _ in remedy.pairs] == ["learner.entropy_cost", "learner.entropy_cost_end"]
    assert due(league, "collapsed_entropy", Facts(0.2, entropies={"main-0": (0.2, 2.0, 0.2)})) == []
    assert due(league, "collapsed_entropy", Facts(0.8, entropies={"main-0": (0.01, 2.0, 0.2)})) == []
    assert due(league, "collapsed_entropy", Facts(0.2, entropies={"main-0": (-0.5, 1.4, 0.2)})) == []  # of a density


def test_without_opponents_one_best_play_is_no_finding() -> None:
    league = SimulatedLeague(LeagueConfig(players=(group("main_agent", 1.0, 10_000, 20_000),)), teams=(0,))
    assert due(league, "collapsed_entropy", Facts(0.2, entropies={"main-0": (0.01, 2.0, 0.2)})) == []


def test_an_exploiter_that_beats_nobody_gets_less_and_leaves_in_the_end() -> None:
    config = LeagueConfig(
        players=(PlayerConfig(gate=QUICK_GATE), PlayerConfig(role="main_exploiter", gate=QUICK_GATE)),
        ratings=RatingConfig(step_fraction=0.0),
    )
    league = SimulatedLeague(config, strength=lambda policy: 0.0 if "exploiter" in policy else 8.0)
    weights = []
    for _ in range(400):
        league.run(1)
        player = league.state.players["main-exploiter-0"]
        for remedy in due(league, "idle_exploiters")[:2]:
            if not player.is_active or not adapting._may_be_taken(league.state, remedy):
                continue
            changes = tuple(ConfigChange(key, "0", str(value).lower()) for key, value in remedy.pairs)
            apply(league.state, SettingsChanged(changes, reason=remedy.reason, remedy=remedy.name))
            weights.append(float(league.state.fair_share.step_weight.values[player.index]))
    assert weights == [0.5, 0.25, 0.25]
    assert player.retired


def decided(decisions: int) -> SimulatedLeague:
    league = SimulatedLeague(LeagueConfig(players=(PlayerConfig(gate=QUICK_GATE),)))
    league.state.totals.decisions = decisions
    return league


@pytest.mark.parametrize(
    ("made", "cost"), [(250_000, 0.4 * 4**-0.45), (2, 0.05), (700_000, None), (4_000_000, 0.4 * 4**0.45)]
)
def test_an_entropy_cost_follows_the_decisions_that_the_budget_really_holds(made: int, cost: float | None) -> None:
    """A fourth of the budget is spent; four million decisions were expected in all of it."""
    facts = Facts(0.25, expected_decisions=4_000_000, entropy_costs=(0.4, 0.1))
    found = due(decided(made), "other_budget", facts)
    if cost is None:
        assert found == []
        return
    values = dict(found[0].pairs)
    assert values["learner.entropy_cost"] == pytest.approx(min(cost, 0.4 * 2.5**0.45), rel=0.01)
    assert values["learner.entropy_cost_end"] == pytest.approx(values["learner.entropy_cost"] / 4.0, rel=0.01)  # type: ignore[operator]
    assert values["runtime.expected_decisions"] == 4 * made
    after = replace(facts, expected_decisions=4 * made, entropy_costs=(values["learner.entropy_cost"], 0.1))  # type: ignore[arg-type]
    assert due(decided(made), "other_budget", after) == []


def test_budgets_that_afford_their_full_entropy_either_way_and_costs_of_the_user_s_stay() -> None:
    assert due(decided(10**9), "other_budget", Facts(0.25, expected_decisions=10**7, entropy_costs=(0.4, 0.1))) == []
    assert due(decided(10), "other_budget", Facts(0.25, entropy_costs=(0.4, 0.1))) == []
    assert due(decided(10), "other_budget", Facts(0.05, expected_decisions=10**7, entropy_costs=(0.4, 0.1))) != []
    assert due(decided(10), "other_budget", Facts(0.04, expected_decisions=10**7, entropy_costs=(0.4, 0.1))) == []
    assert due(decided(10), "other_budget", Facts(expected_decisions=10**7, entropy_costs=(0.4, 0.1))) == []
