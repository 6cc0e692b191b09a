"""Metrics at MLflow: what its own client sends to a server, and what happens while there is none."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from league.run.monitor.spool import Spool, SpoolReader
from league.see.trackers.mlflow_job import MlflowJob
from league.see.trackers.mlflow_sink import MlflowConfig, flat_params
from league.see.trackers.mlflow_worker import upload
from league.store.storage import Storage


class Server(http.server.BaseHTTPRequestHandler):
    """The part of MLflow's REST API that a run needs; keeps what arrives."""

    calls: ClassVar[list[tuple[str, dict[str, Any]]]] = []

    def do_GET(self) -> None:
        if "runs/get" in self.path:
            info = {"run_id": self.path.rpartition("=")[2], "experiment_id": "7", "status": "FINISHED"}
            self._answer(200, {"run": {"info": info, "data": {}}})
            return
        self._answer(404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "no such experiment"})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        what = self.path.partition("/mlflow/")[2]
        self.calls.append((what, body))
        run = {"info": {"run_id": f"id-{body.get('run_name')}"}, "data": {}}
        self._answer(200, {"experiments/create": {"experiment_id": "7"}, "runs/create": {"run": run}}.get(what, {}))

    def _answer(self, status: int, body: Mapping[str, object]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture
def server() -> Iterator[str]:
    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    Server.calls.clear()
    yield f"http://127.0.0.1:{made.server_port}"
    made.shutdown()
    made.server_close()


def spooled(folder: Path, steps: range) -> SpoolReader:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "spool.jsonl"
    spool = Spool(path, storage=Storage(), clock=lambda: 5.0, warn=pytest.fail, max_bytes=1 << 20)
    for step in steps:
        spool.log(step, {"league/games": float(step), "learner/main-0/kl": 0.5})
    spool.close()
    return SpoolReader(path, storage=Storage())


def stopped() -> threading.Event:
    event = threading.Event()
    event.set()
    return event


def test_the_own_client_sends_runs_below_the_leagues(tmp_path: Path, server: str) -> None:
    pytest.importorskip("mlflow")
    from league.see.trackers.mlflow_worker import MlflowRuns

    params = dict(flat_params({"seed": 3, "learner": {"unroll_length": 8}}))
    spool = str(tmp_path / "mlflow" / "spool.jsonl")
    job = MlflowJob(str(tmp_path), spool, server, "games", "my-league", 4, params, 1.0)
    for steps in (range(2), range(2, 3)):  # the second is a resumed run
        reader = spooled(tmp_path / "mlflow", steps)
        upload(lambda: MlflowRuns(job, storage=Storage()), reader, stopped())
    of = {what: [body for name, body in Server.calls if name == what] for what, _ in Server.calls}
    league, player = of["runs/create"]
    assert league["experiment_id"] == "7" and league["run_name"] == "my-league"
    tags = {tag["key"]: tag["value"] for tag in player["tags"]}
    assert (tags["mlflow.parentRunId"], tags["player"]) == ("id-my-league", "main-0")
    batches = of["runs/log-batch"]
    sent = [(body["run_id"], m["key"], m["step"], m["value"]) for body in batches for m in body.get("metrics", [])]
    whole, own = "id-my-league", "id-main-0"
    assert [row for row in sent if row[1] == "league/games"] == [(whole, "league/games", n, n) for n in range(3)]
    assert [row for row in sent if row[0] == own] == [(own, "learner/kl", n, 0.5) for n in range(3)]
    assert {m["timestamp"] for body in batches for m in body.get("metrics", [])} == {5_000}
    (params_sent,) = [body["params"] for body in batches if body.get("params")]
    assert {p["key"]: p["value"] for p in params_sent} == {"seed": "3", "learner.unroll_length": "8"}
    assert [body["status"] for body in of["runs/update"]].count("RUNNING") == 2  # both, at the second start


def test_rows_wait_while_the_server_is_away(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    class Runs:
        def __init__(self) -> None:
            self.steps: list[int] = []
            self.fails = 1

        def log(self, step: int, time: float, values: Mapping[str, float]) -> None:
            if step == 1 and self.fails:
                self.fails -= 1
                raise ConnectionError("CANARY")
            self.steps.append(step)

        def finish(self) -> None:
            self.steps.append(-1)

    runs = Runs()
    upload(lambda: runs, spooled(tmp_path, range(3)), stopped())
    assert runs.steps == [0]
    upload(lambda: runs, SpoolReader(tmp_path / "spool.jsonl", storage=Storage()), stopped())
    assert runs.steps == [0, 0, 1, 2, -1]  # at least once: the first row of the lost block comes again
    said = capsys.readouterr().out
    assert "could not be reached (ConnectionError)" in said and "CANARY" not in said


def test_an_address_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert list(MlflowConfig().problems()) == [
        "tracking_uri: give it, or set the environment variable MLFLOW_TRACKING_URI"
    ]
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:5000")
    assert MlflowConfig().address == "http://127.0.0.1:5000" and not list(MlflowConfig().problems())
