"""Every population does what it promises in every shape of game, through the daemon, as its journal tells."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from league.core.metagame.ratings import league_ratings
from league.core.state.events import (
    DirectiveIssued,
    Event,
    LeaseGranted,
    MixtureSolved,
    PlayerReset,
    PlayerTransplanted,
    SnapshotAdded,
)
from league.core.state.population_config import PopulationConfig
from league.core.state.presets import pbt
from league.core.state.state import LeagueState
from league.see.reports.verify import verify_run
from tests.league.core.simulated_league import env_steps_of
from tests.league.tiny_runs import events_of, start, state_of, tiny

GAMES = {
    "two seats in turns": "connect_four",
    "hidden cards": "kuhn_poker",
    "three seats": "three_seat_rock_paper_scissors",
    "two against two": "team_rock_paper_scissors",
}
SAVE_STEPS = 120
ENV_STEPS = {"alphastar": 4_000, "psro": 4_000, "pbt": 4_000}
"""Env steps until something has happened that is rare: a reset, several mixtures, a copy; 2,000 where none is given."""
WINDOW = 3
SIGMAS = 4.0
"""Deviations by which drawn shares may miss their expectation."""

Shares = dict[str, float]


@dataclass(frozen=True)
class Meeting:
    """One training lease: whose, the shares of whom it meets, and the snapshots and the mixture there were then."""

    home: str
    shares: Shares
    past: tuple[str, ...]
    mixture: Shares


@dataclass(frozen=True)
class Played:
    """What a run left behind."""

    state: LeagueState
    events: list[Event]
    meetings: list[Meeting]

    def of(self, home: str) -> list[Meeting]:
        """The meetings of one player after the first snapshots were there: before them everybody meets itself."""
        return [meeting for meeting in self.meetings if meeting.home == home and meeting.past]


def meetings_of(events: list[Event]) -> list[Meeting]:
    """Every training lease with what could have been met under it."""
    past: list[str] = []
    mixture: Shares = {}
    found = []
    for event in events:
        if isinstance(event, SnapshotAdded):
            past.append(event.snapshot.snapshot_id)
        elif isinstance(event, MixtureSolved):
            mixture = {member.policy: member.weight for member in event.members}
        elif isinstance(event, LeaseGranted) and event.lease.home is not None:
            shares: Shares = defaultdict(float)
            for assignment in event.lease.assignments:
                others = set(assignment.policies) - {event.lease.home}
                assert len(others) <= 1, "one opponent takes all seats of the other teams"
                shares[next(iter(others), event.lease.home)] += assignment.probability
            found.append(Meeting(event.lease.home, dict(shares), tuple(past), dict(mixture)))
    return found


def role_of(state: LeagueState, policy: str) -> str:
    """The role of whoever made a policy."""
    return state.players[state.snapshots[policy].player if policy in state.snapshots else policy].role


def near_expectation(drawn: list[Shares], expected: list[Shares], *, unit: float) -> None:
    """Opponents drawn lease by lease in parts of `unit` are met as often as they should be."""
    for policy in {name for shares in expected for name in shares}:
        wanted = np.array([shares.get(policy, 0.0) for shares in expected])
        met = sum(shares.get(policy, 0.0) for shares in drawn)
        spread = float(np.sqrt((wanted * np.maximum(unit - wanted, 0.0)).sum()))
        assert abs(met - wanted.sum()) <= SIGMAS * spread + 0.1, policy


def alphastar_promise(played: Played) -> None:
    state = played.state
    for meeting in played.of("main-0"):
        self_play = meeting.shares["main-0"]
        assert self_play == pytest.approx(0.35) or self_play == pytest.approx(0.5), "0.15 where nothing is to verify"
        assert set(meeting.shares) - {"main-0"} <= set(meeting.past)
    exploited = {policy for meeting in played.of("main-exploiter-0") for policy in meeting.shares}
    assert {role_of(state, policy) for policy in exploited} == {"main_agent"}
    assert "main-0" in exploited
    met = {policy for meeting in played.of("league-exploiter-0") for policy in meeting.shares}
    assert met <= set(state.snapshots)
    assert len({role_of(state, policy) for policy in met}) > 1
    steps = env_steps_of(state)
    assert steps["main-0"] / sum(steps.values()) == pytest.approx(0.5, abs=0.1)
    resets = [place for place, event in enumerate(played.events) if isinstance(event, PlayerReset)]
    assert resets
    for place in resets:
        event = played.events[place]
        assert isinstance(event, PlayerReset)
        assert event.player != "main-0"
        frozen = [e.snapshot for e in played.events[:place] if isinstance(e, SnapshotAdded)]
        last = next(snapshot for snapshot in reversed(frozen) if snapshot.player == event.player)
        assert last.reason in ("gate", "timeout"), "the weights are frozen before they are thrown away"
        assert event.source == state.players[event.player].initial


def openai_five_promise(played: Played) -> None:
    for meeting in played.of("main-0"):
        assert meeting.shares["main-0"] == pytest.approx(0.8)
        assert set(meeting.shares) - {"main-0"} <= set(meeting.past)
    qualities = played.state.qualities["main-0"].values
    assert qualities.min() < 0.0, "a snapshot that is beaten loses quality"
    assert qualities.max() <= 0.0


def self_play_promise(played: Played) -> None:
    assert all(meeting.shares == {"main-0": pytest.approx(1.0)} for meeting in played.meetings)


def fictitious_promise(played: Played) -> None:
    meetings = played.of("main-0")
    assert all("main-0" not in meeting.shares for meeting in meetings)
    even = [dict.fromkeys(meeting.past, 1.0 / len(meeting.past)) for meeting in meetings]
    near_expectation([meeting.shares for meeting in meetings], even, unit=0.25)


def window_promise(played: Played) -> None:
    for meeting in played.of("main-0"):
        assert meeting.shares["main-0"] == pytest.approx(0.5)
        newest = meeting.past[-WINDOW:]
        others = {policy: share for policy, share in meeting.shares.items() if policy != "main-0"}
        assert others == dict.fromkeys(newest, pytest.approx(0.5 / len(newest)))


def psro_promise(played: Played) -> None:
    solved = [event for event in played.events if isinstance(event, MixtureSolved)]
    assert len(solved) > 1
    for event in solved:
        assert sum(member.weight for member in event.members) == pytest.approx(1.0, abs=0.02)
    expected, drawn = [], []
    for meeting in played.of("main-0"):
        assert "main-0" not in meeting.shares, "a best response to the mixture, not to itself"
        if meeting.mixture:
            total = sum(meeting.mixture.values())
            even = 0.05 / len(meeting.past)
            expected.append({name: 0.95 * meeting.mixture.get(name, 0.0) / total + even for name in meeting.past})
            drawn.append(meeting.shares)
    near_expectation(drawn, expected, unit=0.25)
    assert played.state.totals.rating_games > 0.1 * played.state.totals.games, "its table of games is kept filled"


def pbt_promise(played: Played) -> None:
    players = set(played.state.players)
    assert all(set(meeting.shares) <= players for meeting in played.meetings)
    assert all(len(meeting.shares) > 1 for meeting in played.meetings)
    copies = [event for event in played.events if isinstance(event, PlayerTransplanted)]
    directives = {e.directive.directive_id: e.directive for e in played.events if isinstance(e, DirectiveIssued)}
    assert copies
    for event in copies:
        directive = directives[event.directive_id]
        assert (directive.kind, directive.donor, directive.hyperparameters) == (
            "transplant",
            event.donor,
            event.hyperparameters,
        )
        assert event.donor != event.player
    assert len({player.hyperparameters for player in played.state.players.values()}) > 1


PROMISES: dict[str, Callable[[Played], None]] = {
    "alphastar": alphastar_promise,
    "openai_five": openai_five_promise,
    "self_play": self_play_promise,
    "fictitious": fictitious_promise,
    "window": window_promise,
    "psro": psro_promise,
    "pbt": pbt_promise,
}


def tiny_league(preset: str) -> dict[str, Any]:
    """The preset with nothing changed but its pace: snapshots and copies after a hundred steps instead of millions."""
    population = PopulationConfig(save_steps=SAVE_STEPS, window=WINDOW)
    league: dict[str, Any] = {"preset": preset, "population": dataclasses.asdict(population), "lease_steps": 16}
    if preset == "pbt":  # players a hundred steps old hardly differ: whoever is behind at all copies
        copying = pbt(population).pbt
        assert copying is not None
        league["pbt"] = dataclasses.asdict(
            dataclasses.replace(copying, selection={"kind": "elo_gap", "copy_below": 0.499}, min_games=4.0)
        )
    return league


@pytest.mark.parametrize("game", list(GAMES))
@pytest.mark.parametrize("preset", list(PROMISES))
def test_a_population_keeps_its_promise_in_every_shape_of_game(preset: str, game: str, tmp_path: Path) -> None:
    plain = tiny(env={"id": GAMES[game]}, network={"hidden": [8]}, runtime={"checkpoint_updates": 3})
    start(tmp_path, {**plain, "league": tiny_league(preset)}, env_steps=ENV_STEPS.get(preset, 2_000))
    assert verify_run(tmp_path / "run").problems == ()
    state, events = state_of(tmp_path / "run"), events_of(tmp_path / "run")
    assert not state.leases
    assert not state.directives
    for player in state.players.values():
        assert player.trained_steps > 0
        assert player.num_snapshots >= 2
    rows = league_ratings(state)
    assert {row.policy for row in rows} == set(state.snapshots)
    assert all(np.isfinite([row.elo, row.low, row.high]).all() for row in rows)
    PROMISES[preset](Played(state, events, meetings_of(events)))
