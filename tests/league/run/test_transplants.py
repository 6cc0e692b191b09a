"""A transplant lasts: no restart state of the learner before it takes its place, and its file is not removed."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.durability.simulated import fake_hosts
from league.agents.restart_state import counters_in
from league.core.state.events import PlayerTransplanted
from league.core.state.records import AssignmentOutcome, Lease
from league.hosts.protocol import InstallPlayer, LearnerProgress, PlayLease, TakeCheckpoint, Task
from tests.league.run.fake_runtime import Bench
from tests.league.tiny_runs import GATE, events_of

LEAGUE = {
    "players": [{"role": "main_agent", "count": 6, "gate": {**GATE, "min_steps": 10**9, "timeout_steps": 10**9}}],
    "preset": "pbt",
    "pbt": {
        "selection": {"kind": "truncation"},
        "hyperparameters": [{"name": "learning_rate", "low": 0.1, "high": 10.0, "initial": 1.0}],
        "period_steps": 400,
        "burn_in_steps": 150,
        "min_games": 1.0,
    },
    "ratings": {"step_fraction": 0.0, "final_leases": 0},
}


def first_name_wins(lease: Lease, *, games: int) -> tuple[AssignmentOutcome, ...]:
    """Two games of every assignment, so that there is always a player to copy."""
    found = []
    for assignment in lease.assignments:
        home, away = assignment.policies
        wins = ((0, 1), (1, 0)) if home == away else ((0, 2), (0, 0)) if home < away else ((0, 0), (2, 0))
        found.append(AssignmentOutcome(assignment.policies, 2, 0, 14, wins, ((0, 0), (0, 0)), (0.0, 0.0)))
    return tuple(found)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A daemon whose players copy each other."""
    monkeypatch.setattr(fake_hosts, "outcomes_of", first_name_wins)
    return Bench(tmp_path / "run", league=LEAGUE)


def require_each_copy_is_taken_up(bench: Bench) -> None:
    """Train, and compare what learners were installed with to the transplants of the journal."""
    installed: dict[str, list[tuple[int, str]]] = {}

    def take_up(task: Task) -> None:
        """As a learner does: it continues from the version that it was installed with."""
        if isinstance(task, InstallPlayer) and task.saved is not None:
            version = counters_in(task.saved).version
            pointer = bench.league.state.players[task.player].checkpoint
            assert pointer is not None
            installed.setdefault(task.player, []).append((version, pointer.digest))

    bench.runtime.watch = take_up
    bench.run(env_steps=30_000)
    transplanted: dict[str, list[tuple[int, str]]] = {}
    for event in events_of(bench.folder.path):
        if isinstance(event, PlayerTransplanted):
            transplanted.setdefault(event.player, []).append((event.version, event.digest))
    assert sum(map(len, transplanted.values())) > 5
    assert installed == transplanted
    assert not bench.warned


def test_no_restart_state_is_asked_for_between_a_transplant_and_its_installation(bench: Bench) -> None:
    require_each_copy_is_taken_up(bench)


def test_answers_that_come_between_a_transplant_and_its_installation_do_not_undo_it(bench: Bench) -> None:
    def answer_always(number: int) -> None:
        for player in bench.league.state.players:
            bench.runtime.report(
                LearnerProgress(bench.runtime.progress(player), None, 0),
                *bench.runtime.answer(TakeCheckpoint(player)),
            )

    bench.runtime.on_poll = answer_always
    require_each_copy_is_taken_up(bench)


def test_a_restart_state_that_comes_with_the_report_that_orders_a_transplant_does_not_remove_the_copy(
    bench: Bench,
) -> None:
    def answer_with_state(task: Task) -> bool:
        if isinstance(task, PlayLease):
            assert task.lease.home is not None
            bench.runtime.report(*bench.runtime.answer(task), *bench.runtime.answer(TakeCheckpoint(task.lease.home)))
        return isinstance(task, PlayLease)

    bench.runtime.drop = answer_with_state
    require_each_copy_is_taken_up(bench)
