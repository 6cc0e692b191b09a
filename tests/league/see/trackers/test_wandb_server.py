"""Uploads to a stand-in of wandb's server: an offline run, and rows that wait, arrive whole and once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from league.errors import LeagueError
from league.run.monitor.jsonl_sink import decode_row
from league.run.monitor.spool import Spool
from league.see.trackers.wandb_sync import offline_folders, rounds, sync_run
from league.store.storage import Storage
from tests.league.see.trackers.conftest import ALERT
from tests.league.see.trackers.wandb_server import WandbServer
from tests.league.tiny_runs import state_of


def test_an_offline_run_and_the_rows_that_wait_arrive_whole_and_once(
    tracked_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    shutil.copytree(tracked_run, run)
    waiting = Spool(
        run / "wandb" / "spool.jsonl", storage=Storage(), clock=lambda: 9.0, warn=pytest.fail, max_bytes=1 << 20
    )
    waiting.log(99_999, {"league/games": 12_345.0})
    waiting.close()
    with WandbServer() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        monkeypatch.setenv("WANDB_API_KEY", "a" * 40)
        said: list[str] = []
        assert sync_run(run, say=said.append) == 3
        heads = {arrived.head["displayName"]: arrived for arrived in server.runs.values()}
        assert set(heads) == {"run", "main-0", "main-exploiter-0"}
        (group,) = {arrived.head["groupName"] for arrived in heads.values()}
        assert group.startswith("run-"), "the id of the run, which two folders of one name do not share"
        assert heads["main-0"].head["jobType"] == "main_agent"
        config = json.loads(heads["run"].head["config"])
        assert config["learner"]["value"]["unroll_length"] == 4
        kept = [decode_row(line) for line in (run / "metrics.jsonl").read_bytes().splitlines()]
        rows = [row for row in heads["run"].rows if "league/games" in row]
        assert [row["league/env_steps"] for row in rows] == [*(row.step for row in kept if row is not None), 99_999]
        assert [row["_step"] for row in heads["run"].rows] == list(range(len(heads["run"].rows)))
        assert rows[-1]["league/games"] == 12_345
        assert heads["run"].alerts == [("gate_silent main-0 firing", ALERT.text)]
        models = [json.loads(model["metadata"])["snapshot"] for model in heads["main-0"].models]
        assert set(models) == {name for name in state_of(run).snapshots if name.startswith("main-0-")}
        assert server.uploads["artifact/weights.safetensors"] > 0
        assert any(name.startswith("media/html/replays") for name in heads["run"].files)
        before = {name: len(arrived.rows) for name, arrived in server.runs.items()}
        assert offline_folders(run / "wandb") == []
        assert sync_run(run, say=said.append) == 0
        assert {name: len(arrived.rows) for name, arrived in server.runs.items()} == before


def test_a_user_who_is_not_logged_in_gets_a_sentence(
    tracked_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WANDB_API_KEY", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LeagueError, match="run `wandb login`"):
        sync_run(tracked_run, say=pytest.fail)


def test_the_parts_of_a_run_are_uploaded_one_after_the_other() -> None:
    parts = ("1_1-a", "1_1-a-main-0", "2_2-a", "3_3-a", "4_4-b")
    names = [f"offline-run-{part}" for part in parts]
    found = rounds([Path(name) for name in names])
    assert [[path.name for path in together] for together in found] == [
        [names[0], names[1], names[4]],
        [names[2]],
        [names[3]],
    ]
