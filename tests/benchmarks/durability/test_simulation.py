"""The simulation holds over its first seeds, finds planted faults, and replays what it finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml

from benchmarks.durability.simulated.schedule import Schedule, replay_text, shrunk
from benchmarks.durability.simulation import problem_of, run_many
from league.core.state.commands import RequestLease
from league.core.state.records import Lease
from league.run.daemon import Daemon
from league.run.effects import HostTable
from league.store.journal import Journal

SEEDS = 25
"""A part of the seeds; `python -m benchmarks.durability.simulation` runs as many as one likes."""


def test_the_first_schedules_hold() -> None:
    totals, failures = run_many(0, SEEDS, say=print)
    assert not failures
    assert totals.schedules == SEEDS and totals.deaths > SEEDS / 2


def test_a_schedule_repeats_exactly() -> None:
    outcomes = {problem_of(Schedule.of_seed(7)) for _ in range(2)}
    assert outcomes == {""}


def test_a_host_that_gets_two_leases_is_found_and_the_schedule_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(table: HostTable, host: str, leases: dict[int, Lease]) -> None:
        table.idle[host] = None

    monkeypatch.setattr(HostTable, "free", free)
    found = next(plan for plan in map(Schedule.of_seed, range(50)) if problem_of(plan))
    smaller = shrunk(found, lambda plan: bool(problem_of(plan)))
    again = yaml.safe_load(replay_text(smaller))
    replayed = Schedule(**{key: tuple(value) if isinstance(value, list) else value for key, value in again.items()})
    assert replayed == smaller and not smaller.jumps
    assert "while it works on lease" in problem_of(replayed)
    monkeypatch.undo()
    assert not problem_of(replayed)


def test_a_commit_that_stores_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Journal.commit
    turn = iter(range(10**9))
    monkeypatch.setattr(Journal, "commit", lambda journal: commit(journal) if next(turn) % 2 else journal._durable_seq)
    assert any(words in problem_of(Schedule.of_seed(0)) for words in ("the league says", "and not durable"))


def test_a_lease_that_is_handed_out_before_it_is_durable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    grant = Daemon._grant

    def hasty(daemon: Daemon, ask: Callable[[str], RequestLease | None]) -> None:
        grant(daemon, ask)
        unacted, daemon._unacted = daemon._unacted, []
        for event in unacted:
            daemon._effects.carry_out(event)

    monkeypatch.setattr(Daemon, "_grant", hasty)
    assert "is submitted and not durable" in problem_of(Schedule.of_seed(0))
