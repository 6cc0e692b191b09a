"""Lineage: parents, resets, transplants, forks, changed values and the opponent mix of opponents."""

from __future__ import annotations

import dataclasses

import pytest

from league.core.metagame.lineage import LineageNode, lineage_of
from league.core.state.commands import (
    ConfirmSnapshot,
    ConfirmTransplant,
    FinishLease,
    ImportPolicy,
    NoteFork,
    SaveCheckpoint,
)
from league.core.state.events import DirectiveIssued, LeaseFinished, SnapshotAdded
from league.core.state.league_config import GateConfig, LeagueConfig, PlayerConfig, RatingConfig
from league.core.state.population_config import HyperparameterConfig, PbtConfig
from tests.league.core.simulated_league import SimulatedLeague, outcome_of, three_roles

DIGEST = "2" * 64


def descents(league: SimulatedLeague) -> dict[str, LineageNode]:
    return {descent.snapshot: descent for descent in lineage_of(league.journal).descents}


def test_every_snapshot_is_there_with_its_parent_and_how_it_came() -> None:
    league = SimulatedLeague(three_roles())
    league.run(150)
    found = descents(league)
    assert list(found) == list(league.state.snapshots)
    for name, snapshot in league.state.snapshots.items():
        assert (found[name].parent, found[name].player) == (snapshot.parent, snapshot.player)
    assert {found[name].kind for name in found if name.endswith("-s0")} == {"first"}
    assert {found[name].kind for name in found if name.startswith("main-0-s") and name != "main-0-s0"} == {"trained"}
    exploiters = [found[name] for name in found if name.startswith("main-exploiter-0-s")][2:]
    assert exploiters
    assert {(descent.kind, descent.parent) for descent in exploiters} == {("reset", "main-exploiter-0-s0")}


def test_a_snapshot_has_the_evidence_that_its_gate_wrote_into_the_journal() -> None:
    league = SimulatedLeague(three_roles())
    league.run(150)
    asked = {event.directive.directive_id: event for event in league.journal if isinstance(event, DirectiveIssued)}
    added = [event for event in league.journal if isinstance(event, SnapshotAdded)]
    found = descents(league)
    for event in added:
        directive, descent = asked[event.directive_id], found[event.snapshot.snapshot_id]
        assert (descent.evidence, descent.gate_opponents) == (directive.evidence, directive.gate_opponents)
    judged = [descent for descent in found.values() if descent.reason in ("gate", "timeout")]
    assert judged
    assert all(
        descent.evidence and descent.gate_opponents and descent.evidence[0].unbeaten is not None for descent in judged
    )
    assert not any(descent.evidence for descent in found.values() if descent.reason == "initial")


def test_the_opponent_mix_holds_every_game_of_a_players_leases_once() -> None:
    league = SimulatedLeague(three_roles())
    league.run(150)
    for player in league.state.players:
        league.train(player, 6_000)
    league.confirm_directives()
    met = sum(row.games for descent in descents(league).values() for row in descent.opponent_mix)
    rated = league.state.totals.rating_games
    assert met == league.state.totals.games - rated
    assert sum(isinstance(event, LeaseFinished) for event in league.journal) == 150


def test_the_score_against_an_opponent_counts_wins_and_half_the_draws_and_self_play_is_even() -> None:
    league = SimulatedLeague(LeagueConfig(ratings=RatingConfig(step_fraction=0.0)))
    league.confirm_directives()
    lease = league.grant()
    outcomes = (
        outcome_of(("main-exploiter-0-s0", "main-0"), (0, 1), games=4, winners=[1, 1, 0, None]),
        outcome_of(("main-0", "main-0"), (0, 1), games=6, winners=[0] * 5 + [1]),
    )
    league.ask(FinishLease(lease.lease_id, lease.token, 10, outcomes))
    league.train("main-0", 4_000_000)
    league.confirm_directives()
    opponent_mix = descents(league)["main-0-s1"].opponent_mix
    assert [(row.opponent, row.games, row.score) for row in opponent_mix] == [
        ("main-0", 6, 3.0),
        ("main-exploiter-0-s0", 4, 2.5),
    ]


def transplanted() -> SimulatedLeague:
    pbt = PbtConfig(
        selection="elo_gap",
        hyperparameters=(HyperparameterConfig("learning_rate"),),
        period_steps=100,
        burn_in_steps=0,
        min_games=1,
    )
    group = PlayerConfig(count=2, gate=GateConfig(min_steps=1_000, timeout_steps=1_000))
    league = SimulatedLeague(LeagueConfig(players=(group,), pbt=pbt, ratings=RatingConfig(step_fraction=0.0)))
    league.confirm_directives()
    for name in ("main-0", "main-1"):
        league.ask(SaveCheckpoint(name, DIGEST, 1, 1))
    lease = league.grant()
    outcome = outcome_of(("main-0", "main-1"), (0, 1), games=50, winners=[1] * 50)
    league.ask(FinishLease(lease.lease_id, lease.token, 10, (outcome,)))
    (directive,) = (event.directive for event in league.train("main-0", 100) if isinstance(event, DirectiveIssued))
    league.ask(ConfirmTransplant(directive.directive_id, DIGEST, 2, 100))
    (directive,) = (event.directive for event in league.train("main-0", 1_000) if isinstance(event, DirectiveIssued))
    league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 3, 1_100))
    return league


def test_a_transplant_is_shown_with_its_donor_and_the_values_that_changed() -> None:
    league = transplanted()
    descent = descents(league)["main-0-s1"]
    assert (descent.kind, descent.donor, descent.parent) == ("transplant", "main-1", "main-1-s0")
    ((name, before, after),) = descent.changes
    assert name == "learning_rate"
    assert before == league.journal[2].hyperparameters[0].value
    assert after == league.state.players["main-0"].hyperparameters[0].value
    assert before != after


def test_ancestors_go_back_to_the_first_weights_and_teachers_are_those_of_the_whole_line() -> None:
    league = transplanted()
    lineage = lineage_of(league.journal)
    line = lineage.line_of("main-0-s1")
    assert [descent.snapshot for descent in line.descents] == ["main-1-s0", "main-0-s1"]
    assert [(meal.opponent, meal.games) for meal in line.opponent_mix] == [("main-1", 50)]
    with pytest.raises(KeyError):
        lineage.line_of("nobody-s0")


def test_forks_and_imported_policies_are_part_of_it() -> None:
    league = SimulatedLeague(dataclasses.replace(three_roles()))
    league.confirm_directives()
    league.ask(NoteFork("runs/before", 17, "ab"))
    league.ask(ImportPolicy("imported:opponent", DIGEST))
    lineage = lineage_of(league.journal)
    assert [(fork.run, fork.event, fork.after) for fork in lineage.forks] == [("runs/before", 17, 3)]
    assert lineage.descents[-1].kind == "outside"
