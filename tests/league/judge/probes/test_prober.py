"""The daemon's side of probes: what begins when, and what becomes of those that fail, hang or are interrupted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from league.config.run_config import ProbesConfig
from league.core.league import apply, decide
from league.core.state.commands import Command
from league.core.state.events import ConfigChanged
from league.core.state.probe_events import ProbeBegun, ProbeEnded
from league.core.state.records import ProbeOutcome, ProbeReading
from league.judge.probes.probe import ProbeRequest
from league.judge.probes.prober import MAX_FAILURES, NOTE_EVERY_S, ProbeProcess, Prober
from league.run.monitor import names
from league.run.monitor.jsonl_sink import last_row
from league.see.reports.probes import read_probes
from league.see.reports.status.status_report import read_status
from tests.league.core.simulated_league import SimulatedLeague, three_roles
from tests.league.tiny_runs import ONE_PLAYER, history_of, start, state_of, tiny

KINDS = ("yardsticks", "past")


class FakeProcess(ProbeProcess):
    """Answers when the test says so. cost: processor seconds of each measurement."""

    def __init__(self, *, cost: float = 1.0) -> None:
        super().__init__(Path())
        self.cost = cost
        self.asked: list[ProbeRequest] = []
        self.ready: list[ProbeOutcome] = []
        self.running = self.died = False
        self.ended, self.used = 0, 7.0

    @property
    def is_running(self) -> bool:
        return self.running

    @property
    def has_died(self) -> bool:
        return self.died

    def ask(self, request: ProbeRequest) -> None:
        self.running = True
        self.asked.append(request)

    def answer(self) -> ProbeOutcome | None:
        return self.ready.pop() if self.ready else None

    def reply(self, remark: str = "") -> None:
        number = self.asked[-1].task.number
        readings = (ProbeReading("tactical", 0.5, 0.4, 0.6, 40),)
        self.ready.append(ProbeOutcome(number, readings, self.cost, remark=remark))

    def core_seconds(self) -> float:
        return self.used

    def end(self) -> None:
        self.running = self.died = False
        self.ended += 1


class Beside:
    """A league with its prober."""

    def __init__(self, *, max_share: float = 0.1, deadline_s: float = 60.0, kinds: tuple[str, ...] = KINDS) -> None:
        self.league = SimulatedLeague(three_roles())
        self.league.run(120)
        self.now, self.said = 0.0, list[str]()
        self.config = ProbesConfig(kinds, max_share, deadline_s)
        self.restart()

    def restart(self, *, cost: float = 1.0) -> None:
        self.process = FakeProcess(cost=cost)
        state, say = self.league.state, self.said.append
        self.prober = Prober(self.config, self.process, state, say=say, monotonic=lambda: self.now)

    def execute(self, command: Command) -> bool:
        self.league.ask(command)
        return True

    def look(self, core_seconds: float, *, begins: bool = True) -> None:
        self.prober.look(self.league.state, core_seconds, ask=self.execute, phase="training" if begins else "draining")


@pytest.fixture
def beside() -> Iterator[Beside]:
    yield Beside()


def test_a_probe_is_in_the_journal_before_it_is_asked_and_its_cost_after(beside: Beside) -> None:
    beside.look(1_000.0)
    assert beside.league.state.probes.open is not None and not beside.process.asked
    beside.look(1_000.0)
    assert [request.task for request in beside.process.asked] == [beside.league.state.probes.open]
    beside.process.reply()
    beside.look(1_000.0)
    assert beside.league.state.probes.open is None
    assert beside.league.state.probes.core_seconds == 1.0


def test_probes_keep_within_their_share_of_the_time_and_each_kind_within_its_part() -> None:
    beside = Beside(max_share=0.1)
    spent = 0.0
    while spent < 300.0:
        spent += 2.0
        beside.look(spent)
        if beside.process.asked and beside.league.state.probes.open == beside.process.asked[-1].task:
            beside.process.cost = beside.process.asked[-1].limit_s
            beside.process.reply()
        beside.look(spent)
        known = beside.league.state.probes
        assert known.core_seconds <= 0.1 * spent
        assert all(cost <= 0.05 * spent for cost in known.costs.values())
        beside.league.run(3)
    assert set(known.costs) == set(KINDS) and known.core_seconds > 0.07 * 300.0


def test_a_snapshot_is_measured_once_by_each_kind(beside: Beside) -> None:
    for _ in range(20):
        beside.look(1e6)
        if beside.process.asked and beside.league.state.probes.open == beside.process.asked[-1].task:
            beside.process.reply()
    tasks = [result.task for result in beside.league.state.probes.results]
    assert len({(task.probe, task.snapshot) for task in tasks}) == len(tasks) == len(KINDS)


def test_what_is_left_out_is_said_once_whatever_its_numbers() -> None:
    beside = Beside(kinds=("yardsticks",))
    remarks = [
        "mcts:100 takes 20.1 s",
        "mcts:100 takes 1,937 s",
        "mcts:100 and go take 3 s",
        "mcts:100 and go take 4 s",
    ]
    for remark in remarks:
        asked = len(beside.process.asked)
        while len(beside.process.asked) == asked:
            beside.league.run(20)
            beside.look(1e6)
        beside.process.reply(remark)
        beside.look(1e6)
    assert beside.said == [f"The probe yardsticks measured without: {remarks[place]}." for place in (0, 2)]


def test_one_that_takes_too_long_is_ended_and_its_cost_counts(beside: Beside) -> None:
    beside.look(1_000.0)
    beside.look(1_000.0)
    beside.now = 61.0
    beside.process.used = 9.5
    beside.look(1_000.0)
    assert beside.process.ended == 1
    (result,) = beside.league.state.probes.results
    assert "deadline_s" in result.problem and result.core_seconds == pytest.approx(2.5)


def test_one_that_a_crash_interrupts_is_run_again_and_counts_once(beside: Beside) -> None:
    beside.look(1_000.0)
    beside.look(1_000.0)
    task = beside.league.state.probes.open
    beside.restart()
    beside.look(1_000.0)
    assert [request.task for request in beside.process.asked] == [task]
    beside.process.reply()
    beside.look(1_000.0)
    assert [result.task for result in beside.league.state.probes.results] == [task]
    assert beside.league.state.probes.begun == 1


def test_what_an_interrupted_attempt_is_known_to_have_used_counts_before_it_is_asked_again(beside: Beside) -> None:
    beside.look(1_000.0)
    beside.look(1_000.0)
    beside.process.used = 7.0 + 2.5
    beside.now = NOTE_EVERY_S
    beside.look(1_000.0)
    assert beside.league.state.probes.open_core_seconds == 2.5
    beside.restart()
    beside.look(1_000.0)
    assert beside.league.state.probes.core_seconds == 2.5 and not beside.process.asked
    beside.look(1_000.0)
    beside.process.reply()
    beside.look(1_000.0)
    assert beside.league.state.probes.core_seconds == 2.5 + 1.0


def test_the_time_of_a_process_that_died_counts_as_far_as_it_was_known(beside: Beside) -> None:
    beside.look(1_000.0)
    beside.look(1_000.0)
    beside.process.used, beside.now = 7.0 + 2.5, NOTE_EVERY_S
    beside.look(1_000.0)
    beside.process.died, beside.process.used = True, 0.0
    beside.look(1_000.0)
    assert beside.league.state.probes.core_seconds == 2.5


def test_one_that_fails_again_and_again_is_left_alone_until_the_next_start() -> None:
    beside = Beside(kinds=("yardsticks",))

    def failures() -> int:
        return sum(bool(result.problem) for result in beside.league.state.probes.results)

    def run() -> None:
        for _ in range(3 * MAX_FAILURES):
            for _ in range(3):
                beside.look(1e6)
                beside.process.died = bool(beside.process.running)
            beside.league.run(12)

    run()
    assert failures() == MAX_FAILURES
    assert any("its process died" in sentence for sentence in beside.said)
    beside.restart()
    run()
    assert failures() == 2 * MAX_FAILURES


def test_nothing_begins_while_the_run_ends_and_an_answer_is_still_taken(beside: Beside) -> None:
    beside.look(1_000.0, begins=False)
    assert beside.league.state.probes.open is None
    beside.look(1_000.0)
    beside.look(1_000.0)
    beside.process.reply()
    beside.look(1_000.0, begins=False)
    assert len(beside.league.state.probes.results) == 1


def test_the_process_measures_a_run_and_is_gone_afterwards(tmp_path: Path) -> None:
    """A game or bot that hangs is ended with it, as nothing in it is waited for."""
    plain = tiny(probes={"kinds": ["past", "yardsticks"]}, evaluation={"bots": ["random"]}, league=ONE_PLAYER)
    start(tmp_path, plain, env_steps=2_000)
    path, state = tmp_path / "run", state_of(tmp_path / "run")
    commands: list[Command] = []

    def execute(command: Command) -> bool:
        commands.append(command)
        for event in decide(state, command, np.random.default_rng(0)):
            apply(state, event)
        return True

    process = ProbeProcess(path, nice=0)
    prober = Prober(ProbesConfig(("past", "yardsticks"), 0.5, 60.0), process, state, say=lambda sentence: None)
    with closing(prober):
        deadline = time.monotonic() + 60.0
        while len(state.probes.results) < 2 and time.monotonic() < deadline:
            prober.look(state, 100.0, ask=execute, phase="training")
            time.sleep(0.02)
        pid = process.pid
    first, second = state.probes.results
    assert [reading.yardstick for reading in first.readings] == ["worst_past"], first.problem
    assert [reading.yardstick for reading in second.readings] == ["random"], second.problem
    assert first.readings[0].note in state.snapshots and second.readings[0].games == 200
    assert 0.0 < second.core_seconds < state.probes.core_seconds - first.core_seconds  # it had to be started
    assert pid is not None and not Path(f"/proc/{pid}").exists()


class AutoProcess(FakeProcess):
    """Answers every request at once."""

    def __init__(self, path: Path) -> None:
        super().__init__(cost=0.001)

    def ask(self, request: ProbeRequest) -> None:
        super().ask(request)
        self.reply()


def test_a_run_with_probes_trains_as_one_without_and_shows_what_they_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("league.judge.probes.prober.ProbeProcess", AutoProcess)
    monkeypatch.setattr("league.judge.probes.prober.START_CORE_SECONDS", 0.0)
    monkeypatch.setattr("league.judge.probes.yardsticks.Yardsticks.least_core_seconds", 0.0)
    monkeypatch.setattr("league.run.monitor.observer.METRICS_EVERY_S", 0.0)
    start(tmp_path, tiny(league=ONE_PLAYER), env_steps=2_000, run="plain")
    start(tmp_path, tiny(league=ONE_PLAYER, probes={"kinds": ["yardsticks"]}), env_steps=2_000)
    history = history_of(tmp_path / "run")
    mine = [event for event in history if isinstance(event, ProbeBegun | ProbeEnded)]
    del mine[2 * (len(mine) // 2) :]  # one that begins with the last turn stays open
    assert mine and [type(event) for event in mine] == [ProbeBegun, ProbeEnded] * (len(mine) // 2)
    differing = (ProbeBegun, ProbeEnded, ConfigChanged)
    rest, plain = (
        [e for e in events if not isinstance(e, differing)] for events in (history, history_of(tmp_path / "plain"))
    )
    assert rest == plain
    row = last_row(tmp_path / "run" / "metrics.jsonl")
    assert row is not None and row.values[names.PROBE_VALUE.of_yardstick("yardsticks.tactical")] == 0.5
    assert row.values[names.PROBE_CORE_S.name] == pytest.approx(0.001 * len(mine) / 2)
    assert "tactical 0.5 (main-0-s" in read_status(tmp_path / "run").text()
    report = read_probes(tmp_path / "run")
    assert report.ended == len(mine) // 2 and "[0.400, 0.600]" in report.text()
    assert json.loads(report.to_json())["series"][0]["points"][0]["value"] == 0.5
