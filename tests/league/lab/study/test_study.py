"""A study says of known arms what is true, ends where it is settled, and loses nothing when it is killed."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from league.errors import ConfigError, LeagueError
from league.lab.study.referee import MatchFigure
from league.lab.study.study import Study
from league.lab.study.study_config import ArmConfig, CompareConfig, StudyConfig, read_study
from league.lab.study.study_report import StudyReport
from league.lab.study.verdict import is_looked_at, verdict
from league.lab.trials.trial_job import TrialJob, TrialResult, read_result
from league.store.storage import Storage

STRENGTHS = {"strong": 0.7, "weak": 0.5, "alike": 0.7}
STUDY = StudyConfig(
    arms=(ArmConfig("strong"), ArmConfig("weak")),
    core_seconds=10.0,
    base="tic_tac_toe",
    seeds=(0, 1, 2, 3, 4, 5),
    compare=CompareConfig(by="yardsticks"),
)


class FakeTraining:
    """Runs of known strength, each with the luck of its seed; results are files, as those of real ones are.

    Args:
      noise: standard deviation between seeds. dies_at: number of the run in which the process is killed.
      spent: core-seconds of the runs of an arm. fails: runs that fail, by name.
    """

    def __init__(
        self,
        *,
        noise: float = 0.01,
        dies_at: int = 0,
        spent: Mapping[str, float] | None = None,
        fails: tuple[str, ...] = (),
    ) -> None:
        self.trained: list[str] = []
        self._noise, self._dies_at, self._spent, self._fails = noise, dies_at, spent or {}, fails

    def run(self, job: TrialJob) -> TrialResult:
        found = read_result(Path(job.result))
        if found is not None:
            return found
        name = Path(job.run).name
        arm, seed = name.split("-")
        self.trained.append(name)
        if len(self.trained) == self._dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        luck = np.random.default_rng([len(arm), int(seed)]).normal() * self._noise
        result = TrialResult(STRENGTHS[arm] + luck, self._spent.get(arm, 10.0), "measured")
        if name in self._fails:
            result = TrialResult(error="the learner does not learn")
        Storage().atomic_write_bytes(Path(job.result), msgspec.json.encode(result))
        return result


class FakeReferee:
    """Matches whose score follows from the strengths."""

    def __init__(self) -> None:
        self.played: list[tuple[str, int]] = []

    def play(self, path: Path, runs: tuple[Path, Path], *, seed: int) -> MatchFigure:
        self.played.append((path.name, seed))
        one, two = (STRENGTHS[run.name.partition("-")[0]] for run in runs)
        return MatchFigure(0.5 + (one - two) / 2 + 0.001 * (seed % 3), 40, "H1" if one > two else "")


def studied(folder: Path, training: FakeTraining, study: StudyConfig = STUDY, *, jobs: int = 1) -> StudyReport:
    made = Study(folder / "study", study, runner=training, referee=FakeReferee(), show=lambda text, fraction: None)
    return made.run(jobs=jobs)


def test_a_clear_difference_is_settled_with_three_seeds_and_no_further_one_is_trained(tmp_path: Path) -> None:
    training = FakeTraining()
    (row,) = studied(tmp_path, training).comparisons
    assert row.verdict is not None and (row.verdict.kind, row.verdict.better) == ("settled", "strong")
    assert Counter(training.trained) == Counter(f"{arm}-{seed}" for arm in ("strong", "weak") for seed in range(3))
    assert row.verdict.more_seeds == 0 and "settled: strong is stronger by 0.2" in row.sentence


def test_arms_that_differ_by_luck_alone_stay_confounded_to_the_last_seed(tmp_path: Path) -> None:
    study = replace(STUDY, arms=(ArmConfig("strong"), ArmConfig("alike")))
    training = FakeTraining(noise=0.1)
    (row,) = studied(tmp_path, training, study, jobs=2).comparisons
    assert len(training.trained) == 12 and len(row.seeds) == 6
    assert row.verdict is not None and row.verdict.kind == "confounded" and (row.verdict.more_seeds or 0) > 10
    assert "seeds explain as much as the arms" in row.sentence


def test_a_killed_study_continues_and_does_no_finished_run_again(tmp_path: Path) -> None:
    whole = studied(tmp_path / "whole", FakeTraining(noise=0.3))
    child = os.fork()
    if child == 0:
        studied(tmp_path / "killed", FakeTraining(noise=0.3, dies_at=5))
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert len(list((tmp_path / "killed" / "study" / "results").iterdir())) == 4
    again = FakeTraining(noise=0.3)
    report = studied(tmp_path / "killed", again)
    assert len(again.trained) == 12 - 4
    assert [row.seeds for row in report.comparisons] == [row.seeds for row in whole.comparisons]


def test_all_matches_of_a_seed_have_the_same_openings(tmp_path: Path) -> None:
    arms = (ArmConfig("strong"), ArmConfig("weak"), ArmConfig("alike"))
    study = replace(STUDY, arms=arms, compare=CompareConfig(by="matches"), seeds=(4, 7))
    referee = FakeReferee()
    training = FakeTraining()
    made = Study(tmp_path / "study", study, runner=training, referee=referee, show=lambda text, fraction: None)
    report = made.run(jobs=1)
    seeds = {seed: {opening for name, opening in referee.played if name.endswith(f"-{seed}")} for seed in (4, 7)}
    assert len(referee.played) == 6 and all(len(found) == 1 for found in seeds.values()) and seeds[4] != seeds[7]
    assert report.comparisons[0].seeds[0].difference == pytest.approx(0.1, abs=0.01)
    assert json.loads(report.to_json())["comparisons"][0]["seeds"][0]["decision"] == "H1"


def test_unequal_budgets_confound_whatever_the_seeds_say(tmp_path: Path) -> None:
    (row,) = studied(tmp_path, FakeTraining(spent={"weak": 6.0})).comparisons
    assert row.verdict is not None and row.verdict.kind == "confounded" and "10 and 6 core-seconds" in row.sentence


def test_a_run_that_fails_costs_its_seed(tmp_path: Path) -> None:
    report = studied(tmp_path, FakeTraining(fails=("weak-1",)))
    assert [row.seed for row in report.comparisons[0].seeds] == [0, 2, 3]
    assert "the learner does not learn" in report.text()


def test_a_folder_holds_one_study_which_may_get_more_seeds(tmp_path: Path) -> None:
    studied(tmp_path, FakeTraining(noise=0.3), replace(STUDY, seeds=(0, 1)))
    more = FakeTraining(noise=0.3)
    studied(tmp_path, more, replace(STUDY, seeds=(0, 1, 2)))
    assert sorted(more.trained) == ["strong-2", "weak-2"]
    with pytest.raises(LeagueError, match="another core_seconds"):
        studied(tmp_path, FakeTraining(), replace(STUDY, core_seconds=20.0))


def judged(differences: list[float], **changes: object) -> str:
    asked: dict[str, object] = {"least": 0.03, "num_seeds": len(differences), "spent": (9.0, 9.5), "word": "stronger"}
    return verdict(("one", "two"), differences, **{**asked, **changes}).kind  # type: ignore[arg-type]


def test_verdicts_of_known_differences() -> None:
    assert judged([0.2, 0.21, 0.19]) == "settled" == judged([0.001, -0.001, 0.002, 0.0])
    assert judged([0.2, 0.05, 0.4]) == "suggestive" == judged([-0.1, -0.3])
    assert judged([0.2, -0.1, 0.4]) == "confounded" == judged([0.9])
    assert judged([0.2, 0.21, 0.19], spent=(9.0, 7.0)) == "confounded"


def falsely_settled(num_seeds: int, looks: Callable[[int, int], bool]) -> float:
    """Share of 600 studies of equal arms, normal luck, that end as settled, looked at after each seed."""
    rng = np.random.default_rng(5)
    count = 0
    for luck in rng.normal(size=(600, num_seeds)).tolist():
        kinds = (
            judged(luck[:done], num_seeds=num_seeds, least=1e-9)
            for done in range(1, num_seeds + 1)
            if looks(done, num_seeds)
        )
        count += any(kind == "settled" for kind in kinds)
    return count / 600


def test_of_equal_arms_one_in_twenty_is_settled_however_often_it_is_looked_at() -> None:
    """Null: equal arms. The bound is 5 % and two standard errors of 600 studies."""
    assert 0.01 < falsely_settled(8, is_looked_at) < 0.05 + 0.018


FILE = """
base: tic_tac_toe
core_seconds: 5
arms:
  - {name: league}
  - {name: newest, settings: {league.preset: self_play}}
"""


def test_a_file_is_read_with_its_defaults(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(FILE)
    study = read_study(path)
    assert study.overrides_of(study.arms[1], 3) == ('league.preset="self_play"', "seed=3")
    assert study.compare.sprt.elo1 == pytest.approx(-study.compare.sprt.elo0)
    (tmp_path / "tic_tac_toe").write_text("env: {id: kuhn_poker}")
    assert read_study(path).base == str(tmp_path / "tic_tac_toe")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (FILE.replace("newest,", "league,") + "seeds: [0, 0]\n", ["league is there twice", "each once"]),
        (FILE + "compare: {by: column, least: 0}\n", ["compare.column: ''", "compare.least: 0 must be above 0"]),
        (FILE.replace("league.preset", "budget.core_seconds"), ["give core_seconds at the top"]),
        (FILE.replace("self_play}", "self_plai}"), ["arms.1: league: no preset"]),
        (FILE.replace("base", "basis"), ["nearest is 'base'"]),
        (FILE.replace("tic_tac_toe", "gymnasium:CartPole-v1"), ["one team"]),
        (FILE.replace("core_seconds: 5", "core_seconds: 0.1\nseeds: []"), ["0.1 must be at least 1", "seeds: []"]),
    ],
)
def test_a_file_that_is_none_names_every_key(tmp_path: Path, text: str, problems: list[str]) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_study(path)
    assert all(problem in str(error.value) for problem in problems), str(error.value)
