"""What trackers have in the end beside a run's metrics: scores of the last evaluation, and the best snapshot."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from league.judge.matches.evaluation import evaluate_run
from league.policies.trust import read_config
from league.run.monitor.spool import SpoolReader
from league.see.reports.run_summary import score_values, track_scores
from league.see.trackers.best_snapshot import best_snapshot
from league.see.trackers.mlflow_job import MlflowJob
from league.see.trackers.mlflow_worker import MlflowRuns, upload
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.see.trackers.test_tensorboard_sink import read_back
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

pytest.importorskip("mlflow")


class InProcess:
    """In the place of the uploading process: does its job here, once the sink has closed."""

    pid, has_ended = 0, False
    jobs: ClassVar[list[bytes]] = []

    def __init__(self, command: list[str]) -> None: ...

    def send(self, job: bytes) -> None:
        self.jobs.append(job)

    def lines(self) -> list[bytes]:
        return []

    def finish(self, *, grace_s: float) -> bool:
        job = msgspec.json.decode(self.jobs.pop(), type=MlflowJob)
        stop = threading.Event()
        stop.set()
        upload(lambda: MlflowRuns(job, storage=Storage()), SpoolReader(Path(job.spool), storage=Storage()), stop)
        return True

    def end(self) -> None: ...


def test_scores_and_the_best_snapshot_reach_mlflow_and_tensorboard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.see.trackers.uploading_sink.LineWorker", InProcess)
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=1_000)
    run = tmp_path / "run"
    sinks = f"monitor.sinks=[tensorboard, {{kind: mlflow, tracking_uri: 'file:{run}/mlruns'}}]"
    report = evaluate_run(run, bots=("random",), games=4)
    track_scores(run, read_config(RunFolder.open(run), overrides=[sinks]), report, env_steps=1_000)
    expected, best = score_values(report), best_snapshot(run)
    assert expected["eval/auto/random/games"] == 4.0 and best is not None
    shown = read_back(run / "tensorboard" / "league")
    assert {name: shown[name][0][2] for name in expected} == pytest.approx(expected)
    for name, value in expected.items():
        (file,) = run.glob(f"mlruns/*/*/metrics/{name}")
        assert float(file.read_text().split()[1]) == pytest.approx(value), name
    (model,) = run.glob(f"mlruns/*/*/artifacts/best/{best.name}")
    assert [(model / file.name).read_bytes() for file in best.files] == [file.read_bytes() for file in best.files]
    events = b"".join(file.read_bytes() for file in (run / "tensorboard" / "league").iterdir())
    assert best.text.encode() in events
