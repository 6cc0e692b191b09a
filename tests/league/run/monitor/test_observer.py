"""What a run shows of itself while it runs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from league.core.metagame.ratings import league_ratings
from league.core.state.records import Progress
from league.hosts.protocol import LearnerProgress
from league.run.budget import Spent
from league.run.daemon_status import DaemonStatus
from league.run.monitor.jsonl_sink import decode_row
from league.run.monitor.metrics import run_metrics
from league.run.monitor.names import (
    BEST_RATING,
    EPISODE_LENGTH,
    EVAL_GAMES,
    EVAL_HIGH,
    EVAL_LOW,
    EVAL_SCORE,
    HOSTS_LOST,
    METRICS,
    PROBE_CORE_S,
    PROBE_FRACTION,
    PROBE_VALUE,
    REFUSED,
    REFUSED_CHUNKS,
    RETURN_MEAN,
    SEAT_RETURN_MEAN,
    TRUNCATED,
    metric_of,
)
from league.run.monitor.observer import BackgroundRatings, Observer
from league.see.reports.status.status_report import read_status
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import ONE_PLAYER, start, state_of, tiny

SEATS_CUT_OFF = {"id": "probe_simultaneous", "kwargs": {"num_seats": 2, "truncate": True}}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics and ratings at every turn, in the daemon's own thread."""
    for name in ("METRICS_EVERY_S", "RATINGS_EVERY_S"):
        monkeypatch.setattr(f"league.run.monitor.observer.{name}", 0.0)
    monkeypatch.setattr("league.run.monitor.observer.in_thread", lambda job: job())


@pytest.mark.parametrize(("is_live", "views"), [(True, 20), (False, 4)])
def test_a_table_is_made_twice_a_second_and_lines_need_few_views(
    is_live: bool, views: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten seconds in turns of a quarter of a second, in which nothing else is due."""
    shown, ticks = [], iter(range(100))
    monkeypatch.setattr(Observer, "_view", lambda self, seen: shown.append(seen))
    nothing = SimpleNamespace(look=lambda *_, **__: None, write=lambda *_, **__: None, show=lambda view: None)
    nothing.log, nothing.is_live, nothing.state = (lambda *_: None), is_live, SimpleNamespace()
    monkeypatch.setattr(Observer, "_metrics", lambda self, seen: {})
    monkeypatch.setattr(BackgroundRatings, "refresh", lambda self, state: None)
    observer = Observer(
        Path(),
        league=cast(Any, nothing),
        runtime=cast(Any, nothing),
        heartbeat=cast(Any, nothing),
        watches=cast(Any, nothing),
        console=cast(Any, nothing),
        sink=cast(Any, nothing),
        monotonic=lambda: 100.0 + 0.25 * next(ticks),
    )
    for _ in range(40):
        observer.observe(DaemonStatus(Spent(), 0.0, "training", {}))
    assert len(shown) == views


@pytest.mark.usefixtures("at_once")
def test_every_metric_is_reported_and_nothing_that_is_no_metric(tmp_path: Path) -> None:
    start(tmp_path, tiny(env=SEATS_CUT_OFF), env_steps=1_500)
    rows = [decode_row(line) for line in (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()]
    reported = {name for row in rows if row is not None for name in row.values}
    elsewhere = {PROBE_VALUE, PROBE_CORE_S, PROBE_FRACTION, EVAL_SCORE, EVAL_LOW, EVAL_HIGH, EVAL_GAMES}
    assert {metric_of(name) for name in reported} == set(METRICS.values()) - elsewhere
    last = rows[-1]
    assert last is not None
    totals = state_of(tmp_path / "run").totals
    assert 0 < last.values[TRUNCATED.name] <= totals.truncated == totals.games
    assert last.values[REFUSED.name] == last.values[HOSTS_LOST.name] == 0.0
    assert read_status(tmp_path / "run").league.truncated == totals.truncated


def test_refused_chunks_are_a_metric_also_of_a_learner_that_has_made_no_update(tmp_path: Path) -> None:
    state = Bench(tmp_path / "run", league=ONE_PLAYER).league.state
    progress = {"main-0": LearnerProgress(Progress("main-0", 0, 0), None, 0, refused=3)}
    seen = DaemonStatus(Spent(), 0.0, "training", progress)
    values = run_metrics(state, seen, ratings={}, steps_per_s=0.0, journal_seq=0, disk_free=0)
    assert values[REFUSED_CHUNKS.of("main-0")] == 3.0


@pytest.mark.usefixtures("at_once")
def test_the_best_rating_is_that_of_a_snapshot_beside_a_bot_that_beats_them_all(tmp_path: Path) -> None:
    league = {"ratings": {"bots": ["bot:tactical"], "step_fraction": 0.5, "final_leases": 4}}
    start(tmp_path, tiny(env={"id": "connect_four"}, league=league), env_steps=6_000)
    rows = [decode_row(line) for line in (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()]
    shown = [row.values[BEST_RATING.name] for row in rows if row is not None and BEST_RATING.name in row.values]
    rated = {row.policy: row.elo for row in league_ratings(state_of(tmp_path / "run")) if row.games}
    assert max(rated, key=lambda policy: rated[policy]) == "bot:tactical"
    assert max(shown) < rated["bot:tactical"] - 50.0


def test_a_game_of_one_seat_shows_its_return_and_length_while_it_trains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CartPole pays one for each step, so that return and length are the same number."""
    monkeypatch.setattr("league.run.monitor.observer.METRICS_EVERY_S", 0.0)
    pytest.importorskip("gymnasium")
    plain = tiny(env={"id": "gymnasium:CartPole-v1"}, league={"players": [{"role": "main_agent"}]})
    start(tmp_path, plain, env_steps=1_500)
    player = read_status(tmp_path / "run").league.players[0]
    assert player.mean_return == pytest.approx(player.episode_length)
    assert player.mean_return is not None and player.mean_return >= 8.0
    assert f"return {player.mean_return:.4g}" in read_status(tmp_path / "run").text()
    assert player.score is None
    lines = (tmp_path / "run" / "metrics.jsonl").read_bytes().splitlines()
    last = [row.values for line in lines if (row := decode_row(line)) is not None][-1]
    assert last[RETURN_MEAN.of("main-0")] == pytest.approx(last[EPISODE_LENGTH.of("main-0")])
    assert last[SEAT_RETURN_MEAN.of("main-0", seat=0)] == last[RETURN_MEAN.of("main-0")]
