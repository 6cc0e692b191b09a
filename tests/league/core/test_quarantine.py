"""Snapshots whose weights cannot be had: nobody meets them, what is known of them stays, and the league goes on."""

from __future__ import annotations

import numpy as np
import pytest

from league.core.directives import view_of
from league.core.leases import rating_assignments
from league.core.matchmaking.roles import matchmaker_of
from league.core.metagame.meta_game import mixture_weights
from league.core.metagame.ratings import league_ratings
from league.core.quarantine import restart_sources
from league.core.state.commands import ConfirmReset, ConfirmSnapshot, QuarantineSnapshot, Refused, RestoreSnapshot
from league.core.state.events import DirectiveDropped, DirectiveIssued, Event, SnapshotQuarantined, SnapshotRestored
from league.core.state.league_config import GateConfig
from league.core.state.records import Directive
from league.core.state.state import LeagueState, digest, from_plain, to_plain
from tests.league.core.simulated_league import DIGEST, SimulatedLeague, three_roles

ALWAYS_RESET = GateConfig(test={"min_games": 4}, min_steps=1_000, timeout_steps=2_000, reset_probability=1.0)
GONE = "its weights.safetensors is corrupt"


def grown() -> SimulatedLeague:
    """A league in which every player has a few snapshots."""
    league = SimulatedLeague(three_roles())
    league.run(200)
    assert all(player.num_snapshots >= 3 for player in league.state.players.values())
    return league


def met_by(state: LeagueState, player: str) -> set[str]:
    """Whom a player may meet, over many draws."""
    view, rng = view_of(state, player), np.random.default_rng(0)
    probabilities = sum(matchmaker_of(state.config_of(player)).opponents(view, rng) for _ in range(20))
    return {state.population.names[number] for number in np.flatnonzero(probabilities)}


def test_nobody_meets_a_quarantined_snapshot_or_must_beat_it_and_no_rating_game_names_it() -> None:
    league = grown()
    state = league.state
    assert "main-0-s1" in met_by(state, "main-0")
    assert league.ask(QuarantineSnapshot("main-0-s1", GONE)) == [SnapshotQuarantined("main-0-s1", GONE)]
    gone = state.population.index["main-0-s1"]
    for name in state.players:
        view = view_of(state, name)
        assert "main-0-s1" not in met_by(state, name)
        assert gone not in matchmaker_of(state.config_of(name)).gate_opponents(view)
    rng = np.random.default_rng(1)
    rated = {
        policy
        for _ in range(200)
        for assignment in rating_assignments(state, rng, settles=False)
        for policy in assignment.policies
    }
    assert "main-0-s1" not in rated
    assert "main-0-s0" in rated
    weights = mixture_weights(state)
    assert weights is None or weights[gone] == 0.0


def test_games_with_a_quarantined_snapshot_still_count_in_the_ratings() -> None:
    league = grown()
    before = {row.policy: (row.elo, row.games) for row in league_ratings(league.state)}
    league.ask(QuarantineSnapshot("main-0-s1", GONE))
    assert {row.policy: (row.elo, row.games) for row in league_ratings(league.state)} == before


def test_a_snapshot_is_set_aside_once_and_taken_back_once() -> None:
    league = grown()
    met = met_by(league.state, "main-0")
    for refused in (RestoreSnapshot("main-0-s1"), QuarantineSnapshot("main-9-s1", GONE)):
        with pytest.raises(Refused):
            league.ask(refused)
    league.ask(QuarantineSnapshot("main-0-s1", GONE))
    with pytest.raises(Refused, match="set aside already"):
        league.ask(QuarantineSnapshot("main-0-s1", GONE))
    assert league.ask(RestoreSnapshot("main-0-s1")) == [SnapshotRestored("main-0-s1")]
    assert met_by(league.state, "main-0") == met
    assert not league.state.population.absent


def test_a_quarantine_outlives_the_stored_state() -> None:
    league = grown()
    league.ask(QuarantineSnapshot("main-0-s1", GONE))
    again = from_plain(to_plain(league.state))
    assert digest(again) == digest(league.state)
    assert not again.is_present("main-0-s1")
    assert again.population.snapshots().tolist() == league.state.population.snapshots().tolist()
    assert again.population.frozen().tolist() == league.state.population.frozen().tolist()


def reset_order(league: SimulatedLeague) -> Directive:
    """The reset order after a snapshot, in a league that resets after every one."""
    league.confirm_directives()
    for _ in range(50):
        for player in league.state.players:
            league.train(player, 400)
        for directive in list(league.state.directives.values()):
            steps = league.state.players[directive.player].trained_steps
            issued = league.ask(ConfirmSnapshot(directive.directive_id, DIGEST, 1, steps))[1:]
            for event in issued:
                assert isinstance(event, DirectiveIssued)
                return event.directive
    raise AssertionError("no reset was ordered")


def test_a_reset_from_a_quarantined_snapshot_gets_another_source_with_a_sentence() -> None:
    league = SimulatedLeague(three_roles(gate=ALWAYS_RESET))
    directive = reset_order(league)
    assert directive.source is not None
    events: list[Event] = league.ask(QuarantineSnapshot(directive.source, GONE))
    dropped, issued = events[1:]
    assert isinstance(dropped, DirectiveDropped) and dropped.directive_id == directive.directive_id
    assert isinstance(issued, DirectiveIssued) and issued.directive.player == directive.player
    assert issued.directive.source not in (None, directive.source)
    assert f"the weights of {directive.source} cannot be had" in issued.directive.reason
    league.ask(ConfirmReset(issued.directive.directive_id))
    assert league.state.players[directive.player].parent == issued.directive.source


def test_a_player_continues_from_the_nearest_ancestor_whose_weights_are_there() -> None:
    league = grown()
    state = league.state
    newest, before, first = (f"main-0-s{state.players['main-0'].num_snapshots - back}" for back in (1, 2, 3))
    assert next(restart_sources(state, "main-0")) == newest
    league.ask(QuarantineSnapshot(newest, GONE))
    assert next(restart_sources(state, "main-0")) == before
    league.ask(QuarantineSnapshot(before, GONE))
    assert next(restart_sources(state, "main-0")) == first


def test_when_all_of_a_players_snapshots_are_gone_nothing_is_left_to_start_from() -> None:
    league = grown()
    for name in [name for name, known in league.state.snapshots.items() if known.player == "main-0"]:
        league.ask(QuarantineSnapshot(name, GONE))
    assert list(restart_sources(league.state, "main-0")) == []
    assert met_by(league.state, "main-0")
