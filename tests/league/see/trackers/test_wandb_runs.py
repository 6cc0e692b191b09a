"""The runs of a league at wandb, read back field by field by wandb's own reader."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from league.core.state.events import DirectiveIssued
from league.run.monitor.jsonl_sink import decode_row
from league.run.monitor.names import METRICS, VERSUS, metric_of
from league.see.trackers.identity import line_id, player_id, settled_identity
from league.see.trackers.player_rows import player_rows
from league.store.storage import Storage
from tests.league.see.trackers.conftest import ALERT
from tests.league.see.trackers.offline_records import OfflineRun, offline_runs
from tests.league.tiny_runs import events_of, state_of


@pytest.fixture(scope="session")
def runs(tracked_run: Path) -> dict[str, OfflineRun]:
    return offline_runs(tracked_run)


def table_of(tracked_run: Path, run: OfflineRun, name: str) -> list[dict[str, Any]]:
    """The rows of the last table of that name."""
    path = [row[f"{name}.path"] for row in run.rows if f"{name}.path" in row][-1]
    (file,) = tracked_run.glob(f"wandb/offline-run-*-{run.run['run_id']}/files/{path}")
    table = json.loads(file.read_text())
    return [dict(zip(table["columns"], row, strict=True)) for row in table["data"]]


def test_a_league_is_a_group_of_its_own_run_and_one_of_each_player(
    tracked_run: Path, runs: dict[str, OfflineRun]
) -> None:
    assert set(runs) == {"run", "main-0", "main-exploiter-0"}  # the third is beyond player_runs
    heads = {name: run.run for name, run in runs.items()}
    identity = settled_identity(tracked_run / "wandb", "run", storage=Storage())
    assert {head["run_group"] for head in heads.values()} == {identity.run_id}, "a folder's name occurs twice"
    assert {head["project"] for head in heads.values()} == {"games"}
    assert {name: head["job_type"] for name, head in heads.items()} == {
        "run": "league",
        "main-0": "main_agent",
        "main-exploiter-0": "main_exploiter",
    }
    assert heads["run"]["tags"] == ["v1"]
    run_id = identity.run_id
    assert (heads["run"]["run_id"], heads["main-0"]["run_id"]) == (run_id, player_id(run_id, "main-0"))
    assert runs["run"].config["learner"]["unroll_length"] == 4
    assert runs["run"].config["auto"] == {}  # nothing was left to choose
    assert (runs["main-0"].config["player"], runs["main-0"].config["role"]) == ("main-0", "main_agent")


def test_every_row_is_there_with_its_step_and_its_best_values(tracked_run: Path, runs: dict[str, OfflineRun]) -> None:
    lines = (tracked_run / "metrics.jsonl").read_bytes().splitlines()
    kept = [row for row in map(decode_row, lines) if row is not None]
    whole = [row for row in runs["run"].rows if "league/games" in row]
    assert len(whole) == len(kept) > 0
    for row, expected in zip(whole, kept, strict=True):
        assert row["league/env_steps"] == expected.step
        assert {name: row[name] for name in expected.values} == pytest.approx(expected.values)
    own = [row for row in runs["main-0"].rows if "player/snapshots" in row]
    of_main = [player_rows(row.values)["main-0"] for row in kept]
    for row, expected_own in zip(own, of_main, strict=True):
        assert {name: row[name] for name in expected_own} == pytest.approx(expected_own)
    metrics = runs["main-0"].metrics
    assert metrics["*"]["step_metric"] == "league/env_steps"
    assert metrics["player/rating_elo"]["summary"] == {"last": True, "max": True}
    assert runs["run"].metrics["player/main-0/rating_elo"]["summary"] == {"last": True, "max": True}


def test_gates_are_recorded_with_their_evidence(tracked_run: Path, runs: dict[str, OfflineRun]) -> None:
    issued = [event for event in events_of(tracked_run) if isinstance(event, DirectiveIssued) and event.evidence]
    assert issued
    of_main = [event for event in issued if event.directive.player == "main-0"]
    told = [row for row in runs["main-0"].rows if "gate/opponents" in row]
    assert [row["gate/opponents"] for row in told] == [event.gate_opponents for event in of_main]
    assert [row["gate/hardest_win_rate"] for row in told] == pytest.approx([e.evidence[0].mean for e in of_main])
    table = table_of(tracked_run, runs["run"], "tables/gates")
    assert len(table) == sum(len(event.evidence) for event in issued)
    last = issued[-1]
    first = table[0]
    assert (first["player"], first["reason"]) == (last.directive.player, last.directive.reason)
    assert first["opponent"] == last.evidence[0].opponent
    assert first["win_rate"] == pytest.approx(last.evidence[0].mean)


def test_all_tables_are_versions_of_one_artifact(runs: dict[str, OfflineRun]) -> None:
    """wandb makes an artifact of each table in a row: they stand in rows once, at the end."""
    sent = [record for record in runs["run"].of("artifact") if record["type"] == "tables"]
    assert {record["name"] for record in sent} == {f"{runs['run'].run['run_id']}-tables"}
    names = {"ratings", "payoff", "gates", "matchmaking"}
    assert {f"{name}.table.json" for name in names} <= {entry["path"] for entry in sent[-1]["manifest"]["contents"]}
    for record in runs.values():
        assert all(len(rows) <= 1 for rows in rows_of_tables(record).values())
    assert set(rows_of_tables(runs["run"])) == {f"tables/{name}.path" for name in names}


def rows_of_tables(run: OfflineRun) -> dict[str, list[str]]:
    """Key of each table in the rows of a run -> its files."""
    found: dict[str, list[str]] = {}
    for row in run.rows:
        for key, value in row.items():
            if key.startswith("tables/") and key.endswith(".path"):
                found.setdefault(key, []).append(value)
    return found


def test_tables_say_who_beats_whom_and_whom_everyone_met(tracked_run: Path, runs: dict[str, OfflineRun]) -> None:
    state = state_of(tracked_run)
    ratings = table_of(tracked_run, runs["run"], "tables/ratings")
    assert [row["snapshot"] for row in ratings] == list(reversed(state.snapshots))
    payoff = {
        (row["home"], row["away"]): row["win_rate"] for row in table_of(tracked_run, runs["run"], "tables/payoff")
    }
    known = state.posterior(state.players["main-exploiter-0"].policy)
    main = state.players["main-0"].policy
    assert payoff["main-exploiter-0", "main-0"] == pytest.approx(float(known.mean[main]))
    met = table_of(tracked_run, runs["run"], "tables/matchmaking")
    assert sum(row["share"] for row in met if row["player"] == "main-0") == pytest.approx(1.0)
    assert sum(row["games"] for row in met) == sum(player.games for player in state.players.values())
    shares = [row for row in runs["main-0"].rows if "matchmaking/self" in row][-1]
    kinds = ("self", "players", "own_past", "others_past", "outside")
    assert sum(shares[f"matchmaking/{kind}"] for kind in kinds) == pytest.approx(1.0)
    pictures = [row for row in runs["run"].rows if "pictures/payoff.path" in row]
    assert pictures and pictures[-1]["pictures/payoff.format"] == "png"


def test_snapshots_are_models_with_their_lineage(tracked_run: Path, runs: dict[str, OfflineRun]) -> None:
    state = state_of(tracked_run)
    models = {}
    for record in runs["main-0"].of("artifact"):
        if record["type"] == "model":
            models[json.loads(record["metadata"])["snapshot"]] = record
    assert list(models) == [name for name in state.snapshots if name.startswith("main-0-")]
    for name, record in models.items():
        metadata = json.loads(record["metadata"])
        known = state.snapshots[name]
        assert (metadata["parent"], metadata["sha256"]) == (known.parent, known.digest)
        assert name.rpartition("-")[2] in record["aliases"]
        files = {entry["path"]: entry["local_path"] for entry in record["manifest"]["contents"]}
        assert set(files) == {"weights.safetensors", "manifest.json"}
        assert Path(files["weights.safetensors"]).is_relative_to(tracked_run / "snapshots")  # linked, not copied
    assert sum("best" in record["aliases"] for record in models.values()) == 1


def test_alerts_and_replays_are_forwarded(runs: dict[str, OfflineRun]) -> None:
    (alert,) = runs["run"].of("alert")
    assert alert["title"] == "gate_silent main-0 firing"
    assert (alert["text"], alert["level"]) == (ALERT.text, "WARN")
    replays = [row for row in runs["run"].rows if "replays/html.path" in row]
    assert [row["replays/html._type"] for row in replays] == 2 * ["html-file"]  # a page, and a recorded game as one
    assert max(row["replays/html.size"] for row in replays) > 5_000


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
