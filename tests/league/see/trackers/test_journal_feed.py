"""A tracker is told each decision of a gate once, and starts again after a rewind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from league.core.state.events import LeagueRewound
from league.core.state.state import LeagueState
from league.operate.history.rewind import rewind_run
from league.see.trackers.chronicle import Met
from league.see.trackers.journal_feed import JournalFeed
from league.see.trackers.league_tables import matchmaking_shares
from league.see.trackers.wandb_models import models_to_send, wanted_aliases
from league.store.storage import Storage
from tests.league.tiny_runs import events_of, state_of


def feed_of(run: Path) -> JournalFeed:
    feed = JournalFeed(run, storage=Storage())
    feed.catch_up()
    return feed


@pytest.fixture
def copy(tracked_run: Path, tmp_path: Path) -> Path:
    """A copy of the run that no tracker has been told of."""
    shutil.copytree(tracked_run, tmp_path / "run")
    (tmp_path / "run" / "wandb" / "told.json").unlink()
    return tmp_path / "run"


def test_a_decision_is_recorded_once_also_after_a_restart(copy: Path) -> None:
    feed = feed_of(copy)
    told = feed.poll()
    assert told and feed.poll() == []
    assert feed_of(copy).poll() == told  # nothing was kept: it may have been lost on the way
    feed.keep()
    feed.close()
    later = feed_of(copy)
    assert later.poll() == []
    assert list(later.chronicle.gates) == told  # the table still holds all of them
    assert later.chronicle.env_steps == state_of(copy).totals.env_steps


def test_after_a_rewind_everything_is_recorded_again_under_another_id(copy: Path) -> None:
    feed = feed_of(copy)
    told = feed.poll()
    feed.keep()
    feed.close()
    rewind_run(copy, at=str(told[0].event), confirm=lambda plan: True)
    again = feed_of(copy)
    (event,) = [event for event in events_of(copy) if isinstance(event, LeagueRewound)]
    assert again.chronicle.rewound == event.ended_chain
    kept = [decision for decision in told if decision.event <= event.event]
    assert again.poll() == kept != told


def test_models_are_sent_once_and_the_newest_again_after_an_older_one(tracked_run: Path) -> None:
    state = state_of(tracked_run)
    told: dict[str, list[str]] = {}
    first = models_to_send(state, told, "all")
    assert [name for name, _ in first] == list(state.snapshots)
    told.update(first)
    assert models_to_send(state, told, "all") == []
    state.tags["release-1"] = "main-0-s0"
    newest = [name for name in state.snapshots if name.startswith("main-0-")][-1]
    assert [name for name, _ in models_to_send(state, told, "all")] == ["main-0-s0", newest]
    assert wanted_aliases(state, "none") == {}
    kept = wanted_aliases(state, "best")
    assert "release-1" in kept["main-0-s0"] and sum("best" in found for found in kept.values()) == 1


def test_shares_of_opponents_add_up_by_their_kind(tracked_run: Path) -> None:
    state: LeagueState = state_of(tracked_run)
    games = {"main-0": 1, "main-exploiter-0": 2, "main-0-s0": 3, "main-exploiter-0-s0": 4, "bot:random": 10}
    met = {("main-0", opponent): Met(count, 0.0) for opponent, count in games.items()}
    assert matchmaking_shares(state, met)["main-0"] == pytest.approx(
        {"self": 0.05, "players": 0.1, "own_past": 0.15, "others_past": 0.2, "outside": 0.5}
    )
