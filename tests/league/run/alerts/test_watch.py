"""Alerts of a run: each is reported once and once more when it has recovered, and no sink can hold the run up."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from league.config.plugin_names import outside_names
from league.core.state.state import LeagueState
from league.errors import ConfigError
from league.policies.trust import Untrusted
from league.run.alerts.condition import AlertInputs, Condition
from league.run.alerts.sink import AlertNews, AlertSinkFailed
from league.run.alerts.watch import MAX_WAITING, AlertWatch, Courier
from league.run.control.exposition import exposition
from league.run.daemon_status import DaemonStatus
from league.run.monitor.observer import Observer
from league.see.reports.status.status_report import read_status
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, go_on, start, tiny


class Scripted:
    """A condition whose answers are given."""

    def __init__(self, *answers: Mapping[str, str] | Exception) -> None:
        self._answers = list(answers)

    def check(self, seen: AlertInputs) -> Mapping[str, str]:
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Kept:
    """A sink that keeps the news; it fails the first `failures` times, and hangs while `holds` is set."""

    def __init__(self, *, failures: int = 0) -> None:
        self.news: list[AlertNews] = []
        self.failures, self.closed = failures, False
        self.free = threading.Event()
        self.free.set()

    def deliver(self, news: AlertNews) -> None:
        self.free.wait(30.0)
        if self.failures:
            self.failures -= 1
            raise AlertSinkFailed("it is out")
        self.news.append(news)

    def close(self) -> None:
        self.closed = True
        self.free.set()


def watch_of(said: list[str], *couriers: Courier, **conditions: Condition) -> AlertWatch:
    return AlertWatch("run-1", conditions, couriers, say=said.append, wall_time=lambda: 7.0)


def look(watch: AlertWatch, times: int) -> None:
    for number in range(times):
        watch.look(AlertInputs(now=10.0 * number, phase="training", state=LeagueState()))


def test_an_alert_is_reported_once_and_once_more_when_it_has_recovered() -> None:
    said, sink = list[str](), Kept()
    courier = Courier("kept", sink)
    wrong = {"a": "a is wrong", "b": "b is wrong"}
    watch = watch_of(said, courier, x=Scripted(wrong, wrong, {"b": "b is worse"}, {}, wrong))
    look(watch, 2)
    assert [(status.alert, status.subject, status.since) for status in watch.firing] == [
        ("x", "a", 7.0),
        ("x", "b", 7.0),
    ]
    look(replace_due(watch), 3)
    watch.close()
    assert sink.closed
    states = [(news.subject, news.state) for news in sink.news]
    assert states == [(s, "firing") for s in "ab"] + [("a", "recovered"), ("b", "recovered")] + [
        (s, "firing") for s in "ab"
    ]
    assert said[0] == "Alert x: a is wrong." and "recovered. It was: b is wrong" in said[3]


def replace_due(watch: AlertWatch) -> AlertWatch:
    """The watch, which looks at once."""
    watch._due = -float("inf")
    return watch


def test_a_condition_that_raises_is_reported_once_and_the_others_are_still_looked_at() -> None:
    said = list[str]()
    watch = watch_of(said, bad=Scripted(RuntimeError("mine")), good=Scripted({}, {"": "something"}))
    look(watch, 2)
    assert len(said) == 2 and "bad failed" in said[0] and "mine" in said[0] and "something" in said[1]


def test_a_sink_that_hangs_costs_the_run_nothing_and_one_that_fails_is_tried_again() -> None:
    said, stuck, failing = list[str](), Kept(), Kept(failures=2)
    stuck.free.clear()
    couriers = [Courier("stuck", stuck), Courier("failing", failing, pauses_s=(0.0, 0.0))]
    flips = [{"": "wrong"} if number % 2 == 0 else {} for number in range(MAX_WAITING + 20)]
    watch = watch_of(said, *couriers, x=Scripted(*flips))
    began = time.monotonic()
    look(watch, len(flips))
    assert time.monotonic() - began < 30.0
    assert any("stuck is too slow" in sentence for sentence in said)
    couriers[0].close(wait_s=0.05)
    couriers[1].close(wait_s=60.0)
    assert stuck.closed and len(stuck.news) <= 1
    assert len(failing.news) == len(flips) - sum("failing" in sentence for sentence in said)


def test_a_full_queue_is_delivered_at_the_end() -> None:
    sink = Kept()
    sink.free.clear()
    courier = Courier("late", sink)
    for number in range(MAX_WAITING + 1):
        courier.send(AlertNews("run-1", "x", str(number), "firing", "text", 1.0, 1.0))
        while number == 0 and not courier._waiting.empty():  # until the first is in hand
            time.sleep(0.001)
    assert courier._waiting.full()
    threading.Timer(0.1, sink.free.set).start()
    courier.close(wait_s=10.0)
    assert len(sink.news) == MAX_WAITING + 1
    assert courier.troubles() == []


def test_a_delivery_that_is_given_up_is_reported() -> None:
    courier = Courier("failing", Kept(failures=9), pauses_s=(0.0, 0.0))
    courier.send(AlertNews("run-1", "x", "", "firing", "text", 1.0, 1.0))
    courier.close(wait_s=60.0)
    assert courier.troubles() == ["The alert sink failing did not take news of x: it is out."]


def test_a_run_tells_of_its_alerts_in_status_log_and_metrics_and_by_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alerts = {
        "conditions": [{"kind": "disk_low", "floors": 1e9}],
        "sinks": ["log", {"kind": "command", "argv": ["sh", "-c", f"cat > {tmp_path}/said"]}],
    }
    seen_text, seen_metrics = list[str](), list[bytes]()
    observe = Observer.observe

    def look_inside(self: Observer, seen: DaemonStatus) -> None:
        observe(self, seen)
        self._due["status"] = 0.0
        seen_text.append(read_status(tmp_path / "run").text())
        seen_metrics.append(exposition(RunFolder(tmp_path / "run")))

    monkeypatch.setattr(Observer, "observe", look_inside)
    start(tmp_path, tiny(league=ONE_PLAYER, alerts=alerts), env_steps=300)
    assert "alert disk_low (" in seen_text[-1] and "GiB are free" in seen_text[-1]
    assert b'league_alert{alert="disk_low",subject=""} 1.0' in seen_metrics[-1]
    assert "firing disk_low: Alert disk_low:" in (tmp_path / "run" / "logs" / "alerts.log").read_text()
    assert '"state":"firing"' in (tmp_path / "said").read_text()
    assert not read_status(tmp_path / "run").daemon.status.alerts


def test_alerts_that_cannot_be_made_and_those_of_a_strangers_folder_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"alerts.sinks.0.argv: is missing"):
        start(tmp_path, tiny(alerts={"sinks": [{"kind": "command"}]}), env_steps=10)
    plain = tiny(league=ONE_PLAYER, alerts={"sinks": ["log", {"kind": "command", "argv": ["true"]}]})
    assert [(found.path, found.kind) for found in outside_names(plain)] == [("alerts.sinks.1.kind", "alert_sink")]
    start(tmp_path, plain, env_steps=100)
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    go_on(tmp_path / "run", env_steps=10)
    (tmp_path / "run" / "trust.json").unlink()
    monkeypatch.setattr("league.envs.plugins._ADMITTED", set())
    with pytest.raises(Untrusted, match=r"alerts.sinks.1.kind: command"):
        go_on(tmp_path / "run", env_steps=10)
