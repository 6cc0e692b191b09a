"""The runs of a league at wandb, read back by wandb's own reader."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.config.run_config import WandbConfig
from league.monitor.names import METRICS, VERSUS, metric_of
from league.monitor.sink import SinkContext, open_sink
from league.store.storage import Storage
from league.trackers.identity import line_id, player_id, settled_identity
from league.trackers.player_rows import player_rows
from tests.league.trackers.offline_records import offline_runs


def context_of(folder: Path, **settings: object) -> SinkContext:
    return SinkContext(
        run_path=folder,
        run_name="my league",
        config={"seed": 3, "learner": {"unroll_length": 8}},
        settings=WandbConfig(mode="offline", project="games", tags=("v1",), **settings),  # type: ignore[arg-type]
        warn=pytest.fail,
        clock=lambda: 1_700_000_000.0,
        storage=Storage(),
        reasons={"learner.unroll_length": "the game is short"},
    )


def test_a_league_is_a_group_of_its_own_run_and_one_of_each_player(tmp_path: Path) -> None:
    sink = open_sink("wandb", context_of(tmp_path, player_runs=2))
    rating = "player/{}/rating_elo"
    for step, elo in ((100, 20.0), (200, 10.0)):
        row = {rating.format(player): elo for player in ("main-0", "main_exploiter-0", "main_exploiter-1")}
        sink.log(step, {**row, "league/games": step / 2, "player/main-0/versus/main_exploiter-0": 0.25})
    sink.close()
    runs = offline_runs(tmp_path)
    assert set(runs) == {"my league", "main-0", "main_exploiter-0"}  # the third is beyond player_runs
    whole, main = runs["my league"], runs["main-0"]
    assert {run.run["run_group"] for run in runs.values()} == {"my league"}
    assert {run.run["project"] for run in runs.values()} == {"games"}
    assert whole.run["job_type"] == "league" and main.run["job_type"] == "player"
    assert whole.run["tags"] == ["v1"]
    run_id = settled_identity(tmp_path / "wandb", "my league", storage=Storage()).run_id
    assert (whole.run["run_id"], main.run["run_id"]) == (run_id, player_id(run_id, "main-0"))
    assert whole.config["learner"] == {"unroll_length": 8}
    assert whole.config["auto"] == {"learner.unroll_length": "the game is short"}
    assert main.config["player"] == "main-0"
    assert [row["league/games"] for row in whole.rows] == [50, 100]
    assert [row[rating.format("main_exploiter-1")] for row in whole.rows] == [20, 10]
    assert [row["player/rating_elo"] for row in main.rows] == [20, 10]
    assert [row["player/versus/main_exploiter-0"] for row in main.rows] == [0.25, 0.25]
    assert [row["league/env_steps"] for row in main.rows] == [100, 200]
    assert main.rows[0]["_timestamp"] == 1_700_000_000
    assert main.metrics["*"]["step_metric"] == "league/env_steps"
    assert main.metrics["player/rating_elo"]["summary"] == {"last": True, "max": True}
    assert whole.metrics[rating.format("main-0")]["summary"] == {"last": True, "max": True}


def test_an_id_is_kept_for_ever_and_is_of_one_folder_alone(tmp_path: Path) -> None:
    ids = []
    for name in ("a", "a", "b"):
        (tmp_path / name).mkdir(exist_ok=True)
        ids.append(settled_identity(tmp_path / name, "run 1", storage=Storage()).run_id)
    assert ids[0] == ids[1] != ids[2]
    assert all(found.startswith("run-1-") for found in ids)
    assert line_id(ids[0], "") == ids[0] != line_id(ids[0], "0123456789abcdef")
    assert len(player_id("x" * 120, "main exploiter/0")) <= 128


def test_players_metrics_are_named_alike_and_every_name_is_known() -> None:
    values = {metric.of("main-0", opponent="main-1"): 1.0 for metric in METRICS.values()}
    (row,) = player_rows(values).values()
    assert "learner/entropy" in row and "player/seat_0/return_mean" in row and "player/versus/main-1" in row
    assert not any("main-0" in name or name.startswith("league/") for name in row)
    assert metric_of("player/main-0/versus/main-1") is VERSUS
