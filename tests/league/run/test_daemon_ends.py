"""The end of a run: on request, at a limit, and at the end of its budget."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.core.state.events import (
    CheckpointSaved,
    LeaseFinished,
    LeaseGranted,
    RunStopped,
)
from league.hosts.protocol import (
    HostStarted,
    InstallPlayer,
    PlayLease,
    TakeCheckpoint,
    TakeSnapshot,
    Task,
)
from league.run.budget import Limits
from league.run.daemon import BUDGET, LIMIT, SIGNAL, STOP_LEASES_S
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import GATE, ONE_PLAYER, events_of, tiny


def test_a_host_that_never_comes_back_does_not_stop_the_stop(tmp_path: Path) -> None:
    """The drain gives up after seconds, for somebody waits; what was out is lost and said to be lost."""
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    daemon = bench.daemon(Limits())

    def hang(task: Task) -> bool:
        if isinstance(task, PlayLease) and len(bench.runtime.of(PlayLease)) == 3:
            daemon.stop_requested = True
            return True
        return False

    bench.runtime.drop = hang
    started = bench.runtime.now
    assert daemon.run() == SIGNAL
    assert STOP_LEASES_S <= bench.runtime.now - started < STOP_LEASES_S + 10
    assert not bench.league.state.leases
    assert isinstance(events_of(bench.folder.path)[-1], RunStopped)
    assert "The stop no longer waits for lease 3 of actor-0." in bench.said


def test_a_request_to_stop_grants_nothing_more_and_saves_every_player(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    daemon = bench.daemon(Limits())

    def stop_at_five(task: Task) -> None:
        daemon.stop_requested = len(bench.runtime.of(PlayLease)) >= 4

    bench.runtime.watch = stop_at_five
    assert daemon.run() == SIGNAL
    events = events_of(bench.folder.path)
    assert len(bench.runtime.of(PlayLease)) == 5
    assert sum(isinstance(event, LeaseFinished) for event in events) == 5
    assert not bench.league.state.leases
    assert not bench.league.state.directives
    saved = {event.player for event in events if isinstance(event, CheckpointSaved)}
    assert saved == set(bench.league.state.players)
    assert events[-1] == RunStopped(1, SIGNAL)


def test_a_stop_says_whose_training_it_could_not_save(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER, runtime={"checkpoint_updates": 6})
    bench.runtime.drop = lambda task: isinstance(task, TakeCheckpoint) and len(bench.runtime.of(TakeCheckpoint)) > 1
    bench.run(env_steps=1_000)
    player = bench.league.state.players["main-0"]
    assert player.checkpoint is not None
    assert player.checkpoint.trained_steps == 400 < player.trained_steps
    assert bench.said == ["No restart state of main-0 came in time: what it learnt after 400 trained steps is lost."]


def test_a_stop_says_nothing_where_the_last_snapshot_holds_what_was_learnt(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER, runtime={"checkpoint_updates": 10_000})
    bench.runtime.drop = lambda task: isinstance(task, TakeCheckpoint)
    bench.run(env_steps=1_000)
    assert bench.said == []


def test_a_stop_that_saved_everything_says_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run(env_steps=1_000)
    assert bench.said == []


def test_a_stop_names_ten_of_the_things_it_no_longer_waits_for(tmp_path: Path) -> None:
    players = [{"role": "main_agent", "count": 12, "gate": GATE}]
    bench = Bench(tmp_path / "run", league={"players": players})
    bench.runtime.drop = lambda task: isinstance(task, TakeSnapshot)
    bench.run(env_steps=0)
    names = ", ".join(f"the snapshot of main-{number}" for number in range(10))
    assert bench.said[0] == f"The stop no longer waits for {names} and 2 more."


def test_a_stop_waits_for_learners_that_are_taking_up_their_state(tmp_path: Path) -> None:
    """As after a transplant: the order is done, the learner that is to go on from it is not there yet."""
    bench = Bench(tmp_path / "run")
    daemon = bench.daemon(Limits(env_steps=10**9))

    def stop(number: int) -> None:
        if number == 20:
            bench.runtime.tasks.clear()
            bench.runtime.report(HostStarted("learner-0", "learner_host", tuple(bench.league.state.players)))
            daemon.stop_requested = True

    def slowly(task: Task) -> None:
        bench.runtime.delay = 12 if isinstance(task, InstallPlayer) else 0

    bench.runtime.on_poll = stop
    bench.runtime.watch = slowly
    assert daemon.run() == SIGNAL
    assert len(bench.runtime.of(InstallPlayer)) == 3
    saved = [task.player for task in bench.runtime.of(TakeCheckpoint) if isinstance(task, TakeCheckpoint)]
    assert set(bench.league.state.players) <= set(saved)


def test_the_end_of_the_budget_freezes_everybody_and_settles_the_ratings(tmp_path: Path) -> None:
    league = {**tiny()["league"], "ratings": {"step_fraction": 0.0, "final_leases": 5, "final_share": 1.0}}
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000}, league=league)
    assert bench.daemon(Limits()).run() == BUDGET
    finals = [info.player for info in bench.league.state.snapshots.values() if info.reason == "final"]
    assert sorted(finals) == sorted(bench.league.state.players)
    rating = [event for event in events_of(bench.folder.path) if isinstance(event, LeaseGranted)]
    assert [event.lease.home for event in rating][-5:] == [None] * 5
    assert None not in [event.lease.home for event in rating][:-5]


@pytest.mark.parametrize("exact", [False, True])
def test_a_limit_of_the_command_freezes_everybody_unless_the_run_is_exact(exact: bool, tmp_path: Path) -> None:
    """A snapshot at the stop of a deterministic run would make it differ from one that continues."""
    bench = Bench(tmp_path / "run", exact=exact)
    assert bench.run(env_steps=500) == LIMIT
    assert ("final" in {info.reason for info in bench.league.state.snapshots.values()}) is not exact


def test_the_end_is_reached_though_nobody_can_be_rated(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"seconds": 5.0})
    bench.runtime.drop = lambda task: isinstance(task, TakeSnapshot)
    assert bench.daemon(Limits()).run() == BUDGET
    assert not bench.league.state.running


@pytest.mark.parametrize("steps", [0, 1])
def test_a_limit_that_is_reached_at_once_still_stops_in_order(steps: int, tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    assert bench.daemon(Limits(env_steps=0) if steps == 0 else Limits(seconds=0.0)).run() == LIMIT
    assert isinstance(events_of(bench.folder.path)[-1], RunStopped)
    assert not bench.league.state.running
