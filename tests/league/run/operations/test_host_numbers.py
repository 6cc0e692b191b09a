"""Actor hosts that are parked, drained and added while a run goes: who gets leases, what ends, what is journaled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from pathlib import Path

import pytest

from league.core.state.events import LeaseExpired, LeaseGranted, SettingsChanged
from league.run.operations.operator import Done
from league.run.operations.plans import OperationRefused
from league.see.reports.verify import verify_run
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of, state_of

RAY = {"kind": "ray", "actor_hosts": 1}


def run_with(bench: Bench, asked: Mapping[int, tuple[str, dict[str, object]]], *, env_steps: int) -> list[Future[Done]]:
    """Run, asking for an operation at some polls; their answers in order."""
    answers: list[Future[Done]] = []

    def ask(number: int) -> None:
        if number in asked:
            name, arguments = asked[number]
            answers.append(bench.operator.submit(name, arguments, by="me"))

    bench.runtime.on_poll = ask
    bench.run(env_steps=env_steps)
    return answers


def hosts_between(bench: Bench, first: Future[Done], last: Future[Done] | None = None) -> set[str]:
    """Hosts that were granted leases between two operations."""
    end = None if last is None else last.result(timeout=0).first_event
    events = events_of(bench.folder.path)[first.result(timeout=0).last_event : end]
    return {event.lease.host for event in events if isinstance(event, LeaseGranted)}


def test_hosts_are_added_parked_and_drained_and_no_lease_is_lost(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", runtime=RAY)
    bench.runtime.delay = 2
    more, parked, back, drained = run_with(
        bench,
        {
            8: ("actor_hosts", {"number": 3}),
            20: ("park", {"host": "actor-0"}),
            30: ("unpark", {"host": "actor-0"}),
            40: ("drain", {"host": "actor-2"}),
        },
        env_steps=5_000,
    )
    assert bench.runtime.added == 2
    assert hosts_between(bench, more, parked) == {"actor-0", "actor-1", "actor-2"}
    assert hosts_between(bench, parked, back) == {"actor-1", "actor-2"}
    assert hosts_between(bench, back, drained) == {"actor-0", "actor-1", "actor-2"}
    assert hosts_between(bench, drained) == {"actor-0", "actor-1"}
    assert bench.runtime.removed == ["actor-2"]
    assert not any(isinstance(event, LeaseExpired) for event in events_of(bench.folder.path))
    assert bench.operator.config.runtime.actor_hosts == 2
    assert state_of(bench.folder.path).hosts == {"actor-2": "drained"}
    assert verify_run(bench.folder.path).problems == ()


def test_a_smaller_number_drains_the_last_hosts_and_a_restart_forgets_what_was_drained(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", adapt=False, runtime={"kind": "ray", "actor_hosts": 3})
    bench.runtime.report(*bench.runtime.starts("actor-1", "actor-2"))
    _, parked = run_with(bench, {8: ("actor_hosts", {"number": 2}), 12: ("park", {"host": "actor-1"})}, env_steps=3_000)
    assert hosts_between(bench, parked) == {"actor-0"}
    assert bench.runtime.removed == ["actor-2"]
    by = [event.by for event in events_of(bench.folder.path) if isinstance(event, SettingsChanged)]
    assert by == ["me", "league", "me"]
    again = Bench(tmp_path / "run", runtime={"kind": "ray", "actor_hosts": 2})
    again.run(env_steps=300)
    assert state_of(bench.folder.path).hosts == {"actor-1": "parked"}


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("park", {"host": "actor-0"}, "no actor host would work any more"),
        ("drain", {"host": "actor-0"}, "no actor host would work any more"),
        ("park", {"host": "actor-9"}, "no host 'actor-9'; there are actor-0, learner-0"),
        ("park", {"host": "learner-0"}, "learner-0 holds players and cannot be parked; pause those"),
        ("drain", {"host": "learner-0"}, "learner-0 is the only learner host"),
        ("drain", {"host": "learner-7"}, "no host 'learner-7'; there are actor-0, learner-0"),
        ("unpark", {"host": "actor-0"}, "is not parked"),
        ("actor_hosts", {"number": 0}, "needs one actor host at least"),
        ("actor_hosts", {"number": 1}, "is 1 already"),
    ],
)
def test_a_refusal_names_the_rule(tmp_path: Path, name: str, arguments: dict[str, object], words: str) -> None:
    bench = Bench(tmp_path / "run", runtime=RAY)
    (answer,) = run_with(bench, {6: (name, arguments)}, env_steps=500)
    with pytest.raises(OperationRefused, match=words):
        answer.result(timeout=0)


def test_one_process_cannot_have_two_hosts(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    (answer,) = run_with(bench, {6: ("actor_hosts", {"number": 2})}, env_steps=500)
    with pytest.raises(OperationRefused, match="inprocess is one process"):
        answer.result(timeout=0)


def test_a_change_of_hosts_is_undone(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", runtime=RAY)
    answers: dict[int, Future[Done]] = {}

    def ask(name: str, **arguments: object) -> Callable[[int], None]:
        return lambda number: answers.update({number: bench.operator.submit(name, arguments, by="me")})

    def undo(number: int) -> None:
        ask("undo", event=answers[8].result(timeout=0).first_event)(number)

    plan = {8: ask("actor_hosts", number=2), 14: undo}
    bench.runtime.on_poll = lambda number: plan.get(number, lambda number: None)(number)
    bench.run(env_steps=2_000)
    assert answers[14].result(timeout=0).words.startswith("takes back event")
    assert bench.runtime.removed == ["actor-1"]
