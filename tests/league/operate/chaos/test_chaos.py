"""Chaos: plans that a seed repeats, what it strikes, what counts as recovered, and a verdict that can fail."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import types
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from league.core.state.events import LeaseFinished, LeaseGranted
from league.core.state.records import Lease
from league.operate.chaos import chaos, faults
from league.operate.chaos.audit import Audit
from league.operate.chaos.faults import damage_copy, fill_for, slow_for, stop_for
from league.operate.chaos.follower import Noted
from league.operate.chaos.leftovers import Remains
from league.operate.chaos.plan import FAULTS, ONE_PROCESS, Strike, StrikePlan
from league.operate.chaos.verdict import Findings, recovery_of, verdict_of
from league.store.run_folder import WorkerStatus
from tests.league.tiny_runs import start

SOUND = Audit((), (), (), leases=3, games=9)
KINDS = tuple(dict.fromkeys(kind for kind, _, _ in FAULTS))
ALL = tuple(dict.fromkeys(target for _, target, _ in FAULTS))


def lease(lease_id: int, home: str | None = "main-0") -> Noted:
    return Noted(2 * lease_id, 0.0, LeaseGranted(Lease(lease_id, 1, "actor-0", home, (), 8)))


def result(lease_id: int) -> Noted:
    return Noted(2 * lease_id + 1, 0.0, LeaseFinished(lease_id, 1, 8, ()))


@pytest.fixture
def watching(tmp_path: Path) -> chaos.Chaos:
    """A chaos run without a process whose journal is what the test says."""
    found = chaos.Chaos(tmp_path / "run", first=("train", "x"), folder=tmp_path)
    found._command = types.SimpleNamespace(ended=None, pid=1, failure=chaos.RunFailed)  # type: ignore[assignment]
    return found


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that writes a byte to its file again and again, and says so."""
    code = (
        "import sys, time\nwhile True:\n  f = open(sys.argv[1], 'ab', 0); f.write(b'x'); f.close(); time.sleep(0.005)"
    )
    path = f"/tmp/chaos-child-{os.getpid()}"
    process = subprocess.Popen([sys.executable, "-S", "-c", code, path], stderr=subprocess.DEVNULL)
    yield process
    process.kill()
    process.wait()
    Path(path).unlink(missing_ok=True)


def show(watching: chaos.Chaos, *batches: list[Noted]) -> None:
    waiting = list(batches)
    follower = types.SimpleNamespace(poll=lambda: waiting.pop(0) if waiting else [], close=lambda: None)
    watching._follower = follower  # type: ignore[assignment]


def test_a_seed_draws_the_same_plan_and_every_fault_comes() -> None:
    one, two = (StrikePlan(7, kinds=KINDS, targets=ALL) for _ in range(2))
    drawn = [one.draw() for _ in range(400)]
    assert drawn == [two.draw() for _ in range(400)]
    assert {(strike.kind, strike.target) for strike in drawn} == {(kind, target) for kind, target, _ in FAULTS}
    assert all(strike.name == "kill daemon" for strike in drawn if strike.hurry_s)
    alone = StrikePlan(7, kinds=KINDS, targets=ONE_PROCESS)
    assert {alone.draw().target for _ in range(100)} == set(ONE_PROCESS)
    with pytest.raises(ValueError, match="no fault of slow"):
        StrikePlan(7, kinds=("slow",), targets=ONE_PROCESS)


def test_a_lease_granted_before_the_strike_is_no_recovery_nor_is_a_rating_match(watching: chaos.Chaos) -> None:
    show(watching, [lease(1), lease(2)], [result(2)], [lease(3, home=None)], [result(3), lease(4)], [result(4)])
    watching._tick()
    watching._await_lease(after=watching._granted, deadline_s=60.0)
    assert watching._training_lease == 4
    assert watching.findings == Findings(finished=[result(2), result(3), result(4)])


def test_no_recovery_within_the_deadline_ends_it(watching: chaos.Chaos) -> None:
    show(watching)
    with pytest.raises(chaos.RunFailed, match="no lease finished"):
        watching._await_lease(after=0, deadline_s=0.05)


@pytest.mark.parametrize(("there", "drawn"), [((True, False, False, True, True), 5), ((False,) * 20, chaos.MAX_MISSES)])
def test_strikes_that_found_no_target_do_not_count(
    watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch, there: tuple[bool, ...], drawn: int
) -> None:
    struck: list[Strike] = []

    def strike(self: chaos.Chaos, strike: Strike) -> bool:
        struck.append(strike)
        return there[len(struck) - 1]

    monkeypatch.setattr(chaos.Chaos, "strike", strike)
    for quiet in ("start", "stop", "close"):
        monkeypatch.setattr(chaos.Chaos, quiet, lambda self: None)
    monkeypatch.setattr(chaos, "verdict_of", lambda findings, found, problems, **ways: ways["failure"])
    monkeypatch.setattr(chaos, "audit_run", lambda run, finished: SOUND)
    monkeypatch.setattr(chaos, "verify", lambda run: ())
    failure = chaos.run_chaos(watching, StrikePlan(7, kinds=KINDS, targets=ALL), seed=7, strikes=3)
    assert len(struck) == drawn
    assert bool(failure) == (not any(there))


@pytest.mark.parametrize("asked", [False, True])
def test_a_daemon_that_ended_starts_again_and_is_a_finding_where_nothing_had_struck(
    watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch, asked: bool
) -> None:
    watching._command.ended = 2  # type: ignore[union-attr,misc]
    watching._may_end_until = float("inf") if asked else 0.0
    show(watching, [])
    launched: list[tuple[str, ...]] = []

    def launch(self: chaos.Chaos, *arguments: str) -> None:
        launched.append(arguments)
        self._command.ended = None  # type: ignore[union-attr,misc]
        show(self, [lease(1), result(1)])

    monkeypatch.setattr(chaos.Chaos, "_launch", launch)
    watching._await_lease(after=0, deadline_s=60.0)
    assert launched == [("train", "x")]
    assert watching.findings.left_early == ([] if asked else ["it left by itself"])
    assert watching.findings.restarts == 1


def test_only_a_worker_below_our_own_daemon_is_struck(watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = [(WorkerStatus("actor_host", 5),), (WorkerStatus("actor_host", 6), WorkerStatus("learner_host", 7))]
    heartbeat = types.SimpleNamespace(read_status=lambda: types.SimpleNamespace(workers=seen.pop(0)))
    monkeypatch.setattr(chaos, "RunFolder", lambda path: heartbeat)
    monkeypatch.setattr(chaos, "descendants", lambda pid: {6: 1, 7: 1})
    show(watching)
    assert watching.pid_of(Strike("kill", "actor", 0.0, 1.0, 0.99)) == 6


def test_what_is_left_after_ten_seconds_is_a_finding(watching: chaos.Chaos, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chaos, "left_of", lambda remains: ["process 9: x"])
    remains = Remains(daemon=4, killed_at=100.0, processes={9: 1}, paths=())
    assert not watching._settled(remains, 109.0)
    assert watching.findings.left == []
    assert watching._settled(remains, 111.0)
    assert watching.findings.left == ["11 s after the end of daemon 4: process 9: x"]


def test_a_process_is_stopped_slowed_and_filled_and_set_free_again(child: subprocess.Popen[bytes]) -> None:
    path = Path(child.args[-1])  # type: ignore[index,arg-type]

    def size() -> int:
        return path.stat().st_size if path.exists() else 0

    def grows() -> bool:
        before = size()
        return chaos.wait_for(lambda: size() > before, deadline_s=60.0)

    assert grows()
    sizes: list[int] = []
    stop_for(child.pid, 0.2, idle=lambda seconds: sizes.extend([size(), (chaos.time.sleep(seconds), size())[1]]))  # type: ignore[func-returns-value]
    assert sizes[1] - sizes[0] <= 1
    assert grows()
    slow_for(child.pid, 0.3, idle=chaos.time.sleep)
    assert grows()
    fill_for(child.pid, 0.2, idle=lambda seconds: chaos.wait_for(lambda: child.poll() is not None, deadline_s=60.0))
    assert child.poll() not in (None, 0, -signal.SIGXFSZ)


def test_damage_to_a_copy_of_a_run_is_found_out_and_the_run_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(tmp_path, env_steps=500).folder.path
    for kind in ("snapshot", "checkpoint", "journal"):
        noticed, sentence = damage_copy(run, kind, place=0.4, folder=tmp_path)
        assert noticed and "byte" in sentence, sentence
    assert not (tmp_path / "damaged-copy").exists()
    sound = faults.verify_run(run)
    assert sound.problems == ()
    monkeypatch.setattr(faults, "verify_run", lambda path: sound)
    assert damage_copy(run, "snapshot", place=0.4, folder=tmp_path)[0] is False


def test_a_sound_run_holds_and_each_finding_ends_that() -> None:
    findings = Findings(finished=[result(1)], recovery_s={"kill actor": [1.0, 3.0]})
    findings.strikes["kill actor"] = 2
    verdict = verdict_of(findings, SOUND, [], run="r", seed=1, seconds=2.0)
    assert verdict.holds and "r: holds (seed 1" in verdict.text()
    for name in ("lost", "doubled", "off", "problems", "left", "left_early", "unnoticed"):
        bad = replace(verdict, **{name: ("x",)})
        assert not bad.holds and "BAD  1 " in bad.text() and '"ok": false' in bad.to_json()
    assert not replace(verdict, failure="x").holds


def test_the_95_percent_recovery_is_one_that_was_measured() -> None:
    row = recovery_of("kill actor", [float(number) for number in range(1, 101)])
    assert (row.median_s, row.p95_s, row.longest_s) == (50.5, 95.0, 100.0)
    assert recovery_of("kill actor", [2.0]).p95_s == 2.0
