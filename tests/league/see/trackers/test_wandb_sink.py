"""wandb may hang, fail or die: training does not notice, nothing stays behind, the rows are on the disk."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from league.config.run_config import WandbConfig
from league.run.monitor.sink import SinkContext
from league.run.monitor.spool import Spool, SpoolReader
from league.see.trackers.uploading_sink import CLOSE_DEADLINE_S
from league.see.trackers.wandb_job import WandbJob
from league.see.trackers.wandb_sink import NoSink, WandbSink, open_wandb_sink, resolved_mode
from league.store.storage import Storage

FAKE = """
import json, os, pathlib, sys, threading
CALLS = pathlib.Path(os.environ["FAKE_WANDB_CALLS"])
BEHAVIOUR = os.environ["FAKE_WANDB_BEHAVIOUR"]
def record(*call):
    with CALLS.open("a") as file:
        file.write(json.dumps(call, default=str) + "\\n")
def hang():
    (CALLS.parent / "hangs").open("w").close()
    threading.Event().wait()
class Settings:
    def __init__(self, **settings):
        pass
class Run:
    dir = str(CALLS.parent / "wandb" / "run-1" / "files")
    def define_metric(self, *args, **kwargs):
        pass
    def log(self, values, **place):
        record("log", values)
        if BEHAVIOUR == "die":
            os._exit(3)
    def finish(self):
        if BEHAVIOUR == "hang_finish":
            hang()
        record("finish")
def init(**settings):
    record("init", settings["mode"], settings["group"], settings["job_type"], settings["id"], settings["dir"])
    if BEHAVIOUR == "hang_init":
        hang()
    if BEHAVIOUR == "raise_init" or (BEHAVIOUR == "unreachable" and settings["mode"] == "online"):
        raise RuntimeError("the key CANARY was refused")
    return Run()
def teardown(exit_code):
    record("teardown")
"""


class Bench:
    """A sink over the fake wandb, and what became of it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str) -> None:
        self.folder = folder
        self.calls_path = folder / "calls"
        self.spool_path = folder / "wandb" / "spool.jsonl"
        self.warnings: list[str] = []
        (folder / "fake").mkdir()
        (folder / "fake" / "wandb.py").write_text(FAKE)
        (folder / "wandb").mkdir()
        os.mkfifo(folder / "hangs")
        monkeypatch.setenv("PYTHONPATH", str(folder / "fake"), prepend=os.pathsep)
        monkeypatch.setenv("FAKE_WANDB_CALLS", str(self.calls_path))
        monkeypatch.setenv("FAKE_WANDB_BEHAVIOUR", behaviour)

    def sink(self, *, mode: str = "offline", close_deadline_s: float = 10.0) -> WandbSink:
        job = WandbJob(str(self.folder), str(self.spool_path), mode, "name", "run", "group", {"seed": 1})
        spool = Spool(
            self.spool_path, storage=Storage(), clock=lambda: 5.0, warn=self.warnings.append, max_bytes=1 << 20
        )
        return WandbSink(job, spool=spool, warn=self.warnings.append, close_deadline_s=close_deadline_s)

    def calls(self, name: str) -> list[list[object]]:
        lines = self.calls_path.read_text().splitlines() if self.calls_path.exists() else []
        return [call for call in map(json.loads, lines) if call[0] == name]


def wait_until_gone(pid: int, timeout_s: float) -> bool:
    """Whether the process ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    ready = select.select([descriptor], [], [], timeout_s)[0]
    os.close(descriptor)
    return bool(ready)


def wait_for_message(sink: WandbSink) -> None:
    """Until the worker has said something or has gone."""
    assert sink._worker is not None
    assert select.select([sink._worker._process.stdout], [], [], 20.0)[0]


def test_rows_reach_wandb_in_order_and_the_process_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, "ok")
    sink = bench.sink()
    sink.start()
    pid = sink.worker_pid
    assert pid is not None
    assert os.getsid(pid) != os.getsid(0)
    for step in range(300):
        sink.log(step, {"league/games": step, "league/commit_ms": float("nan")})
    sink.close()
    sink.close()
    expected = [{"league/games": float(step), "league/env_steps": step, "_timestamp": 5.0} for step in range(300)]
    assert [call[1] for call in bench.calls("log")] == expected
    assert bench.calls("init") == [["init", "offline", "group", "league", "run", str(tmp_path)]]
    assert bench.calls("finish") == [["finish"]]
    assert bench.warnings == []
    assert wait_until_gone(pid, 0.0)


def test_a_note_is_said_once_for_each_run_of_the_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, "ok")
    sink = bench.sink()
    said = [b"note no pictures", b"note no pictures", b"ready", b"note no lineage", b"note no pictures"]
    sink._worker = SimpleNamespace(lines=lambda: said)  # type: ignore[assignment]  # all that is read of it
    sink._read_messages()
    assert bench.warnings == ["wandb: no pictures.", "wandb: no lineage."]


def test_a_second_start_continues_where_the_first_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(tmp_path, monkeypatch, "ok")
    for step in (1, 2):
        sink = bench.sink()
        sink.start()
        sink.log(step, {"league/games": step})
        sink.close()
    assert [call[1]["league/games"] for call in bench.calls("log")] == [1.0, 2.0]  # type: ignore[index]


@pytest.mark.parametrize("behaviour", ["hang_init", "hang_finish"])
def test_a_hanging_server_costs_the_deadline_and_leaves_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    bench = Bench(tmp_path, monkeypatch, behaviour)
    sink = bench.sink(close_deadline_s=0.3)
    sink.start()
    pid = sink.worker_pid
    assert pid is not None
    sink.log(1, {"league/games": 1})
    if behaviour == "hang_init":
        (tmp_path / "hangs").open().close()  # returns when it does
    else:
        wait_for_message(sink)
    before = time.monotonic()
    sink.close()
    assert time.monotonic() - before < CLOSE_DEADLINE_S / 2  # it was ended by the sink, not by itself
    assert wait_until_gone(pid, 0.0)
    assert len(bench.warnings) == 1
    assert "took more than 0.3 s" in bench.warnings[0] and f"`league wandb sync {tmp_path}`" in bench.warnings[0]
    assert bench.spool_path.read_bytes().count(b"\n") == 1


@pytest.mark.parametrize(("behaviour", "longest_s"), [("hang_init", 1.0), ("hang_finish", 60.0)])
def test_a_server_that_never_answered_is_waited_for_less_than_one_that_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str, longest_s: float
) -> None:
    monkeypatch.setattr("league.see.trackers.uploading_sink.SILENT_AFTER_S", 0.0)
    monkeypatch.setattr("league.see.trackers.uploading_sink.SILENT_DEADLINE_S", 1.0)
    bench = Bench(tmp_path, monkeypatch, behaviour)
    sink = bench.sink(close_deadline_s=60.0)
    sink.start()
    assert sink._worker is not None
    waits: list[float | None] = []
    monkeypatch.setattr(sink._worker, "finish", lambda *, grace_s: waits.append(grace_s))
    if behaviour == "hang_init":
        (tmp_path / "hangs").open().close()  # returns when it does
    else:
        wait_for_message(sink)
    sink.close()
    assert waits[0] == longest_s


def test_an_unreachable_server_warns_once_and_the_run_is_kept_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, "unreachable")
    sink = bench.sink(mode="online")
    sink.start()
    sink.log(1, {"league/games": 1})
    sink.close()
    assert [call[1] for call in bench.calls("init")] == ["online", "offline"]
    assert len(bench.calls("log")) == 1
    assert len(bench.warnings) == 1
    assert "could not be reached (RuntimeError)" in bench.warnings[0]


@pytest.mark.parametrize("behaviour", ["raise_init", "die"])
def test_a_failing_tracker_warns_once_without_quoting_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behaviour: str
) -> None:
    bench = Bench(tmp_path, monkeypatch, behaviour)
    sink = bench.sink()
    sink.start()
    pid = sink.worker_pid
    assert pid is not None
    sink.log(0, {"league/games": 0})
    assert wait_until_gone(pid, 20.0)
    for step in range(1, 20):
        sink.log(step, {"league/games": step})
    sink.close()
    assert len(bench.warnings) == 1
    assert "CANARY" not in bench.warnings[0]
    assert bench.spool_path.read_bytes().count(b"\n") == 20


DAEMON = """
import sys
import time
from pathlib import Path
from league.run.monitor.spool import Spool
from league.see.trackers.wandb_job import WandbJob
from league.see.trackers.wandb_sink import WandbSink
from league.store.storage import Storage
folder, spool = sys.argv[1:]
sink = WandbSink(
    WandbJob(folder, spool, "offline", "n", "r", "g", {}),
    spool=Spool(Path(spool), storage=Storage(), clock=lambda: 0.0, warn=print, max_bytes=1 << 20),
    warn=print,
    close_deadline_s=5.0,
)
sink.start()
sink.log(1, {"league/games": 1})
print(sink.worker_pid, flush=True)
sys.stdin.read()
"""


def test_a_killed_daemon_leaves_no_process_and_its_rows_are_handed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path, monkeypatch, "ok")
    daemon = subprocess.Popen(
        [sys.executable, "-c", DAEMON, str(tmp_path), str(bench.spool_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with daemon:
        assert daemon.stdout is not None
        pid = int(daemon.stdout.readline())
        daemon.send_signal(signal.SIGKILL)
    assert wait_until_gone(pid, 20.0)
    assert (len(bench.calls("log")), len(bench.calls("finish"))) == (1, 1)


def test_rows_stand_farther_apart_the_longer_a_run_has_lasted(tmp_path: Path) -> None:
    rows: list[float] = []

    class Counting(Spool):
        def log(self, step: int, values: Mapping[str, float]) -> None:
            rows.append(values["league/elapsed_s"])

    spool = Counting(tmp_path / "spool.jsonl", storage=Storage(), clock=lambda: 0.0, warn=print, max_bytes=1 << 20)
    sink = WandbSink(
        WandbJob(str(tmp_path), "", "offline", "n", "r", "g", {}), spool=spool, warn=print, close_deadline_s=1.0
    )
    for elapsed in range(0, 30 * 86_400, 2):
        sink.log(0, {"league/elapsed_s": float(elapsed)})
    assert rows[:10_000] == [float(elapsed) for elapsed in range(0, 20_000, 2)]
    assert 50_000 < len(rows) < 60_000
    assert 200.0 < rows[-1] - rows[-2] < 300.0


def test_a_torn_row_is_passed_over_and_an_unfinished_one_awaited(tmp_path: Path) -> None:
    spool = tmp_path / "spool.jsonl"
    reader = SpoolReader(spool, storage=Storage())
    assert reader.rows() == []
    spool.write_bytes(b'{"step":1,"time":0,"values":{}}\n{"step":2,"ti\n{"step":3,"time":0,"values":{}}\n{"step":4,')
    assert [row[0] for row in reader.rows()] == [1, 3]
    assert reader.rows() == []
    with spool.open("ab") as file:
        file.write(b'"time":0,"values":{"a":1}}\n')
    assert reader.rows() == [(4, 0.0, {"a": 1.0})]
    reader.keep_place()
    assert SpoolReader(spool, storage=Storage()).rows() == []
    spool.write_bytes(b"")
    assert SpoolReader(spool, storage=Storage()).rows() == []


def test_auto_is_online_only_for_a_user_who_is_logged_in(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path)}
    assert resolved_mode("auto", home) == "offline"
    assert resolved_mode("auto", {**home, "WANDB_API_KEY": "k"}) == "online"
    assert resolved_mode("auto", {**home, "WANDB_API_KEY": "k", "WANDB_MODE": "disabled"}) == "disabled"
    (tmp_path / ".netrc").write_text("machine api.wandb.ai login user password k\n")
    assert resolved_mode("auto", home) == "online"
    assert resolved_mode("auto", {**home, "WANDB_BASE_URL": "https://wandb.example.org"}) == "offline"
    (tmp_path / ".netrc").write_text("machine machine machine")
    assert resolved_mode("auto", home) == "offline"
    for mode in ("online", "offline", "disabled"):
        assert resolved_mode(mode, {**home, "WANDB_API_KEY": "k"}) == mode


def test_disabled_starts_nothing_and_writes_nothing(tmp_path: Path) -> None:
    context = SinkContext(
        run_path=tmp_path,
        run_name="run",
        config={},
        settings=WandbConfig(mode="disabled"),
        warn=pytest.fail,
        clock=lambda: 0.0,
        storage=Storage(),
    )
    sink = open_wandb_sink(context)
    assert isinstance(sink, NoSink)
    sink.log(1, {})
    sink.close()
    assert list(tmp_path.iterdir()) == []
