"""A learner host that is drained while a run goes: its players are saved and move, no lease is lost or granted then."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path

import pytest

from league.core.state.events import LeaseExpired
from league.hosts.protocol import HostLost, InstallPlayer, PlayLease, TakeCheckpoint
from league.run.budget import Limits
from league.run.operations.operator import Done
from league.run.operations.plans import OperationRefused
from league.see.reports.verify import verify_run
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import events_of, state_of

TWO = {"kind": "ray", "actor_hosts": 1, "learner_hosts": 2, "checkpoint_updates": 10**6, "checkpoint_seconds": 1e6}
DRAIN_AT = 20


def bench_of_two(path: Path, **learner: object) -> Bench:
    """A run with two learner hosts, the second of which holds every player but the first."""
    bench = Bench(path, runtime=TWO, **({"learner": learner} if learner else {}))
    bench.runtime.held_by = {"learner-1": tuple(bench.league.state.players)[1:]}
    return bench


def ask(bench: Bench, *asked: tuple[int, str, dict[str, object]]) -> list[Future[Done]]:
    """Have operations asked for at these polls; their answers come as the run goes."""
    answers: list[Future[Done]] = []

    def at(number: int) -> None:
        answers.extend(bench.operator.submit(name, given, by="me") for when, name, given in asked if when == number)

    bench.runtime.on_poll = at
    return answers


def test_a_drained_learner_host_ends_with_its_players_saved_and_moved(tmp_path: Path) -> None:
    bench = bench_of_two(tmp_path / "run")
    bench.runtime.delay = 2
    moved = bench.runtime.held_by["learner-1"]
    answers = ask(bench, (DRAIN_AT, "drain", {"host": "learner-1"}))
    remove = bench.runtime.remove_learner_host

    def remove_between_leases(name: str) -> tuple[str, ...]:
        assert not bench.league.state.leases
        return remove(name)

    bench.runtime.remove_learner_host = remove_between_leases  # type: ignore[method-assign]
    daemon = bench.daemon(Limits(env_steps=5_000))
    daemon.run()
    done = answers[0].result(timeout=0)
    assert (done.words, done.undoable) == ("drains learner-1; the other learner hosts take its players", False)
    assert bench.runtime.removed == ["learner-1"]
    tasks = bench.runtime.tasks
    second = [place for place, task in enumerate(tasks) if isinstance(task, InstallPlayer)][-len(moved) :]
    assert tuple(task.player for task in (tasks[place] for place in second) if isinstance(task, InstallPlayer)) == moved
    before = tasks[: second[0]]
    saved = [task for task in before if isinstance(task, TakeCheckpoint)]
    assert before[-len(saved) :] == saved and {task.player for task in saved} == set(bench.league.state.players)
    assert any(isinstance(task, PlayLease) for task in tasks[second[-1] :]), "the run goes on"
    assert not any(isinstance(event, LeaseExpired) for event in events_of(bench.folder.path))
    assert bench.operator.config.runtime.learner_hosts == 1
    assert state_of(bench.folder.path).hosts == {"learner-1": "drained"}
    assert f"learner-1 has ended; the other learner hosts hold {', '.join(moved)} now." in bench.said
    assert verify_run(bench.folder.path).problems == ()


def test_players_of_a_drained_host_that_is_lost_meanwhile_move_all_the_same(tmp_path: Path) -> None:
    """Its answers never come: the restart states from before are what the other host begins with."""
    bench = bench_of_two(tmp_path / "run")
    moved = bench.runtime.held_by["learner-1"]
    ask(bench, (DRAIN_AT, "drain", {"host": "learner-1"}))
    bench.runtime.drop = lambda task: isinstance(task, TakeCheckpoint) and "learner-1" in bench.runtime.held_by
    drain = bench.runtime.on_poll

    def lose(number: int) -> None:
        drain(number)
        if number == DRAIN_AT + 10:
            assert bench.runtime.removed == [], "it waits for its players"
            bench.runtime.report(HostLost("learner-1", "learner_host", "it was killed", moved))
            others = set(bench.league.state.players) - set(moved)
            bench.runtime.report(*(bench.runtime.answer(TakeCheckpoint(player))[0] for player in others))

    bench.runtime.on_poll = lose
    bench.run(env_steps=4_000)
    assert bench.runtime.removed == ["learner-1"]
    assert bench.league.state.totals.env_steps >= 4_000
    assert verify_run(bench.folder.path).problems == ()


def test_a_restart_has_one_learner_host_fewer_and_forgets_the_mark(tmp_path: Path) -> None:
    bench = bench_of_two(tmp_path / "run")
    ask(bench, (DRAIN_AT, "drain", {"host": "learner-1"}))
    bench.run(env_steps=2_000)
    again = Bench(tmp_path / "run", runtime={**TWO, "learner_hosts": 1})
    again.run(env_steps=300)
    assert state_of(again.folder.path).hosts == {}


def test_what_cannot_be_done_to_learner_hosts_is_refused_with_the_rule(tmp_path: Path) -> None:
    bench = bench_of_two(tmp_path / "run")
    undone: list[Future[Done]] = []
    answers = ask(
        bench,
        (DRAIN_AT, "park", {"host": "learner-1"}),
        (DRAIN_AT, "set", {"key": "runtime.learner_hosts", "value": 1}),
        (DRAIN_AT + 1, "drain", {"host": "learner-1"}),
        (DRAIN_AT + 2, "drain", {"host": "learner-1"}),
        (DRAIN_AT + 2, "drain", {"host": "learner-0"}),
    )
    drain = bench.runtime.on_poll

    def undo(number: int) -> None:
        drain(number)
        if number == DRAIN_AT + 20:
            event = answers[2].result(timeout=0).first_event
            undone.append(bench.operator.submit("undo", {"event": event}, by="me"))

    bench.runtime.on_poll = undo
    bench.run(env_steps=3_000)
    rules = {
        0: "learner-1 holds players and cannot be parked; pause those, or drain the host",
        1: "learner_hosts cannot change while the run goes: hosts are built with it",
        3: "learner-1 is drained already",
        4: "learner-0 is the only learner host and holds every player",
    }
    for place, rule in rules.items():
        with pytest.raises(OperationRefused, match=re.escape(rule)):
            answers[place].result(timeout=0)
    with pytest.raises(OperationRefused, match="learner_hosts cannot change while the run goes"):
        undone[0].result(timeout=0)


def test_learners_with_workers_of_their_own_do_not_move(tmp_path: Path) -> None:
    bench = bench_of_two(tmp_path / "run", pipeline={"replicas": 2})
    answers = ask(bench, (DRAIN_AT, "drain", {"host": "learner-1"}))
    bench.run(env_steps=2_000)
    with pytest.raises(OperationRefused, match="which cannot move while the run goes; stop it, then"):
        answers[0].result(timeout=0)
