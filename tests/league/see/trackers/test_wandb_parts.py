"""The parts of a run at wandb that restarts make: their rows, roles and players follow on, and the last scores."""

from __future__ import annotations

import itertools
import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from league.judge.matches.evaluation import evaluate_run
from league.policies.trust import read_config
from league.run.monitor.jsonl_sink import decode_row
from league.run.monitor.spool import Spool, SpoolReader
from league.see.reports.run_summary import track_scores
from league.see.trackers.wandb_job import WandbJob
from league.see.trackers.wandb_runs import RESERVED_ROWS, StepCounts
from league.see.trackers.wandb_worker import Uploader
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.see.trackers.offline_records import OfflineRun
from tests.league.tiny_runs import go_on


@pytest.fixture(scope="module")
def run(tracked_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run after a second start, and with the scores of its last evaluation."""
    path = tmp_path_factory.mktemp("parts") / "run"
    shutil.copytree(tracked_run, path)
    with pytest.MonkeyPatch.context() as patch:
        for deadline in ("CLOSE_DEADLINE_S", "SILENT_DEADLINE_S"):
            patch.setattr(f"league.see.trackers.uploading_sink.{deadline}", 150.0)
        patch.setattr("league.run.monitor.observer.METRICS_EVERY_S", 0.2)
        go_on(path, env_steps=800)
        report = evaluate_run(path, bots=("random",), games=4)
        track_scores(path, read_config(RunFolder.open(path)), report, env_steps=3_300)
    return path


Parts = Mapping[str, Sequence[OfflineRun]]


@pytest.fixture(scope="module")
def parts(run: Path) -> Parts:
    """Name of a run at wandb -> its offline parts, oldest first."""
    found = defaultdict(list)
    for folder in sorted(run.glob("wandb/offline-run-*")):
        part = OfflineRun(folder)
        found[part.run["display_name"]].append(part)
    return found


def steps_of(part: OfflineRun) -> list[int]:
    return [int(row["_step"]) for row in part.rows]


def test_rows_are_counted_on_over_the_parts_of_a_run(parts: Parts) -> None:
    for name in ("run", "main-0"):
        steps = [step for part in parts[name] for step in steps_of(part)]
        assert len(parts[name]) >= 2
        assert all(later > earlier for earlier, later in itertools.pairwise(steps)), name


def test_the_last_scores_reach_every_tracker(run: Path, parts: Parts) -> None:
    rows = [row for row in map(decode_row, (run / "metrics.jsonl").read_bytes().splitlines()) if row is not None]
    expected = {name: value for name, value in rows[-1].values.items() if name.startswith("eval/")}
    assert expected["eval/auto/random/games"] == 4.0 and 0.0 <= expected["eval/auto/random/score"] <= 1.0
    last = parts["run"][-1].rows[-1]
    assert {name: last[name] for name in expected} == pytest.approx(expected)
    assert len(parts["main-0"]) == 2, "no part of a player for them"


class Recorder:
    """As much of wandb as its runs need; keeps what each was opened with, and its rows."""

    class Settings:
        def __init__(self, **settings: object) -> None: ...

    def __init__(self) -> None:
        self.opened: list[dict[str, Any]] = []

    def init(self, **given: Any) -> Any:
        self.opened.append(given)
        ignore = lambda *_, **__: None  # noqa: E731
        return SimpleNamespace(define_metric=ignore, log=ignore, finish=ignore)


def test_a_player_that_joins_a_live_league_has_its_role_from_its_first_row(tracked_run: Path, tmp_path: Path) -> None:
    wandb, spool = (
        Recorder(),
        Spool(tmp_path / "spool", storage=Storage(), clock=lambda: 5.0, warn=pytest.fail, max_bytes=1 << 20),
    )
    job = WandbJob(str(tmp_path), str(tmp_path / "spool"), "offline", "id", "run", "group", {})
    uploader = Uploader(wandb, job, storage=Storage())
    shutil.copy(tracked_run / "journal.db", tmp_path)  # all of its players join after the tracker has begun
    spool.log(1, {"learner/main-0/kl": 0.5, "learner/main-exploiter-0/kl": 0.5})
    spool.close()
    for step, time, values in SpoolReader(tmp_path / "spool", storage=Storage()).rows():
        uploader.runs.log(step, time, values)
    assert {run["name"]: run["job_type"] for run in wandb.opened[1:]} == {
        "main-0": "main_agent",
        "main-exploiter-0": "main_exploiter",
    }


def test_a_crash_leaves_a_gap_and_no_number_twice(tmp_path: Path) -> None:
    first = StepCounts(tmp_path / "steps.json", storage=Storage())
    assert [first.take("a") for _ in range(3)] == [0, 1, 2]
    after_a_crash = StepCounts(tmp_path / "steps.json", storage=Storage())
    assert after_a_crash.take("a") == RESERVED_ROWS
    after_a_crash.keep()
    assert StepCounts(tmp_path / "steps.json", storage=Storage()).take("a") == RESERVED_ROWS + 1
