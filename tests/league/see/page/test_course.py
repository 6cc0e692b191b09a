"""The course of a run for the axes of plots, and its events as sentences."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from league.core.state.events import ConfigChange, Event, RunStarted, RunStopped, SettingsChanged, SnapshotAdded
from league.core.state.records import INITIAL
from league.run.monitor import names
from league.see.page.routes.course import marks_of
from league.see.page.runs.event_text import event_text
from league.see.page.runs.journal_fold import NotableEvent
from league.see.page.runs.metric_history import MetricHistory
from tests.league.commands import wait_until
from tests.league.see.page.page_runs import made_league
from tests.league.tiny_runs import events_of


def test_the_course_has_the_times_of_snapshots_and_marks_none_of_first_weights(
    client: TestClient, made_run: Path
) -> None:
    wait_until(lambda: client.get("/api/v1/runs/made/course").json()["snapshots"], "the history")
    found = client.get("/api/v1/runs/made/course").json()
    added = {
        event.snapshot.snapshot_id: (1_700_000_000.0 + place, event.snapshot.reason)
        for place, event in enumerate(events_of(made_run))
        if isinstance(event, SnapshotAdded)
    }
    assert found["snapshots"] == {name: time for name, (time, _) in added.items()}
    gates = [mark["time"] for mark in found["marks"] if mark["kind"] == "gate"]
    assert gates == [time for time, reason in added.values() if reason != INITIAL]
    assert (found["wall"][-1], found["env_steps"][-1]) == (1.7e9 + 29, 400.0 * 29)


def test_counts_never_fall_and_a_silence_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    one, other = names.TRAINED_STEPS.of("one"), names.TRAINED_STEPS.of("other")
    rows = [(0.0, {one: 10.0, other: 5.0}), (10.0, {one: 20.0}), (500.0, {one: 40.0})]  # the other player has retired
    values = [{"step": 0, "time": time, "values": {**found, names.CORE_S.name: time}} for time, found in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in values))
    history = MetricHistory(path)
    history.extend()
    moments = history.moments()
    assert list(moments.trained_steps) == [15.0, 20.0, 40.0]
    assert list(moments.core_seconds) == [0.0, 10.0, 500.0]
    assert moments.silences == ((10.0, 500.0),)


def test_a_start_is_marked_where_the_run_had_begun_before() -> None:
    events: list[Event] = [RunStarted(1), RunStopped(1, "a signal asked for it"), RunStarted(2), RunStarted(3)]
    noted = [NotableEvent(seq, float(seq), type(event).__name__, event) for seq, event in enumerate(events)]
    marks = list(marks_of(noted))
    assert [(mark.time, mark.kind) for mark in marks] == [(2.0, "start"), (3.0, "start")]
    assert "broken off" not in marks[0].text and "broken off" in marks[1].text


@pytest.mark.parametrize(
    ("key", "old", "new", "words"),
    [
        ("league_state.training_paused", "false", "true", "Training is paused"),
        ("players.main-0.paused", "true", "false", "Main-0 learns again"),
        ("players.main-0.step_weight", "1.0", "2.0", "Step_weight of main-0 from 1.0 to 2.0"),
        ("tags.best", "null", '"main-0-s5"', "Main-0-s5 is tagged best"),
        ("tags.best", '"main-0-s5"', "null", "Tag best is removed"),
    ],
)
def test_a_change_is_said_in_words(key: str, old: str, new: str, words: str) -> None:
    event = SettingsChanged((ConfigChange(key, old, new),), by="anna", reason="a try")
    assert event_text(event) == f"{words}, by anna: a try."


def test_every_event_of_a_league_is_one_sentence() -> None:
    league, _ = made_league(leases=40)
    for event in league.journal:
        text = event_text(event)
        assert text.endswith(".") and text[0] == text[0].strip() and "{" not in text and "=" not in text, text
        assert text != f"{type(event).__name__}."
