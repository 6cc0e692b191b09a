"""Every way of rating a run: from a real run, through the command, and where one number per policy is not enough."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from league.core.metagame.cycles import CycleReport
from league.core.metagame.ratings import RatingRow
from league.see.reports.meta_game import MetaGameReport, MetaGameRow, meta_game_rows
from league.see.reports.rating_models import RATING_MODELS, read_rating_model
from league.see.reports.ratings import RatingsReport, read_ratings
from tests.league.commands import league
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, state_of, tiny

RING = CycleReport(3, cyclic_fraction=0.9, num_cycles=1, ring=3, strongest=(("a", 0.8), ("b", 0.7), ("c", 0.9)))
CALM = CycleReport(3, cyclic_fraction=0.01, num_cycles=0, ring=1, strongest=())

every_model = pytest.mark.parametrize("model", RATING_MODELS)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in one go, with its like that was stopped and resumed beside it as `stopped`."""
    folder = tmp_path_factory.mktemp("made")
    plain = tiny(league={"ratings": {"step_fraction": 0.4, "final_leases": 0}})
    start(folder, plain, env_steps=2_000)
    start(folder, plain, env_steps=700, run="stopped")
    go_on(folder / "stopped", env_steps=1_300)
    return folder / "run"


@every_model
def test_every_model_rates_the_frozen_policies_of_a_run(model: str, run: Path) -> None:
    report = read_rating_model(run, model)
    rows = json.loads(report.to_json())["rows"]
    assert len(rows) > 2
    assert {row["policy"] for row in rows} <= set(state_of(run).snapshots)
    text = report.text()
    assert all(text.count(f"\n{row['policy']} ") == 1 for row in rows)


@every_model
def test_a_resumed_run_is_rated_as_one_that_never_stopped(model: str, run: Path) -> None:
    rated = [json.loads(read_rating_model(path, model).to_json()) for path in (run, run.parent / "stopped")]
    assert rated[0]["rows"] == rated[1]["rows"]


def test_models_of_games_between_snapshots_say_where_there_are_none_yet(tmp_path: Path) -> None:
    start(tmp_path, tiny(league={**ONE_PLAYER, "ratings": {"step_fraction": 0.0, "final_leases": 0}}), env_steps=1)
    for model in ("openskill", "meta-game"):
        assert read_rating_model(tmp_path / "run", model).text().endswith("yet")


@every_model
def test_the_command_prints_what_the_model_says(model: str, run: Path) -> None:
    report = read_rating_model(run, model)
    assert league("ratings", run, "--model", model).out == report.text() + "\n"
    assert league("ratings", run, "--model", model, "--json").json == json.loads(report.to_json())


def test_an_unknown_model_is_one_sentence_with_the_nearest_name(run: Path) -> None:
    ran = league("ratings", run, "--model", "meta_game")
    assert ran.code == 2
    assert ran.err == (
        "league: unknown rating model 'meta_game' (did you mean 'meta-game'?): there are bradley-terry, openskill, "
        "meta-game, or give your own as module:attribute or path/file.py:attribute.\n"
    )


def test_the_meta_game_of_a_run_holds_together(run: Path) -> None:
    rows = meta_game_rows(state_of(run))
    assert sum(row.weight for row in rows) == pytest.approx(1.0)
    assert sum(row.exported for row in rows) == pytest.approx(1.0)
    assert sum(row.alpha_rank for row in rows) == pytest.approx(1.0)
    assert max(row.advantage for row in rows) == pytest.approx(0.0, abs=1e-6)
    for row in rows:
        assert row.weight == 0.0 or row.advantage == pytest.approx(0.0, abs=1e-6)
    advantages = [row.advantage for row in rows]
    np.testing.assert_allclose(advantages, sorted(advantages, reverse=True), atol=1e-8)


def test_cycles_are_shown_beside_the_table_of_the_meta_game() -> None:
    rows = (MetaGameRow("main-0-s0", weight=1.0, exported=1.0, advantage=0.0, alpha_rank=1.0),)
    told = "1 sure cycle of three, 90% of the table is cyclic; a (0.80), b (0.70), c (0.90)"
    assert told in MetaGameReport("run", rows, RING, "games won").text()
    assert "sure cycle" not in MetaGameReport("run", rows, None, "games won").text()


def test_elo_comes_with_a_warning_where_policies_beat_each_other_in_a_ring() -> None:
    rows = (RatingRow("main-0-s0", elo=0.0, low=0.0, high=0.0, games=9),)
    text = RatingsReport("run", rows, "games won", cycles=RING).text()
    assert "One number per policy misleads" in text
    assert "a (0.80), b (0.70), c (0.90)" in text
    assert "misleads" not in RatingsReport("run", rows, "games won", cycles=CALM).text()
    assert "misleads" not in RatingsReport("run", rows, "games won").text()


def test_ratings_name_every_snapshot_with_an_interval_around_its_rating(made: Path) -> None:
    report = read_ratings(made)
    assert {row.policy for row in report.rows} == set(state_of(made).snapshots)
    assert all(row.low <= row.elo <= row.high for row in report.rows)


def test_a_rating_just_below_nothing_is_shown_without_a_minus() -> None:
    row = RatingRow("main-0-s0", elo=-0.3, low=-0.4, high=0.2, games=3)
    text = RatingsReport("run", (row,), "games won").text()
    assert " +0  " in text
    assert "[+0, +0]" in text
    assert "-0 " not in text.replace("main-0", "")
