"""Gates, snapshots, resets and checkpoints: what is ordered when, and what a confirmation changes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from league.core.gates.e_values import evidence_against
from league.core.gates.gates import Trial, gate_of
from league.core.league import apply, decide
from league.core.state.built_ins import GATES
from league.core.state.commands import (
    Command,
    ConfirmReset,
    ConfirmSnapshot,
    CreateLeague,
    FinishLease,
    Refused,
    ReportProgress,
    RequestSnapshot,
    SaveCheckpoint,
    StartRun,
)
from league.core.state.events import DirectiveIssued, Event, PlayerReset, RunStarted, SnapshotAdded
from league.core.state.league_config import GateConfig, LeagueConfig, PayoffConfig, PlayerConfig
from league.core.state.payoff import Posterior
from league.core.state.records import Directive, Progress
from league.core.state.state import LeagueState, digest, from_plain, to_plain
from tests.league.core.gates.gate_cases import evidence_of_games
from tests.league.core.own_components import OWN_GATE
from tests.league.core.simulated_league import DIGEST, SimulatedLeague, outcome_of, three_roles

ALWAYS_RESET = GateConfig(test={"min_games": 4}, min_steps=1_000, timeout_steps=6_000, reset_probability=1.0)


def ready(gate: GateConfig | None = None) -> SimulatedLeague:
    league = SimulatedLeague(three_roles(gate=gate) if gate else three_roles())
    league.confirm_directives()
    return league


def directives_in(events: list[Event]) -> list[Directive]:
    return [event.directive for event in events if isinstance(event, DirectiveIssued)]


def refused(league: SimulatedLeague, command: Command) -> str:
    before = digest(league.state)
    with pytest.raises(Refused) as caught:
        league.ask(command)
    assert digest(league.state) == before
    return str(caught.value)


def beat(league: SimulatedLeague, home: str, away: str, *, wins: int, losses: int) -> list[Event]:
    """Games of `home` against `away`, both seats."""
    while True:
        lease = league.grant("train")
        if lease.home == home:
            break
        league.finish(lease, games=0, env_steps=1_000)
    winners = [0] * wins + [1] * losses
    outcome = outcome_of((home, away), (0, 1), games=len(winners), winners=winners)
    return league.ask(FinishLease(lease.lease_id, lease.token, 1_000, (outcome,)))


def test_a_new_league_freezes_the_first_weights_of_every_player() -> None:
    league = SimulatedLeague(three_roles(count=2))
    assert [directive.reason for directive in league.state.directives.values()] == ["initial"] * 6
    league.confirm_directives()
    assert list(league.state.snapshots) == [f"{name}-s0" for name in league.state.players]
    assert all(player.initial == f"{name}-s0" for name, player in league.state.players.items())
    assert all(snapshot.parent is None for snapshot in league.state.snapshots.values())


def test_the_gate_waits_for_min_steps_then_for_the_timeout() -> None:
    league = ready()
    assert not directives_in(league.train("main-0", 999))
    assert not directives_in(league.train("main-0", 5_000))
    (directive,) = directives_in(league.train("main-0", 1))
    assert (directive.kind, directive.reason, directive.player) == ("snapshot", "timeout", "main-0")


def test_the_gate_fires_once_every_opponent_is_beaten_and_writes_its_evidence() -> None:
    league = ready()
    beat(league, "main-exploiter-0", "main-0", wins=30, losses=2)
    events = league.train("main-exploiter-0", 1_500)
    (issued,) = [event for event in events if isinstance(event, DirectiveIssued)]
    assert issued.directive.reason == "gate"
    (evidence,) = issued.evidence
    assert evidence.opponent == "main-0"
    assert 0.7 < evidence.lower < evidence.mean < 0.95
    assert evidence.games == pytest.approx(32, abs=0.1)


def test_the_gate_is_judged_when_a_lease_is_answered_too() -> None:
    league = ready()
    beat(league, "main-exploiter-0", "main-0", wins=10, losses=8)
    assert not directives_in(league.train("main-exploiter-0", 1_500))
    beat(league, "main-exploiter-0", "main-0", wins=60, losses=0)
    assert directives_in(beat(league, "main-exploiter-0", "main-0", wins=1, losses=0))


def evidence(league: SimulatedLeague, player: str) -> dict[str, float]:
    """Log e-value against each policy's being unbeaten by a player, without those of no games."""
    population = league.state.population
    found = evidence_against(league.state, player, np.arange(len(population)))
    assert found is not None
    return {population.names[number]: float(value) for number, value in enumerate(found) if value}


def test_a_stored_state_carries_on_with_the_evidence_of_gates() -> None:
    league = ready()
    beat(league, "main-exploiter-0", "main-0", wins=30, losses=2)
    beat(league, "main-0", "main-exploiter-0-s0", wins=3, losses=30)
    assert evidence(league, "main-exploiter-0")["main-0"] > 2.0
    assert evidence(league, "main-0")["main-exploiter-0-s0"] < 0.0
    stored = from_plain(to_plain(league.state))
    assert digest(stored) == digest(league.state)
    league.ask(StartRun())
    assert list(evidence(league, "main-exploiter-0")) == ["main-0"]


def test_a_reset_voids_the_evidence_of_a_player_and_against_it() -> None:
    league = ready()
    beat(league, "main-exploiter-0", "main-0", wins=30, losses=2)
    beat(league, "main-0", "league-exploiter-0-s0", wins=30, losses=2)
    assert set(evidence(league, "main-0")) == {"main-exploiter-0", "league-exploiter-0-s0"}
    league.train("main-exploiter-0", 10_000)
    league.confirm_directives()
    assert evidence(league, "main-exploiter-0") == {}
    assert set(evidence(league, "main-0")) == {"league-exploiter-0-s0"}


def test_a_journal_of_before_folds_to_a_state_without_carried_evidence() -> None:
    league = ready()
    beat(league, "main-exploiter-0", "main-0", wins=30, losses=2)
    old = LeagueState()
    for event in league.journal:
        apply(old, RunStarted(event.token) if isinstance(event, RunStarted) else event)
    assert not old.carries_evidence and not old.gate_evidence
    assert evidence_against(old, "main-exploiter-0", np.arange(3)) is None
    apply(old, RunStarted(2, carries_evidence=True))
    assert evidence_against(old, "main-exploiter-0", np.arange(3)).tolist() == [0.0] * 3  # type: ignore[union-attr]


def test_one_opponent_not_beaten_holds_the_gate() -> None:
    league = ready()
    for opponent in ("main-0-s0", "main-exploiter-0-s0"):
        beat(league, "main-0", opponent, wins=30, losses=0)
    assert not directives_in(league.train("main-0", 1_500)), "league-exploiter-0-s0 is unmeasured"
    beat(league, "main-0", "league-exploiter-0-s0", wins=3, losses=0)
    assert not directives_in(league.train("main-0", 1)), "three games are not enough"
    beat(league, "main-0", "league-exploiter-0-s0", wins=8, losses=0)
    assert directives_in(league.train("main-0", 1))


def test_one_order_at_a_time() -> None:
    league = ready()
    assert directives_in(league.train("main-0", 6_000))
    assert not directives_in(league.train("main-0", 6_000))
    league.confirm_directives()
    assert not directives_in(league.train("main-0", 5_999)), "steps count from the snapshot"


def test_a_snapshot_comes_before_the_reset_and_holds_the_weights_before_it() -> None:
    league = ready()
    (directive,) = directives_in(league.train("main-exploiter-0", 6_000))
    added, issued = league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 7, 6_000))
    assert isinstance(added, SnapshotAdded)
    assert isinstance(issued, DirectiveIssued)
    assert (added.snapshot.snapshot_id, added.snapshot.parent) == ("main-exploiter-0-s1", "main-exploiter-0-s0")
    assert (issued.directive.kind, issued.directive.source) == ("reset", "main-exploiter-0-s0")
    (reset,) = league.ask(ConfirmReset(issued.directive.directive_id))
    assert reset == PlayerReset(issued.directive.directive_id, "main-exploiter-0", "main-exploiter-0-s0")
    player = league.state.players["main-exploiter-0"]
    assert (player.generation, player.parent) == (1, "main-exploiter-0-s0")


def test_an_exploiter_may_start_again_from_the_newest_main_agent() -> None:
    league = ready(GateConfig(min_steps=1_000, timeout_steps=6_000, reset_to="main"))
    assert directives_in(league.train("main-0", 6_000))
    league.confirm_directives()
    (directive,) = directives_in(league.train("main-exploiter-0", 6_000))
    _, issued = league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 7, 6_000))
    assert isinstance(issued, DirectiveIssued)
    assert issued.directive.source == "main-0-s1"
    league.confirm_directives()
    assert league.state.players["main-exploiter-0"].parent == "main-0-s1"


def test_a_main_agent_is_never_reset_and_a_league_exploiter_in_a_quarter_of_the_cases() -> None:
    league = ready()
    for _ in range(200):
        for player in ("main-0", "league-exploiter-0"):
            league.train(player, 6_000)
        league.confirm_directives()
    assert league.state.players["main-0"].generation == 0
    assert 30 <= league.state.players["league-exploiter-0"].generation <= 70


def test_a_player_that_waits_for_its_reset_is_not_leased() -> None:
    league = ready()
    (directive,) = directives_in(league.train("main-exploiter-0", 6_000))
    league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 7, 6_000))
    assert {league.grant("train").home for _ in range(12)} == {"main-0", "league-exploiter-0"}
    league.confirm_directives()
    assert league.grant("train").home == "main-exploiter-0"


def test_a_reset_voids_what_was_known_of_the_old_weights() -> None:
    league = ready(ALWAYS_RESET)
    beat(league, "main-exploiter-0", "main-0", wins=30, losses=2)
    league.ask(SaveCheckpoint("main-exploiter-0", DIGEST, 3, 100))
    league.train("main-exploiter-0", 6_000)
    lease = next(lease for _ in range(20) if (lease := league.grant("train")).home == "main-exploiter-0")
    league.confirm_directives()
    payoff, staleness_clock = league.state.payoff, league.state.population.staleness_clock.values
    me, main = (league.state.players[name].policy for name in ("main-exploiter-0", "main-0"))
    assert payoff.posterior(me, staleness_clock).games[main] == 0.0
    assert payoff.posterior(main, staleness_clock).games[me] == 0.0
    assert payoff.seat_totals(me, main).sum() == 32
    assert league.state.players["main-exploiter-0"].checkpoint is None
    late = outcome_of(("main-exploiter-0", "main-0"), (0, 1), games=5, winners=[0] * 5)
    league.ask(FinishLease(lease.lease_id, lease.token, 10, (late,)))
    assert payoff.posterior(me, staleness_clock).games[main] == 0.0, "a lease of the old weights"
    assert payoff.seat_totals(me, main).sum() == 37


def test_a_learner_may_fall_back_to_its_checkpoint_and_evidence_ages_both_ways() -> None:
    league = ready()
    league.train("main-0", 800)
    league.ask(ReportProgress(Progress("main-0", 1, 300)))
    player = league.state.players["main-0"]
    assert (player.version, player.trained_steps) == (1, 300)
    assert league.state.population.staleness_clock.values[player.policy] == 1_300


def test_a_snapshot_asked_for_is_taken_once_and_followed_by_no_reset() -> None:
    league = ready()
    (directive,) = directives_in(league.ask(RequestSnapshot("main-exploiter-0", "final")))
    assert league.ask(RequestSnapshot("main-exploiter-0", "final")) == []
    assert len(league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 1, 1))) == 1
    assert league.state.snapshots["main-exploiter-0-s1"].reason == "final"


def test_weights_about_to_be_thrown_away_are_not_frozen_again() -> None:
    league = ready()
    (directive,) = directives_in(league.train("main-exploiter-0", 6_000))
    league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 7, 6_000))
    assert "reset" in refused(league, RequestSnapshot("main-exploiter-0", "final"))


@pytest.mark.parametrize("given", [None, 77.0])
def test_old_games_fade_with_the_snapshots_of_a_main_agent_where_gates_are_far(given: float | None) -> None:
    far = GateConfig(min_steps=10**9, timeout_steps=10**9)
    payoff = PayoffConfig(half_life_steps=given, half_life_snapshots=3.0)
    league = SimulatedLeague(replace(three_roles(gate=far), payoff=payoff))
    league.confirm_directives()
    assert league.state.payoff.half_life_steps == (given or 10**9)
    for player in ("main-0", "main-0", "main-exploiter-0"):
        league.train(player, 500)
        league.ask(RequestSnapshot(player, "final"))
        league.confirm_directives()
    assert league.state.payoff.half_life_steps == (given or 1_500.0)
    league.ask(RequestSnapshot("main-0", "final"))
    league.confirm_directives()
    assert league.state.payoff.half_life_steps == (given or 1_000.0), "one more at once does not forget everything"


def test_confirmations_count_once_and_only_for_their_kind() -> None:
    league = ready()
    (directive,) = directives_in(league.train("main-exploiter-0", 6_000))
    refused(league, ConfirmReset(directive.directive_id))
    refused(league, ConfirmSnapshot(directive.directive_id, DIGEST, -1, 0))
    league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 7, 6_000))
    refused(league, ConfirmSnapshot(directive.directive_id, DIGEST, 7, 6_000))
    refused(league, ConfirmSnapshot(directive.directive_id + 1, DIGEST, 7, 6_000))


@pytest.mark.parametrize(
    "command",
    [
        ReportProgress(Progress("nobody", 1, 1)),
        ReportProgress(Progress("main-0", -1, 1)),
        RequestSnapshot("nobody", "final"),
        RequestSnapshot("main-0", "gate"),
        SaveCheckpoint("nobody", DIGEST, 1, 1),
        CreateLeague(0, 2, (0, 1), three_roles()),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_does_not_fit_the_league_is_refused(command: Command) -> None:
    refused(ready(), command)


@pytest.mark.parametrize(
    "command", [StartRun(), CreateLeague(0, 2, (0,), three_roles()), CreateLeague(0, 0, (), three_roles())]
)
def test_a_league_is_founded_first_and_with_seats_that_fit(command: Command) -> None:
    with pytest.raises(Refused):
        decide(LeagueState(), command, np.random.default_rng(0))


def test_open_orders_survive_a_restart() -> None:
    league = ready()
    (directive,) = directives_in(league.train("main-exploiter-0", 6_000))
    league.ask(StartRun())
    assert league.state.open_directives("main-exploiter-0") == [directive]


def trial(*, steps: int, mean: list[float], games: float) -> Trial:
    rates = np.array(mean)
    posterior = Posterior(rates * (games + 2), (1 - rates) * (games + 2), np.full(len(mean), games))
    names = {i: f"opponent-{i}" for i in range(len(mean))}
    settings = GateConfig(min_steps=10, timeout_steps=100)
    evidence = evidence_of_games(rates * games, (1 - rates) * games)
    return Trial(steps, np.arange(len(mean)), names, posterior, settings, evidence)


@pytest.mark.parametrize("name", [*sorted(GATES), OWN_GATE])
def test_every_gate_holds_to_the_timeout_and_to_clear_cases(name: str) -> None:
    gate = gate_of(GateConfig(test=name))
    assert gate(trial(steps=50, mean=[0.9, 0.95], games=1_000)).reason == "gate"  # type: ignore[union-attr]
    assert gate(trial(steps=50, mean=[0.9, 0.4], games=1_000)) is None
    assert gate(trial(steps=50, mean=[0.9, 0.95], games=1)) is None
    assert gate(trial(steps=50, mean=[], games=1)) is None
    assert gate(trial(steps=100, mean=[], games=1)).reason == "timeout"  # type: ignore[union-attr]
    verdict = gate(trial(steps=100, mean=[0.9, 0.4], games=1_000))
    assert verdict is not None
    assert [evidence.opponent for evidence in verdict.evidence] == ["opponent-1", "opponent-0"]


def test_the_newest_games_of_a_player_that_begins_again_end_its_life() -> None:
    """A counter that beat the main agent at last was held back by the games of its beginning."""
    league = ready(GateConfig(test="threshold", min_steps=1_000, timeout_steps=10**6, reset_probability=1.0))
    beat(league, "main-exploiter-0", "main-0", wins=0, losses=5_000)
    assert not directives_in(league.train("main-exploiter-0", 2_000))
    beat(league, "main-exploiter-0", "main-0", wins=4_000, losses=0)
    home = league.state.players["main-exploiter-0"].policy
    assert league.state.posterior(home).mean[league.state.players["main-0"].policy] < 0.5
    (directive,) = directives_in(league.train("main-exploiter-0", 3_000))
    assert (directive.kind, directive.reason) == ("snapshot", "gate")


def test_the_newest_games_do_not_count_alone_where_others_were_met() -> None:
    league = ready(GateConfig(test="threshold", min_steps=1_000, timeout_steps=10**6, reset_probability=1.0))
    beat(league, "main-exploiter-0", "main-0", wins=0, losses=5_000)
    beat(league, "main-exploiter-0", "main-0-s0", wins=2_000, losses=0)
    assert not directives_in(league.train("main-exploiter-0", 3_000))


def test_of_several_opponents_each_counts_for_itself() -> None:
    """The newest games are counted together, so that one opponent that is beaten could hide another that is not."""
    gate = GateConfig(test="threshold", min_steps=1_000, timeout_steps=10**6, reset_probability=1.0)
    main, exploiter = PlayerConfig(count=2), PlayerConfig(role="main_exploiter", gate=gate)
    league = SimulatedLeague(LeagueConfig(players=(main, exploiter)))
    league.confirm_directives()
    beat(league, "main-exploiter-0", "main-0", wins=900, losses=0)
    beat(league, "main-exploiter-0", "main-1", wins=40, losses=60)
    assert not directives_in(league.train("main-exploiter-0", 2_000))
