"""The chaos benchmark: what it kills, what it counts as recovered, which rows must hold."""

import random
import types
from pathlib import Path

import pytest
import yaml

from benchmarks.durability import chaos
from benchmarks.durability.audit import Audit
from benchmarks.durability.leak_check import Remains
from benchmarks.journal_follower import Noted
from league.config.loading import load_config
from league.core.state.events import LeaseFinished, LeaseGranted
from league.core.state.records import Lease

SOUND = Audit((), (), (), leases=3, games=9)


def lease(lease_id: int, home: str | None = "main-0") -> Noted:
    return Noted(2 * lease_id, 0.0, LeaseGranted(Lease(lease_id, 1, "actor-0", home, (), 8)))


def result(lease_id: int) -> Noted:
    return Noted(2 * lease_id + 1, 0.0, LeaseFinished(lease_id, 1, 8, ()))


@pytest.fixture
def watching(tmp_path: Path) -> chaos.Chaos:
    """A chaos run without a process whose journal is what the test says."""
    found = chaos.Chaos(tmp_path, rng=random.Random(0))
    found._command = types.SimpleNamespace(ended=None, pid=1, failure=RuntimeError)
    return found


def show(watching: chaos.Chaos, *batches: list[Noted]) -> None:
    waiting = list(batches)
    watching._follower = types.SimpleNamespace(poll=lambda: waiting.pop(0) if waiting else [], close=lambda: None)


def test_settings_are_a_valid_configuration(tmp_path: Path):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(chaos.SETTINGS))
    config = load_config(path)
    assert config.runtime.kind == "ray"
    assert len(config.league.players) == 3


def test_a_lease_granted_before_the_kill_is_no_recovery(watching: chaos.Chaos):
    show(watching, [lease(1), lease(2)], [result(2)], [lease(3)], [result(3)])
    watching._tick()
    watching._await_lease(after=watching._granted, deadline_s=10.0)
    assert watching._training_lease == 3
    assert watching.findings == chaos.Findings(finished=[result(2), result(3)])


def test_a_rating_match_is_no_recovery(watching: chaos.Chaos):
    show(watching, [lease(1, home=None)], [result(1)], [lease(2)], [result(2)])
    watching._await_lease(after=0, deadline_s=10.0)
    assert watching._training_lease == 2
    assert watching.findings.left_early == []


def test_no_recovery_within_the_deadline_is_an_error(watching: chaos.Chaos):
    show(watching)
    with pytest.raises(RuntimeError, match="no lease finished"):
        watching._await_lease(after=0, deadline_s=0.05)


def test_a_command_that_left_by_itself_is_noted_and_started_again(
    watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch
):
    launched: list[tuple[str, ...]] = []
    watching._command.ended = 2
    show(watching, [])

    def launch(self, *arguments: str) -> None:
        launched.append(arguments)
        self._command.ended = None
        show(self, [lease(1), result(1)])

    monkeypatch.setattr(chaos.Chaos, "_launch", launch)
    watching._await_lease(after=0, deadline_s=10.0)
    assert launched == [("resume", str(watching.run))]
    assert watching.findings.left_early == ["it left by itself"]


def test_only_a_worker_below_our_own_daemon_is_killed(watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch):
    answers = ['{"workers": [{"kind": "actor_host", "pid": 5}]}', '{"workers": [{"kind": "actor_host", "pid": 6}]}']
    monkeypatch.setattr(chaos.subprocess, "run", lambda *a, **k: types.SimpleNamespace(stdout=answers.pop(0)))
    monkeypatch.setattr(chaos, "descendants", lambda pid: {6: 1})
    monkeypatch.setattr(watching, "_idle", lambda *a, **k: False)
    assert watching._worker("actor_host") == 6


def test_what_is_left_after_ten_seconds_is_a_finding(watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chaos, "left_of", lambda remains: ["process 9: x"])
    remains = Remains(daemon=4, killed_at=100.0, processes={9: 1}, paths=())
    assert not watching._settled(remains, 109.0)
    assert watching.findings.left == []
    assert watching._settled(remains, 111.0)
    assert watching.findings.left == ["11 s after the end of daemon 4: process 9: x"]


def test_a_clean_end_is_timed(watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chaos, "left_of", lambda remains: [])
    assert watching._settled(Remains(daemon=4, killed_at=100.0, processes={}, paths=()), 103.5)
    assert watching.findings.clean_s == [3.5]


def test_a_sound_run_meets_every_bound():
    findings = chaos.Findings(finished=[result(1)], recovery_s={"actor": [1.0, 3.0]})
    findings.kills["actor"] = 2
    report = chaos.rows_of(findings, SOUND, problems=[], kills=2, targets=["actor"])
    assert report.failed == []
    assert {row.name: row.value for row in report.rows}[
        "kill of the actor to the next finished training lease, longest"
    ] == 3.0


@pytest.mark.parametrize(
    ("audit", "problems", "change"),
    [
        (Audit(("x",), (), (), 3, 9), [], {}),
        (Audit((), ("x",), (), 3, 9), [], {}),
        (Audit((), (), ("x",), 3, 9), [], {}),
        (SOUND, ["x"], {}),
        (SOUND, [], {"left": ["x"]}),
        (SOUND, [], {"left_early": ["x"]}),
        (SOUND, [], {"finished": []}),
    ],
)
def test_each_fault_fails_the_benchmark(audit: Audit, problems: list[str], change: dict[str, list[str]]):
    findings = chaos.Findings(**{"finished": [result(1)], **change})
    findings.kills["actor"] = 2
    assert len(chaos.rows_of(findings, audit, problems=problems, kills=2, targets=["actor"]).failed) == 1


def test_too_few_kills_fail_the_benchmark():
    findings = chaos.Findings(finished=[result(1)])
    assert len(chaos.rows_of(findings, SOUND, problems=[], kills=2, targets=["actor"]).failed) == 1
