"""The daemon over a runtime that does what it is told: nothing is acted on before it is durable, nothing is lost."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.durability.simulated.fake_hosts import outcomes_of
from league.core.state.commands import FinishLease
from league.core.state.events import (
    CheckpointSaved,
    DirectiveIssued,
    LeaseExpired,
    LeaseFinished,
    LeaseGranted,
    SnapshotAdded,
)
from league.core.state.records import Lease, Progress
from league.envs.failures import GameFailure
from league.hosts.protocol import (
    HostLost,
    HostStarted,
    HostStuck,
    InstallPlayer,
    LearnerProgress,
    LeaseDone,
    LeaseLost,
    PlayerInstalled,
    PlayLease,
    ResetPlayer,
    TakeCheckpoint,
    TakeSnapshot,
    Task,
)
from league.run.budget import Limits
from league.run.daemon import BUDGET, LIMIT
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import ONE_PLAYER, events_of


def leases_of(bench: Bench) -> list[Lease]:
    """Every lease that was handed to a host."""
    return [task.lease for task in bench.runtime.of(PlayLease) if isinstance(task, PlayLease)]


def steps_of_all(bench: Bench, lease_ids: Iterable[int]) -> int:
    """Env steps that the leases with these ids bring together."""
    steps = {lease.lease_id: bench.runtime.steps_of(lease) for lease in leases_of(bench)}
    return sum(steps[lease_id] for lease_id in lease_ids)


def test_nothing_is_acted_on_before_it_is_in_the_journal_on_disk(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")

    def is_durable(task: Task) -> None:
        events = events_of(bench.folder.path)
        if isinstance(task, PlayLease):
            assert any(isinstance(event, LeaseGranted) and event.lease == task.lease for event in events)
        elif isinstance(task, TakeSnapshot | ResetPlayer):
            directives = [event.directive.directive_id for event in events if isinstance(event, DirectiveIssued)]
            assert task.directive_id in directives

    bench.runtime.watch = is_durable
    assert bench.run(env_steps=2_500) == LIMIT
    assert len(bench.runtime.of(PlayLease)) >= 25
    assert bench.runtime.of(ResetPlayer)


def test_every_answered_lease_counts_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run(env_steps=1_000)
    leases = leases_of(bench)
    finished = [event for event in events_of(bench.folder.path) if isinstance(event, LeaseFinished)]
    assert Counter(event.lease_id for event in finished) == Counter(lease.lease_id for lease in leases)
    assert bench.league.state.totals.games == sum(2 * len(lease.assignments) for lease in leases)
    totals = bench.league.state.totals
    assert totals.env_steps + totals.settling_steps == steps_of_all(bench, [event.lease_id for event in finished])


def test_the_clock_of_the_budget_starts_with_the_first_host_that_can_play(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.runtime._reports = [report for report in bench.runtime._reports if report.kind == "learner_host"]  # type: ignore[union-attr]
    bench.runtime.on_poll = lambda number: number == 30 and bench.runtime.report(HostStarted("actor-0", "actor_host"))
    daemon = bench.daemon(Limits(seconds=10.0))
    assert daemon.run() == LIMIT
    before = [seen.spent.seconds for seen in bench.seen[:29]]
    assert before == [0.0] * 29
    assert bench.league.state.totals.env_steps > 0


def test_learners_receive_the_budget_fraction_as_it_is_spent(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", budget={"env_steps": 1_000})
    spent: list[float] = []
    bench.runtime.on_poll = lambda number: spent.append(bench.league.state.totals.env_steps / 1_000)
    assert bench.daemon(Limits()).run() == BUDGET
    assert bench.runtime.told == pytest.approx([min(fraction, 1.0) for fraction in spent])
    assert {0.0, 0.5, 1.0} <= set(bench.runtime.told)


def test_an_answer_given_twice_or_too_late_is_refused_and_counted(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    late: list[LeaseDone] = []

    def repeat(task: Task) -> None:
        if isinstance(task, PlayLease):
            lease = task.lease
            late.append(
                LeaseDone(
                    "actor-0",
                    FinishLease(lease.lease_id, lease.token, bench.runtime.steps_of(lease), outcomes_of(lease)),
                )
            )
            bench.runtime.report(*late[-2:])

    bench.runtime.watch = repeat
    bench.run(env_steps=600)
    finished = [event.lease_id for event in events_of(bench.folder.path) if isinstance(event, LeaseFinished)]
    assert len(finished) == len(set(finished))
    assert bench.seen[-1].troubles.refused > 0
    totals = bench.league.state.totals
    assert totals.env_steps + totals.settling_steps == steps_of_all(bench, finished)


def test_a_host_that_lies_loses_its_lease_and_the_others_work_continues(tmp_path: Path) -> None:
    """Every third answer claims 2**70 games, and a learner reports a player that is not there."""
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    lies: list[int] = []

    def lie(task: Task) -> None:
        if isinstance(task, PlayLease) and task.lease.lease_id % 3 == 0:
            lease = task.lease
            lies.append(lease.lease_id)
            games = tuple(replace(outcome, games=2**70, wins=((0, 2**70), (0, 0))) for outcome in outcomes_of(lease))
            bench.runtime.report(
                LeaseDone("actor-0", FinishLease(lease.lease_id, lease.token, bench.runtime.steps_of(lease), games)),
                LearnerProgress(Progress("nobody", 1, 10**300), None, 0),
            )

    bench.runtime.watch = lie
    bench.run(env_steps=900)
    events = events_of(bench.folder.path)
    lost = {event.lease_id: event.reason for event in events if isinstance(event, LeaseExpired)}
    finished = {event.lease_id for event in events if isinstance(event, LeaseFinished)}
    assert len(lies) > 2
    assert {number: "its answer was refused" for number in lies if number not in finished}.items() <= lost.items()
    assert not set(lies) & finished
    totals = bench.league.state.totals
    assert totals.env_steps + totals.settling_steps == steps_of_all(bench, finished) >= 900
    assert not bench.league.state.leases


def test_no_lease_is_granted_before_every_player_is_installed(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.run(env_steps=300)
    kinds = [type(task) for task in bench.runtime.tasks]
    assert set(kinds[: kinds.index(PlayLease)]) == {InstallPlayer, TakeSnapshot}
    assert kinds[: kinds.index(PlayLease)].count(InstallPlayer) == 3


def test_orders_that_were_open_when_a_daemon_died_are_carried_out_once_by_the_next(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run")
    bench.runtime.drop = lambda task: isinstance(task, TakeSnapshot)
    daemon = bench.daemon(Limits())
    bench.runtime.watch = lambda task: setattr(daemon, "stop_requested", True)
    daemon.run()
    assert len(bench.league.state.directives) == 3
    bench.league.close()

    again = Bench(tmp_path / "run")
    again.run(env_steps=100)
    first = [task.directive_id for task in again.runtime.of(TakeSnapshot) if isinstance(task, TakeSnapshot)][:3]
    assert sorted(first) == [1, 2, 3]
    added = Counter(event.directive_id for event in events_of(again.folder.path) if isinstance(event, SnapshotAdded))
    assert set(added.values()) == {1}
    assert not again.league.state.directives


def test_an_order_issued_while_its_learner_comes_back_is_submitted_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)

    def answer_with_installation(task: Task) -> bool:
        if isinstance(task, PlayLease):
            bench.runtime.report(*bench.runtime.answer(task), PlayerInstalled("main-0"))
        return isinstance(task, PlayLease)

    bench.runtime.drop = answer_with_installation
    bench.run(env_steps=2_000)
    asked = Counter(task.directive_id for task in bench.runtime.of(TakeSnapshot) if isinstance(task, TakeSnapshot))
    assert len(asked) > 3
    assert set(asked.values()) == {1}


def test_no_lease_is_granted_while_a_player_has_no_learner(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    leases: list[int] = []

    def lose_for_a_while(number: int) -> None:
        if number == 10:
            bench.runtime.lose("learner-0", "learner_host")
            bench.runtime.drop = lambda task: isinstance(task, InstallPlayer)
        if number == 20:
            bench.runtime.report(PlayerInstalled("main-0"))
        if 12 <= number <= 20:
            leases.append(len(bench.runtime.of(PlayLease)))

    bench.runtime.on_poll = lose_for_a_while
    bench.run(env_steps=2_000)
    assert len(set(leases)) == 1
    assert len(bench.runtime.of(PlayLease)) > leases[0]


def test_players_of_a_lost_learner_host_are_gone_at_once_and_no_others(tmp_path: Path) -> None:
    """A report says whose host it was; its name says nothing."""
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    leases: list[int] = []

    def lose_for_a_while(number: int) -> None:
        if number == 5:
            bench.runtime.report(HostLost("learner-of-nobody", "learner_host", "it was killed"))
        if number == 10:
            leases.append(len(bench.runtime.of(PlayLease)))
            bench.runtime.report(HostLost("any-name", "learner_host", "it was killed", ("main-0",)))
        if 12 <= number <= 20:
            leases.append(len(bench.runtime.of(PlayLease)))
        if number == 20:
            bench.runtime.report(HostStarted("any-name", "learner_host", ("main-0",)))

    bench.runtime.on_poll = lose_for_a_while
    bench.run(env_steps=2_000)
    assert leases[0] > 2, "a host of nobody stops nobody"
    assert len(set(leases[1:])) == 1
    assert len(bench.runtime.of(PlayLease)) > leases[-1]


def test_an_idle_host_that_was_lost_gets_no_lease_before_it_is_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    before: list[int] = []

    def lose_at_two(number: int) -> None:
        if number == 2:
            bench.runtime.report(HostLost("actor-0", "actor_host", "it was killed"))
        if number <= 12:
            before.append(len(bench.runtime.of(PlayLease)))
        if number == 12:
            bench.runtime.report(HostStarted("actor-0", "actor_host"))

    bench.runtime.on_poll = lose_at_two
    assert bench.run(env_steps=300) == LIMIT
    assert set(before) == {0}


def test_a_lost_actor_host_loses_its_leases_and_nothing_else(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    lost: list[int] = []

    def lose_third(task: Task) -> bool:
        if isinstance(task, PlayLease) and len(bench.runtime.of(PlayLease)) == 3:
            lost.append(task.lease.lease_id)
            bench.runtime.lose("actor-0", "actor_host")
            return True
        return False

    bench.runtime.drop = lose_third
    assert bench.run(env_steps=600) == LIMIT
    events = events_of(bench.folder.path)
    expired = [event for event in events if isinstance(event, LeaseExpired)]
    assert [(event.lease_id, event.reason) for event in expired] == [(lost[0], "it was killed")]
    assert lost[0] not in [event.lease_id for event in events if isinstance(event, LeaseFinished)]
    assert bench.seen[-1].troubles.hosts_lost == 1


def test_a_lost_lease_frees_its_host(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)

    def lose_second(task: Task) -> bool:
        if isinstance(task, PlayLease) and len(bench.runtime.of(PlayLease)) == 2:
            bench.runtime.report(LeaseLost("actor-0", task.lease.lease_id, "its learner died"))
            return True
        return False

    bench.runtime.drop = lose_second
    assert bench.run(env_steps=500) == LIMIT
    expired = [event for event in events_of(bench.folder.path) if isinstance(event, LeaseExpired)]
    assert [event.reason for event in expired] == ["its learner died"]


def test_a_lost_learner_host_gets_its_players_back_from_their_checkpoints_and_its_open_orders_again(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    before: list[int] = []

    def lose_with_order(task: Task) -> bool:
        if isinstance(task, TakeSnapshot) and bench.runtime.of(TakeCheckpoint) and not before:
            before.append(task.directive_id)
            bench.runtime.lose("learner-0", "learner_host")
            return True
        return False

    bench.runtime.drop = lose_with_order
    assert bench.run(env_steps=3_000) == LIMIT
    installs = [task for task in bench.runtime.of(InstallPlayer) if isinstance(task, InstallPlayer)]
    assert len(installs) == 2
    assert (installs[0].saved, installs[0].weights) == (None, None)
    assert installs[1].saved is not None
    asked = [task.directive_id for task in bench.runtime.of(TakeSnapshot) if isinstance(task, TakeSnapshot)]
    assert Counter(asked)[before[0]] == 2
    assert not bench.league.state.directives


def test_an_exact_run_grants_no_lease_while_an_order_is_open(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", exact=True)

    def nothing_open(task: Task) -> None:
        if isinstance(task, PlayLease):
            assert not bench.league.state.directives

    bench.runtime.watch = nothing_open
    bench.run(env_steps=2_500)
    assert len(bench.runtime.of(TakeSnapshot)) > 6


def test_learners_are_saved_after_so_many_updates(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "run", league={**ONE_PLAYER, "ratings": {"step_fraction": 0.0}}, runtime={"checkpoint_updates": 6}
    )
    bench.run(env_steps=2_000)
    versions = [event.version for event in events_of(bench.folder.path) if isinstance(event, CheckpointSaved)]
    assert 6 <= versions[0] <= 8
    assert all(6 <= later - earlier <= 8 for earlier, later in itertools.pairwise(versions[:-1]))
    files = list(bench.folder.checkpoints_path.glob("main-0/*.ckpt"))
    assert 1 <= len(files) <= 2
    assert bench.league.state.players["main-0"].checkpoint is not None
    assert bench.league.state.players["main-0"].checkpoint.digest in {file.stem for file in files}


def test_a_host_works_on_one_lease_at_a_time(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    bench.runtime.delay = 3
    out: list[int] = []

    def one_at_a_time(task: Task) -> None:
        if isinstance(task, PlayLease):
            open_leases = [lease for lease in bench.league.state.leases.values() if lease.host == task.lease.host]
            assert [lease.lease_id for lease in open_leases] == [task.lease.lease_id]
            out.append(task.lease.lease_id)
            if len(out) % 3 == 0:
                bench.runtime.report(HostLost("actor-9", "actor_host", "a stranger"))

    bench.runtime.watch = one_at_a_time
    bench.run(env_steps=1_000)
    assert len(out) >= 10


def test_games_that_are_given_up_are_said_once_and_shown_until_their_host_starts_again(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    failure = GameFailure("game", 7, 11, 2, 5, "step", "raised OSError: no board", strikes=3, quarantined=True)

    def fail(task: Task) -> None:
        if isinstance(task, PlayLease) and task.lease.lease_id == 2:
            lease = task.lease
            answer = FinishLease(lease.lease_id, lease.token, bench.runtime.steps_of(lease), outcomes_of(lease))
            bench.runtime.report(LeaseDone("actor-0", answer, (replace(failure, quarantined=False), failure)))
        if isinstance(task, PlayLease) and task.lease.lease_id == 5:
            bench.runtime.lose("actor-0", "actor_host")

    bench.runtime.watch = fail
    daemon = bench.daemon(Limits(env_steps=900))
    daemon.run()
    (line,) = [line for line in bench.said if "no board" in line]
    assert line == (
        "actor-0: game: step raised OSError: no board (game 7, episode 2, seed 11, step 5); after 3 failures it is not"
        " played any more. Its traceback is under logs/ in the run folder."
    )
    assert {seen.troubles.quarantined_games for seen in bench.seen} == {0, 1}
    assert bench.seen[-1].troubles.quarantined_games == 0


def test_a_stuck_call_is_shown_until_the_lease_comes_back(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "run", league=ONE_PLAYER)
    bench.runtime.delay = 4

    def hang(number: int) -> None:
        if number == 20:
            bench.runtime.report(HostStuck("actor-0", "game 3 of own has been in step for 31 s"))

    bench.runtime.on_poll = hang
    bench.run(env_steps=800)
    shown = [observation.stuck for observation in bench.seen]
    assert "game 3 of own has been in step for 31 s" in shown
    assert shown[-1] == ""
