"""A sweep finds the best settings, gives every trial the same budget, and loses no trial when it is killed."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from league.errors import ConfigError, LeagueError
from league.lab.sweep.optuna_study import OptunaStudy
from league.lab.sweep.plan import SweepPlan
from league.lab.sweep.space import check_space, overrides_of, read_space
from league.lab.sweep.sweep import Sweep, open_sweep
from league.lab.sweep.sweep_report import SweepReport, read_sweep
from league.lab.trials.process_runner import ProcessRunner
from league.lab.trials.trial_job import TrialJob, TrialResult
from league.store.lock import RunLock

pytest.importorskip("optuna")

SPACE = """
learner.learning_rate: {low: 1.0e-4, high: 1.0e-1, log: true}
learner.unroll_length: {low: 4, high: 16}
network.hidden: [[16], [32, 32]]
"""


class FakeTraining:
    """Training whose strength is known: best at a learning rate of 0.003, and better with time.

    Args:
      stops_at: number of the job at which it is interrupted. fails: trials that fail, by number.
    """

    def __init__(self, *, stops_at: int = 0, fails: tuple[int, ...] = ()) -> None:
        self.jobs: list[TrialJob] = []
        self._stops_at = stops_at
        self._fails = fails

    def run(self, job: TrialJob) -> TrialResult:
        self.jobs.append(job)
        if len(self.jobs) == self._stops_at:
            return TrialResult(is_interrupted=True)
        if int(Path(job.run).name) in self._fails:
            return TrialResult(error="the learner does not learn")
        settings = dict(part.split("=", 1) for part in job.overrides)
        distance = abs(math.log10(float(settings["learner.learning_rate"]) / 0.003))
        return TrialResult(1.0 - distance - 1.0 / job.until, job.until, "measured")


def sweep_plan(**changes: object) -> SweepPlan:
    return msgspec.structs.replace(SweepPlan(source="tic_tac_toe", space=SPACE, core_seconds=90.0), **changes)


def sweep_of(folder: Path, training: FakeTraining, **changes: object) -> Sweep:
    path = folder / "space.yaml"
    path.write_text(SPACE)
    return open_sweep(folder / "sweep", sweep_plan(**changes), path, runner=training, say=lambda sentence: None)


def swept(folder: Path, training: FakeTraining, *, num_trials: int, jobs: int = 1, **changes: object) -> SweepReport:
    return sweep_of(folder, training, **changes).run(num_trials=num_trials, jobs=jobs)


def test_the_best_settings_are_found_on_equal_budgets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("league.lab.sweep.optuna_study.MIN_TRIALS_OF_IMPORTANCE", 12)
    training = FakeTraining()
    report = swept(tmp_path, training, num_trials=12)
    assert len(report.trials) == len(training.jobs) == 12
    assert report.best is not None
    best = report.trials[report.best]
    assert best.value == max(row.value for row in report.trials if row.value is not None)
    assert abs(math.log10(best.values["learner.learning_rate"] / 0.003)) < 0.5
    assert sum(report.importance.values()) == pytest.approx(1.0) and len(report.importance) == 3
    assert {job.until for job in training.jobs} == {90.0} == {job.core_seconds for job in training.jobs}
    table = report.text().splitlines()
    assert len(table) == 15 and table[1].split()[0] == str(report.best)


def test_rungs_end_the_weaker_trials_early_and_no_other(tmp_path: Path) -> None:
    training = FakeTraining()
    report = swept(tmp_path, training, num_trials=12, rungs=3, reduction=3)
    spent = Counter(job.until for job in training.jobs)
    assert set(spent) == {10.0, 30.0, 90.0} and spent[10.0] == 12
    assert 1 <= spent[90.0] < spent[30.0] <= 12 / 2  # a third of those that had come there before
    complete = [row for row in report.trials if row.state == "complete"]
    pruned = [row for row in report.trials if row.state == "pruned"]
    assert len(complete) == spent[90.0] and len(complete) + len(pruned) == 12
    assert max(row.rungs[0] for row in pruned) < max(row.rungs[0] for row in complete)
    assert report.best in {row.number for row in complete}


def test_a_sweep_at_work_is_read_without_a_change(tmp_path: Path) -> None:
    with pytest.raises(LeagueError, match="holds no sweep"):
        read_sweep(tmp_path)
    with pytest.raises(LeagueError, match="the same command again"):
        swept(tmp_path, FakeTraining(stops_at=5), num_trials=8)
    folder = tmp_path / "sweep"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = read_sweep(folder)
    assert [row.state for row in found.trials] == [*["complete"] * 4, "running"]
    assert found.best == max(found.trials[:4], key=lambda row: row.rungs[-1]).number and not found.importance
    plain = msgspec.json.decode(found.to_json())
    assert plain["space"]["learner.unroll_length"] == {"low": 4, "high": 16, "log": False}
    assert plain["space"]["network.hidden"] == {"values": ["[16]", "[32, 32]"]}
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_a_killed_sweep_continues_and_does_no_finished_trial_again(tmp_path: Path) -> None:
    first = FakeTraining(stops_at=6)
    with pytest.raises(LeagueError, match="the same command again"):
        swept(tmp_path, first, num_trials=8, rungs=2)
    second = FakeTraining()
    report = swept(tmp_path, second, num_trials=8, rungs=2)
    assert [row.number for row in report.trials] == list(range(8))
    assert all(row.state in ("complete", "pruned") for row in report.trials)
    cut_off = first.jobs[-1]
    again = [job for job in second.jobs if job.run == cut_off.run]
    assert again[0].overrides == cut_off.overrides  # the very same trial in the very same run folder
    finished = {(job.run, job.rung) for job in first.jobs[:-1] if job.run != cut_off.run}
    assert finished and not finished & {(job.run, job.rung) for job in second.jobs}


def test_several_trials_at_a_time_are_each_done_once(tmp_path: Path) -> None:
    training = FakeTraining()
    report = swept(tmp_path, training, num_trials=6, jobs=3)
    assert sorted(Path(job.run).name for job in training.jobs) == [f"{number:04d}" for number in range(6)]
    assert [row.number for row in report.trials] == list(range(6))


def test_a_trial_that_fails_is_listed_and_the_others_continue(tmp_path: Path) -> None:
    report = swept(tmp_path, FakeTraining(fails=(1,)), num_trials=4)
    assert [row.state for row in report.trials] == ["complete", "failed", "complete", "complete"]
    assert report.trials[1].detail == "the learner does not learn"
    with pytest.raises(LeagueError, match="no trial was completed: the learner"):
        swept(tmp_path / "sweep", FakeTraining(fails=(0,)), num_trials=1)


def test_a_folder_holds_one_sweep_and_one_process(tmp_path: Path) -> None:
    swept(tmp_path, FakeTraining(), num_trials=1)
    with pytest.raises(LeagueError, match="another core_seconds"):
        sweep_of(tmp_path, FakeTraining(), core_seconds=60.0)
    with RunLock(tmp_path / "sweep" / "sweep.lock"), pytest.raises(LeagueError, match="in use by another sweep"):
        swept(tmp_path, FakeTraining(), num_trials=2)


def test_a_result_that_is_there_is_taken_without_a_process(tmp_path: Path) -> None:
    job = TrialJob("run", 0, "x", (), 1.0, 1.0, SweepPlan("x", "", 1.0).objective, 0, str(tmp_path / "r.json"))
    Path(job.result).write_bytes(msgspec.json.encode(TrialResult(0.5, 3.0, "kept")))
    assert ProcessRunner(tmp_path).run(job).detail == "kept"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: {low: 2, high: 1}", "must be below"),
        ("a: {low: 0, high: 1, log: true}", "must be above 0"),
        ("a: {low: 0}", "or a list of choices"),
        ("a: [1]", "at least two"),
        ("a: [1, 1]", "stands twice"),
        ("- 1", "dotted.key"),
    ],
)
def test_a_space_that_is_none_names_the_key(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=problem):
        read_space(path)


def test_keys_and_values_that_the_configuration_lacks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    for text, problem in (
        ("learner.learning_rat: [1, 2]", "learning_rate"),
        ("learner.unroll_length: {low: 0, high: 8}", "unroll_length"),
    ):
        path.write_text(text)
        with pytest.raises(ConfigError, match=problem):
            check_space(read_space(path), source="tic_tac_toe", overrides=())
    path.write_text(SPACE)
    check_space(read_space(path), source="tic_tac_toe", overrides=())
    assert overrides_of({"a.b": 0.5, "c": '[16, "x"]'}) == ("a.b=0.5", 'c=[16, "x"]')


def test_rungs_that_are_too_short_are_refused() -> None:
    plan = SweepPlan("x", "", core_seconds=20.0, rungs=4)
    assert [plan.core_seconds_at(rung) for rung in range(4)] == pytest.approx([20 / 27, 20 / 9, 20 / 3, 20])
    with pytest.raises(LeagueError, match=r"0\.74 core-seconds"):
        plan.require_valid()


def test_every_choice_is_looked_at_before_the_first_trial(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text("learner.learning_rate: [0.001, fast, 0.01]\nlearner.unroll_length: {low: 4, high: 16}\n")
    with pytest.raises(ConfigError, match=r"learner\.learning_rate: 'fast' does not fit"):
        check_space(read_space(path), source="tic_tac_toe", overrides=())


def test_a_trial_that_was_killed_before_its_values_were_drawn_gets_them(tmp_path: Path) -> None:
    path = tmp_path / "space.yaml"
    path.write_text(SPACE)
    space, plan = read_space(path), SweepPlan(source="tic_tac_toe", space=SPACE, core_seconds=90.0)
    first = OptunaStudy(tmp_path / "study.journal", plan, space)
    begun = first._study.ask()
    rate = begun.suggest_float("learner.learning_rate", 1e-4, 1e-1, log=True)
    left = OptunaStudy(tmp_path / "study.journal", plan, space).next_trial(8)
    assert left.number == begun.number
    assert set(left.params) == set(space)
    assert left.params["learner.learning_rate"] == rate
