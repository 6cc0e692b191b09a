"""Retired snapshots: what the league still needs stays, older ones thin out, and what is known of them remains."""

from __future__ import annotations

import numpy as np
import pytest

from league.core.metagame.ratings import league_ratings, strongest
from league.core.retention import NEWEST_KEPT, RETIRED, needed_snapshots
from league.core.state.commands import Refused, RetireSnapshots
from league.core.state.events import SnapshotRetired
from league.core.state.league_config import GateConfig
from league.core.state.state import LeagueState, digest, from_plain, to_plain
from tests.league.core.simulated_league import SimulatedLeague, three_roles

OFTEN = GateConfig(test={"min_games": 4}, min_steps=400, timeout_steps=400, reset_probability=0.1)


def grown(leases: int = 300) -> SimulatedLeague:
    """A league with many snapshots of each player."""
    league = SimulatedLeague(three_roles(gate=OFTEN))
    league.run(leases)
    assert len(league.state.snapshots) > 60
    return league


def present(state: LeagueState) -> list[str]:
    return [state.population.names[int(number)] for number in state.population.snapshots()]


def test_a_league_above_its_limit_falls_below_it_and_games_and_ratings_stay() -> None:
    league = grown()
    state = league.state
    games = {row.policy: row.games for row in league_ratings(state)}
    cells = len(state.payoff)
    events = league.ask(RetireSnapshots(40))
    assert all(isinstance(event, SnapshotRetired) and event.reason.startswith(RETIRED) for event in events)
    assert len(present(state)) == 38
    assert {row.policy: row.games for row in league_ratings(state)} == games
    assert len(state.payoff) == cells
    with pytest.raises(Refused):
        league.ask(RetireSnapshots(40))
    assert digest(from_plain(to_plain(state))) == digest(state)


def test_what_something_open_refers_to_the_ends_and_the_strongest_stay() -> None:
    league = grown()
    state = league.state
    lease = league.grant()
    needed = needed_snapshots(state)
    best = strongest(league_ratings(state))
    assert best is not None and best.policy in needed
    for player in state.players.values():
        own = [name for name, known in state.snapshots.items() if known.player == player.name]
        assert {player.parent, player.initial, own[0], *own[-NEWEST_KEPT:]} <= needed.keys()
    met = {name for assignment in lease.assignments for name in assignment.policies if name in state.snapshots}
    league.ask(RetireSnapshots(2))
    assert met | needed.keys() <= set(present(state))
    assert set(present(state)) == needed.keys()


def test_the_newest_stand_close_together_and_the_oldest_far_apart() -> None:
    league = grown(600)
    state = league.state
    for _ in range(4):
        league.run(100)
        league.ask(RetireSnapshots(50))
    player = max(state.players.values(), key=lambda player: player.num_snapshots)
    kept = np.array([int(name.rpartition("-s")[2]) for name in present(state) if name.startswith(f"{player.name}-s")])
    gaps = np.diff(kept)
    assert kept[0] == 0 and kept[-1] == player.num_snapshots - 1
    assert gaps[: len(gaps) // 2].mean() > 2.0 * gaps[len(gaps) // 2 :].mean()
    assert gaps[-NEWEST_KEPT + 1 :].max() == 1


def test_a_league_continues_below_its_limit() -> None:
    league = grown()
    for _ in range(10):
        league.ask(RetireSnapshots(30))
        league.run(40)
    assert len(present(league.state)) < 70 < len(league.state.snapshots)
