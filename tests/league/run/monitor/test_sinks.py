"""What every metric sink must do, and what the file of metrics holds."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from league.config.run_config import WandbConfig
from league.errors import LeagueError
from league.run.monitor.jsonl_sink import JsonlSink, decode_row, last_row
from league.run.monitor.names import METRICS, RATING, metric_of
from league.run.monitor.sink import (
    METRIC_SINKS,
    OPTIONAL_SINKS,
    SinkContext,
    SinkGroup,
    check_plugin_sink,
    open_plugin_sink,
    open_sink,
)
from league.store.storage import Storage, StorageError


def context_of(folder: Path, warnings: list[str]) -> SinkContext:
    return SinkContext(
        run_path=folder,
        run_name="run-1",
        config={"seed": 0},
        settings=WandbConfig(mode="offline"),
        warn=warnings.append,
        clock=lambda: 7.0,
        storage=Storage(),
    )


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loaded machine takes its time."""
    for deadline in ("CLOSE_DEADLINE_S", "SILENT_DEADLINE_S"):
        monkeypatch.setattr(f"league.see.trackers.uploading_sink.{deadline}", 60.0)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("kind", sorted(METRIC_SINKS))
def test_every_registered_sink_takes_rows_and_stays_in_the_run_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    warnings: list[str] = []
    sink = open_sink(kind, context_of(run, warnings))
    sink.log(1, {"league/games": 3, "league/commit_ms": float("nan")})
    sink.log(2, {})
    sink.close()
    sink.close()
    sink.log(3, {"league/games": 4})
    assert warnings == []
    assert list(elsewhere.iterdir()) == []
    kept = b"".join(path.read_bytes() for path in run.rglob("*") if path.is_file())
    assert b"league/games" in kept


@pytest.mark.usefixtures("patient")
def test_the_real_wandb_writes_an_offline_run(tmp_path: Path) -> None:
    sink = open_sink("wandb", context_of(tmp_path, []))
    sink.log(1024, {"league/games": 3})
    sink.close()
    (run_file,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = run_file.read_bytes()
    assert b"league/games" in content and b"league/env_steps" in content


def test_an_unknown_sink_names_the_known_ones(tmp_path: Path) -> None:
    for kind in ("prometheus", "league.run.monitor.sink:Missing", "no_such_module:sink"):
        with pytest.raises(ValueError, match=f"metric sink '{kind}'"):
            open_sink(kind, context_of(tmp_path, []))


def test_a_row_is_one_line_of_json_without_what_is_not_finite(tmp_path: Path) -> None:
    sink = open_sink("jsonl", context_of(tmp_path, []))
    sink.log(5, {"a": 1.5, "b": float("nan"), "c": float("-inf")})
    sink.close()
    assert json.loads((tmp_path / "metrics.jsonl").read_text()) == {"step": 5, "time": 7.0, "values": {"a": 1.5}}
    assert decode_row(b'{"step":') is None


def test_a_full_disk_drops_rows_with_one_warning(tmp_path: Path) -> None:
    def full(point: str) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    warnings: list[str] = []
    sink = JsonlSink(tmp_path / "m", storage=Storage(hook=full), clock=lambda: 0.0, warn=warnings.append)
    for step in range(3):
        sink.log(step, {"a": 1.0})
    assert sink.num_dropped == 3
    assert len(warnings) == 1 and "Training continues" in warnings[0]


def test_a_disk_that_cannot_be_read_ends_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(*_: object, **__: object) -> bytes:
        raise StorageError("m cannot be read: input/output error.")

    warnings: list[str] = []
    storage = Storage()
    monkeypatch.setattr(storage, "read_bytes", unreadable)
    sink = JsonlSink(tmp_path / "m", storage=storage, clock=lambda: 0.0, warn=warnings.append, max_bytes=50)
    for step in range(9):
        sink.log(step, {"a": 1.0})
    assert sink.num_dropped > 0 and len(warnings) == 1


def test_the_last_row_is_the_newest_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "m"
    assert last_row(path) is None
    path.write_bytes(b'{"step":1,"time":0.0,"values":{}}\n{"step":2,"time":0.0,"values":{"\xff":1.0}}\n{"step":')
    found = last_row(path)
    assert found is not None and found.step == 1


def test_a_group_passes_everything_to_each(tmp_path: Path) -> None:
    sinks = tuple(
        JsonlSink(tmp_path / name, storage=Storage(), clock=lambda: 0.0, warn=pytest.fail) for name in ("a", "b")
    )
    group = SinkGroup(sinks)
    group.log(1, {"x": 1.0})
    group.close()
    group.log(2, {"x": 2.0})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes().count(b"\n") == 1


def test_every_metric_is_found_by_its_reported_name() -> None:
    for name, metric in METRICS.items():
        assert metric.meaning and metric.name == name
        assert metric_of(metric.of("main-0")) is metric
    assert metric_of(RATING.of("league-exploiter-0")) is RATING
    assert metric_of("league/no_such") is None
    assert metric_of("player/main-0/no_such") is None


def test_metrics_have_a_largest_size_and_the_oldest_rows_stand_farthest_apart(tmp_path: Path) -> None:
    path, max_bytes = tmp_path / "m", 40_000
    sink = JsonlSink(path, storage=Storage(), clock=lambda: 0.0, warn=print, max_bytes=max_bytes)
    for step in range(20_000):
        sink.log(step, {"a": 1.0})
        if step == 9_000:  # as after a restart
            sink = JsonlSink(path, storage=Storage(), clock=lambda: 0.0, warn=print, max_bytes=max_bytes)
    assert path.stat().st_size <= max_bytes
    kept = [json.loads(line)["step"] for line in path.read_bytes().splitlines()]
    gaps = np.diff(kept)
    assert kept[0] == 0 and kept[-200:] == list(range(19_800, 20_000))
    assert gaps.min() >= 1 and gaps[:20].mean() > 20 * gaps[-20:].mean()


@dataclass(frozen=True)
class RecorderConfig:
    """Options of `Recorder`."""

    label: str = ""
    fails: bool = False


class Recorder:
    """A sink of the user's own."""

    def __init__(self, context: SinkContext, options: RecorderConfig) -> None:
        self.path = context.run_path / f"{options.label}.txt"
        self.fails = options.fails

    def log(self, step: int, values: Mapping[str, float]) -> None:
        if self.fails:
            raise RuntimeError("disk of the user's own is full")
        self.path.write_text(f"{step} {dict(values)}")

    def close(self) -> None:
        self.path.with_suffix(".closed").touch()


OWN = f"{__name__}:Recorder"


def test_a_sink_of_the_users_own_gets_its_options_and_every_value(tmp_path: Path) -> None:
    sink = open_plugin_sink({"kind": OWN, "label": "mine"}, context_of(tmp_path, []))
    sink.log(7, {"league/games": 3.0})
    sink.close()
    assert (tmp_path / "mine.txt").read_text() == "7 {'league/games': 3.0}"
    assert (tmp_path / "mine.closed").exists()


def test_a_sink_that_raises_is_reported_once_and_left_out(tmp_path: Path) -> None:
    warnings: list[str] = []
    sink = open_plugin_sink({"kind": OWN, "label": "mine", "fails": True}, context_of(tmp_path, warnings))
    sink.log(1, {})
    sink.log(2, {})
    sink.close()
    assert len(warnings) == 1 and "Recorder failed" in warnings[0] and "is full" in warnings[0]


def test_a_sink_that_cannot_be_made_is_an_error_of_the_users(tmp_path: Path) -> None:
    with pytest.raises(LeagueError, match="cannot be opened"):
        open_plugin_sink("pathlib:Path", context_of(tmp_path, []))


@pytest.mark.parametrize(
    ("sink", "problem"),
    [
        ({"kind": OWN, "colour": 1}, r"monitor.sinks.0.colour: unknown key"),
        ({"kind": OWN, "fails": "yes"}, r"monitor.sinks.0.fails: 'yes' does not fit"),
        ("jsonl", "always open"),
        ("csv", "unknown metric sink"),
        ({"kind": "tensorboard", "colour": 1}, "monitor.sinks.0.colour: unknown key"),
        (f"{__name__}:Recoder", "did you mean Recorder"),
    ],
)
def test_a_sink_that_could_not_be_called_is_refused_without_a_call(sink: str | dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        check_plugin_sink(sink, place="monitor.sinks.0")


@pytest.mark.parametrize("kind", sorted(OPTIONAL_SINKS))
def test_a_sink_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=f"monitor.sinks.0: the sink '{kind}' .*install the extra `{kind}`"):
        check_plugin_sink(kind, place="monitor.sinks.0")
