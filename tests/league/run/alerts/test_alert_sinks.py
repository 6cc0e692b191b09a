"""What every alert sink must do, and how they fail: with a clause that holds no secret, within their deadline."""

from __future__ import annotations

import http.server
import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from league.run.alerts.sink import ALERT_SINKS, AlertContext, AlertNews, AlertSink, AlertSinkFailed, make_alert_sink
from league.store.storage import Storage

CANARY = "canary-7f3a"
NEWS = [
    AlertNews("run-1", "disk_low", "", state, f"the disk is {state}", 1.0, 2.0) for state in ("firing", "recovered")
]


class Hook:
    """A server on loopback that keeps what is posted; `status` is its answer."""

    def __init__(self) -> None:
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.status, self.waits = 200, threading.Event()
        self.waits.set()
        hook = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.waits.wait(10.0)
                hook.taken.append((dict(self.headers), body))
                self.send_response(hook.status)
                self.end_headers()

            def log_message(self, *arguments: object) -> None:
                """Nothing on the terminal."""

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook/{CANARY}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hook]:
    made = Hook()
    monkeypatch.setenv("TEST_HOOK", made.url)
    monkeypatch.setenv("TEST_TOKEN", CANARY)
    yield made
    made.waits.set()
    made.server.shutdown()
    made.server.server_close()


def context_of(path: Path) -> AlertContext:
    for name in ("logs", "wandb"):
        (path / name).mkdir(exist_ok=True)
    return AlertContext(path, Storage())


def sink_of(kind: str, path: Path, **options: object) -> AlertSink:
    return make_alert_sink({"kind": kind, **options}, context_of(path), place="alerts.sinks.0")


def _read_log(path: Path, hook: Hook) -> str:
    return (path / "logs" / "alerts.log").read_text()


def _read_posts(path: Path, hook: Hook) -> str:
    assert all(headers["Authorization"] == f"Bearer {CANARY}" for headers, _ in hook.taken)
    assert [json.loads(body)["state"] for _, body in hook.taken] == ["firing", "recovered"]
    return "".join(body.decode() for _, body in hook.taken)


def _read_file(path: Path, hook: Hook) -> str:
    assert [json.loads(line)["state"] for line in (path / "said").read_text().splitlines()] == ["firing", "recovered"]
    return (path / "said").read_text()


CASES: Mapping[str, tuple[Callable[[Path], dict[str, object]], Callable[[Path, Hook], str]]] = {
    "log": (lambda path: {}, _read_log),
    "webhook": (lambda path: {"url_from": "TEST_HOOK", "token_from": "TEST_TOKEN"}, _read_posts),
    "wandb": (lambda path: {}, lambda path, hook: (path / "wandb" / "alerts.jsonl").read_text()),
    "command": (lambda path: {"argv": ["sh", "-c", f"cat >> {path}/said"]}, _read_file),
}


def test_every_registered_sink_has_a_case() -> None:
    assert set(CASES) == set(ALERT_SINKS)


@pytest.mark.parametrize("kind", sorted(ALERT_SINKS))
def test_every_registered_sink_carries_both_news_and_closes_twice(tmp_path: Path, hook: Hook, kind: str) -> None:
    options, read = CASES[kind]
    sink = sink_of(kind, tmp_path, **options(tmp_path))
    for news in NEWS:
        sink.deliver(news)
    sink.close()
    sink.close()
    assert all(news.text in read(tmp_path, hook) for news in NEWS)


def test_a_webhook_that_fails_says_so_without_its_secrets(
    tmp_path: Path, hook: Hook, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sink = sink_of("webhook", tmp_path, url_from="TEST_HOOK", token_from="TEST_TOKEN", deadline_s=0.2)
    hook.status = 500
    with pytest.raises(AlertSinkFailed, match="answered 500") as refused:
        sink.deliver(NEWS[0])
    hook.waits.clear()
    began = time.monotonic()
    with pytest.raises(AlertSinkFailed, match="does not take it") as slow:
        sink.deliver(NEWS[0])
    assert time.monotonic() - began < 30.0
    assert CANARY not in f"{refused.value} {slow.value} {caplog.text}"


def test_a_command_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/pid; wait"
    sink = sink_of("command", tmp_path, argv=["sh", "-c", script], deadline_s=0.5)
    with pytest.raises(AlertSinkFailed, match="and was killed"):
        sink.deliver(NEWS[0])
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 60.0
    while Path(f"/proc/{child}").exists() and "Z" not in Path(f"/proc/{child}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline, "its child lives"
        time.sleep(0.01)
    for argv, sentence in (
        ([sys.executable, "-c", "exit(3)"], "exit code 3"),
        (["no-such-program"], "cannot be started"),
    ):
        with pytest.raises(AlertSinkFailed, match=sentence):
            sink_of("command", tmp_path, argv=argv).deliver(NEWS[0])


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({"kind": "webhook"}, "url: give it, or the environment variable"),
        (
            {"kind": "webhook", "url_from": "NO_SUCH_VARIABLE"},
            "url_from: the environment variable NO_SUCH_VARIABLE is not",
        ),
        ({"kind": "webhook", "url": "ftp://x"}, "url: it is no URL"),
        ({"kind": "webhook", "url": "http://x", "deadline_s": 0}, "deadline_s: 0"),
        ({"kind": "command"}, "argv: is missing"),
        ({"kind": "command", "argv": []}, "argv: give a program"),
        ("pager", "unknown alert sink"),
    ],
)
def test_what_cannot_work_is_refused_with_its_key(tmp_path: Path, choice: object, sentence: str) -> None:
    with pytest.raises(ValueError, match="0") as caught:
        make_alert_sink(choice, context_of(tmp_path), place="alerts.sinks.0")  # type: ignore[arg-type]
    assert str(caught.value).startswith("alerts.sinks.0") and sentence in str(caught.value)
