"""A whole run on Ray of players that learn in five ways: each process is killed in turn, and nothing stays behind."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from league.core.state.events import LeaseExpired
from league.errors import PREEMPTED
from league.see.reports.verify import verify_run
from tests.integration.test_lineage import CONFIGS, small
from tests.league.commands import PROGRESS, league, spawn_fresh, wait_for_play, wait_until
from tests.league.tiny_runs import events_of, state_of, write_config

pytestmark = pytest.mark.xdist_group("ray")
"""All that needs Ray runs in one worker, so that the machine holds one cluster at a time."""

MARK = "LEAGUE_TEST_MARK"
DEADLINE_S = 180.0
"""For five players on a busy machine."""


@pytest.fixture
def mark(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A word in the environment of everything that the test starts, directly or not."""
    word = secrets.token_hex(8)
    monkeypatch.setenv(MARK, word)
    yield word
    for pid in marked(word):
        os.kill(pid, signal.SIGKILL)


def marked(word: str) -> list[int]:
    """Processes, this one apart, that carry the mark."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            carries = f"{MARK}={word}".encode() in (entry / "environ").read_bytes()
        except OSError:
            continue
        if carries and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


def workers(run: Path) -> dict[str, int]:
    status = json.loads((run / "status.json").read_text())
    return {worker["kind"]: worker["pid"] for worker in status["workers"]}


def kill_and_wait(run: Path, kind: str, process: subprocess.Popen[str]) -> None:
    """Kill a host, then wait until another is in its place and games are counted again."""
    before, steps = workers(run)[kind], state_of(run).totals.env_steps
    os.kill(before, signal.SIGKILL)
    wait_until(
        lambda: (
            process.poll() is not None
            or (workers(run).get(kind, before) != before and state_of(run).totals.env_steps > steps + 1_000)
        ),
        f"another {kind}",
        deadline_s=DEADLINE_S,
    )
    assert process.poll() is None, process.communicate()


def trained(run: Path) -> dict[str, int]:
    """Decisions that each player has learnt from, as far as they are durable."""
    return {name: player.trained_steps for name, player in state_of(run).players.items()}


def wait_until_all_learn(run: Path, process: subprocess.Popen[str]) -> None:
    """Wait until every player has learnt from more decisions than now."""
    before = trained(run)
    wait_until(
        lambda: process.poll() is not None or all(trained(run)[name] > before[name] for name in before),
        "updates of all",
        deadline_s=DEADLINE_S,
    )
    assert process.poll() is None, process.communicate()


@pytest.mark.timeout(600)
def test_a_run_on_ray_survives_its_hosts_and_its_daemon_and_leaves_nothing(tmp_path: Path, mark: str) -> None:
    plain = small(next(path for path in CONFIGS if path.stem == "mixed_learners"))
    plain["runtime"] = {"kind": "ray", "object_store_mb": 80, "checkpoint_updates": 5}
    config, run = write_config(tmp_path, plain), tmp_path / "run"
    first = spawn_fresh("train", config, "--run-dir", run, "--for", "300s")
    wait_for_play(first, run, deadline_s=DEADLINE_S)
    kill_and_wait(run, "actor_host", first)
    kill_and_wait(run, "learner_host", first)
    first.kill()
    first.communicate()
    before = events_of(run)
    assert any(isinstance(event, LeaseExpired) for event in before)
    wait_until(lambda: not marked(mark), "the end of every process of the killed daemon")
    assert league("status", run, "--json").json["phase"] == "killed"

    second = spawn_fresh("resume", run, "--for", "300s")
    wait_for_play(second, run, deadline_s=DEADLINE_S)
    wait_until_all_learn(run, second)
    second.send_signal(signal.SIGINT)
    out, err = second.communicate(timeout=60)
    said = [line for line in err.splitlines() if not PROGRESS.fullmatch(line)]
    assert (second.returncode, said) == (PREEMPTED, []), out
    assert events_of(run)[: len(before)] == before
    assert not state_of(run).leases
    assert verify_run(run).problems == ()
    wait_until(lambda: not marked(mark), "the end of every process of the stopped daemon")
    assert not list(Path("/tmp").glob(f"lg-{first.pid}-*")) + list(Path("/tmp").glob(f"lg-{second.pid}-*"))
