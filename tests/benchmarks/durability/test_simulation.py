"""The simulation holds over its first seeds, finds planted faults, and replays what it finds."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

from benchmarks.durability.simulated.run import run_schedule
from benchmarks.durability.simulated.schedule import Schedule, replay_text, shrunk
from benchmarks.durability.simulation import problem_of, run_many
from league.core import leases
from league.core.league import APPLIERS, DECIDERS
from league.core.state.commands import RequestLease, StartRun
from league.core.state.events import Event, LeaseFinished
from league.core.state.records import Lease
from league.core.state.state import LeagueState
from league.run.daemon import Daemon
from league.run.fleet import Fleet
from league.store import journaled_league
from league.store.journal import Journal
from league.store.journal_reader import JournalReader

SEEDS, A_TEST = 150, 25
"""The first seeds, shared by several tests; `python -m benchmarks.durability.simulation` runs as many as one likes."""
REPEATED = 6
"""Seeds among which are deaths, several players, requests of operators and a failing disk."""
CHAINS = f"""
from tests.benchmarks.durability.test_simulation import chains
print(*chains(range({REPEATED})))
"""
"""A program that prints the chain of each journal."""


def chains(seeds: Iterable[int]) -> list[str]:
    """The chain of the journal of each schedule."""
    found = []
    for seed in seeds:
        with tempfile.TemporaryDirectory() as folder:
            found.append(run_schedule(Schedule.of_seed(seed), Path(folder)).chain)
    return found


@pytest.mark.parametrize("first", range(0, SEEDS, A_TEST))
def test_the_first_schedules_hold(first: int) -> None:
    totals, failures = run_many(first, A_TEST, say=print)
    assert not failures
    assert totals.schedules == A_TEST and totals.deaths > A_TEST / 2


def test_a_schedule_repeats_exactly_in_a_process_that_hashes_otherwise() -> None:
    """A failure of one machine is replayed on another: equal journals, event by event."""
    other = "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"
    program = subprocess.run(
        [sys.executable, "-c", CHAINS],
        env={**os.environ, "PYTHONHASHSEED": other, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    one, two = chains(range(REPEATED)), program.stdout.split()
    assert len(set(one)) == REPEATED
    assert one == two


def test_a_host_that_gets_two_leases_is_found_and_the_schedule_replays_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(fleet: Fleet, host: str, leases: dict[int, Lease]) -> None:
        fleet.idle[host] = None

    monkeypatch.setattr(Fleet, "free", free)
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


def test_an_answer_that_is_accepted_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[int, Lease] = {}
    open_lease, apply_finished = leases._open_lease, APPLIERS[LeaseFinished]

    def lenient(state: LeagueState, lease_id: int) -> Lease:
        if lease_id in known:
            return known[lease_id]
        known[lease_id] = open_lease(state, lease_id)
        return known[lease_id]

    def again(state: LeagueState, event: LeaseFinished) -> None:
        state.leases.setdefault(event.lease_id, known[event.lease_id])
        apply_finished(state, event)

    monkeypatch.setattr(leases, "_open_lease", lenient)
    monkeypatch.setitem(APPLIERS, LeaseFinished, again)
    plan = Schedule.of_seed(0)
    assert "finished, and had finished" in problem_of(replace(plan, deaths=(), disk=0, operations=False))


def test_leases_that_a_start_does_not_give_up_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    start_run = DECIDERS[StartRun]

    def forgetful(state: LeagueState, command: StartRun, rng: np.random.Generator) -> list[Event]:
        return start_run(state, command, rng)[-1:]

    monkeypatch.setitem(DECIDERS, StartRun, forgetful)
    assert any("leaves leases open" in problem_of(Schedule.of_seed(seed)) for seed in range(20))


def test_a_result_that_a_start_applies_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read_state = journaled_league.read_state

    def doubled(journal: JournalReader) -> LeagueState:
        state = read_state(journal)
        finished = [event for _, event in journal.replay() if isinstance(event, LeaseFinished)]
        state.totals.games += sum(outcome.games for event in finished[-1:] for outcome in event.outcomes)
        return state

    monkeypatch.setattr(journaled_league, "read_state", doubled)
    assert any("games at event" in problem_of(Schedule.of_seed(seed)) for seed in range(20))


def test_a_lease_that_is_handed_out_before_it_is_durable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    grant = Daemon._grant

    def hasty(daemon: Daemon, ask: Callable[[str], RequestLease | None]) -> None:
        grant(daemon, ask)
        events, daemon._commander.waiting = daemon._commander.waiting, []
        for event in events:
            daemon._effects.carry_out(event)

    monkeypatch.setattr(Daemon, "_grant", hasty)
    assert "is submitted and not durable" in problem_of(Schedule.of_seed(0))
