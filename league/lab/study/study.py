"""`league study`: trains arms over seeds with equal budgets and compares them until it is settled which is better.

The folder of a study: plan.json, trials/ARM-SEED (run folders), results/, logs/, matches/FIRST-SECOND-SEED.
Everything is decided from these files alone, so that a study that was killed continues with the same command.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

from league.errors import LeagueError
from league.judge.matches.pairs import EVEN
from league.lab.study.referee import Referee
from league.lab.study.study_config import ArmConfig, CompareConfig, StudyConfig
from league.lab.study.study_report import ArmRow, ArmRunRow, ComparisonRow, SeedRow, StudyReport
from league.lab.study.verdict import FIRST_LOOK, ArmVerdict, is_looked_at, verdict
from league.lab.trials.trial_folder import TrialFolder
from league.lab.trials.trial_job import TrialJob, TrialResult, TrialRunner, read_result
from league.run.launch import spent_by
from league.wording import counted

LOOK_EVERY_S = 1.0
GAMES_SEED = 20_000
"""Openings of a seed's matches come from this number and the seed: those of all its matches are the same."""

Show = Callable[[str, float], None]
"""Takes the state in a few words, and the part of the work that is done."""


@dataclass(frozen=True)
class StudyPlan:
    """The part of a study that never changes in its folder: all but its seeds, of which there may come more."""

    arms: tuple[ArmConfig, ...]
    core_seconds: float
    base: str
    settings: dict[str, object]
    compare: CompareConfig


class Study:
    """One study in its folder.

    Args:
      folder: made where it is missing; a study that lies there is continued.
      runner: carries out the trials. referee: plays the matches. show: see `Show`.
    Raises:
      LeagueError: another study lies there.
    """

    def __init__(self, folder: Path, study: StudyConfig, *, runner: TrialRunner, referee: Referee, show: Show) -> None:
        plan = StudyPlan(study.arms, study.core_seconds, study.base, study.settings, study.compare)
        self._folder = TrialFolder(folder, plan, what="study", folders=("trials", "results", "logs", "matches"))
        self._study = study
        self._runner = runner
        self._referee = referee
        self._show = show
        self._num_runs = len(study.arms) * len(study.seeds)
        asked = itertools.product([arm.name for arm in study.arms], study.seeds)
        self._found = sum(read_result(self._result_path(*key)) is not None for key in asked)
        self._results: dict[tuple[str, int], TrialResult] = {}
        self._differences: dict[tuple[str, str], list[SeedRow]] = {
            (one.name, two.name): [] for one, two in itertools.combinations(study.arms, 2)
        }

    def run(self, *, jobs: int) -> StudyReport:
        """Train and compare until every pair is settled or the seeds are used up.

        Args:
          jobs: runs at a time.
        Raises:
          LeagueError: it was interrupted, or another process works on it. EnvError: a match cannot be played.
        """
        seeds = self._study.seeds
        with self._folder.locked(), ThreadPoolExecutor(max_workers=jobs) as pool:
            rounds = [seeds[:FIRST_LOOK], *((seed,) for seed in seeds[FIRST_LOOK:])]
            for now in rounds:
                pairs = [pair for pair in self._differences if not self._is_settled(pair)]
                arms = [arm for arm in self._study.arms if any(arm.name in pair for pair in pairs)]
                self._train(pool, [(arm, seed) for seed in now for arm in arms])
                for seed, pair in itertools.product(now, pairs):
                    self._compare(pair, seed)
            return self._report()

    def _train(self, pool: ThreadPoolExecutor, asked: Sequence[tuple[ArmConfig, int]]) -> None:
        """Have the results of some runs, and show how far they are meanwhile."""
        jobs = {pool.submit(self._runner.run, self._job(arm, seed)): (arm.name, seed) for arm, seed in asked}
        waiting = set(jobs)
        while waiting:
            ended, waiting = wait(waiting, timeout=LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for one in ended:
                self._results[jobs[one]] = one.result()
            self._show_state([jobs[one] for one in waiting])
        if any(self._results[key].is_interrupted for key in jobs.values()):
            raise LeagueError("the study was interrupted: give the same command again to continue it.")

    def _done(self, running: float = 0.0) -> float:
        """Part of the work of this process that is done. running: runs that are on their way, each by its part."""
        done = (len(self._results) + running - self._found) / max(self._num_runs - self._found, 1)
        return min(max(done, 0.0), 1.0)

    def _show_state(self, waiting: Sequence[tuple[str, int]]) -> None:
        spent = sum(spent_by(self._run_dir(*key)).core_seconds for key in waiting)
        running = min(spent / self._study.core_seconds, float(len(waiting)))
        self._show(f"{len(self._results)} of at most {counted(self._num_runs, 'run')}", self._done(running))

    def _compare(self, pair: tuple[str, str], seed: int) -> None:
        """Take the difference of two arms with one seed in, where both have a run."""
        one, two = (self._results[name, seed] for name in pair)
        if one.error or two.error:
            return
        if self._study.compare.by != "matches":
            self._differences[pair].append(SeedRow(seed, one.value - two.value))
            return
        self._show(f"{pair[0]} plays {pair[1]}, seed {seed}", self._done())
        runs = (self._run_dir(pair[0], seed), self._run_dir(pair[1], seed))
        path = self._folder.path / "matches" / f"{pair[0]}-{pair[1]}-{seed}"
        found = self._referee.play(path, runs, seed=GAMES_SEED + seed)
        self._differences[pair].append(SeedRow(seed, found.score - EVEN, found.games, found.decision))

    def _is_settled(self, pair: tuple[str, str]) -> bool:
        """True if a pair needs no further seed."""
        done = self._differences[pair]
        found = self._verdict(pair) if done and is_looked_at(len(done), len(self._study.seeds)) else None
        return found is not None and found.kind == "settled"

    def _verdict(self, pair: tuple[str, str]) -> ArmVerdict | None:
        rows = self._differences[pair]
        if not rows:
            return None
        spent = [statistics.fmean(self._results[name, row.seed].core_seconds for row in rows) for name in pair]
        is_strength = self._study.compare.by != "column"
        return verdict(
            pair,
            [row.difference for row in rows],
            least=self._study.compare.least,
            num_seeds=len(self._study.seeds),
            spent=(spent[0], spent[1]),
            word="stronger" if is_strength else "higher",
        )

    def _job(self, arm: ArmConfig, seed: int) -> TrialJob:
        study = self._study
        return TrialJob(
            run=str(self._run_dir(arm.name, seed)),
            rung=0,
            source=study.source_of(arm),
            overrides=study.overrides_of(arm, seed),
            core_seconds=study.core_seconds,
            until=study.core_seconds,
            objective=study.compare.objective,
            seed=GAMES_SEED + seed,
            result=str(self._result_path(arm.name, seed)),
        )

    def _run_dir(self, arm: str, seed: int) -> Path:
        return (self._folder.path / "trials" / f"{arm}-{seed}").absolute()

    def _result_path(self, arm: str, seed: int) -> Path:
        return (self._folder.path / "results" / f"{arm}-{seed}.json").absolute()

    def _report(self) -> StudyReport:
        study = self._study
        return StudyReport(
            folder=str(self._folder.path),
            by=study.compare.column or study.compare.by,
            least=study.compare.least,
            core_seconds=study.core_seconds,
            seeds=study.seeds,
            arms=tuple(
                ArmRow(arm.name, study.source_of(arm), arm.settings, tuple(self._runs_of(arm.name)))
                for arm in study.arms
            ),
            comparisons=tuple(
                ComparisonRow(*pair, tuple(rows), self._verdict(pair)) for pair, rows in self._differences.items()
            ),
        )

    def _runs_of(self, arm: str) -> Iterator[ArmRunRow]:
        for seed in self._study.seeds:
            found = self._results.get((arm, seed))
            if found is not None:
                path = str(self._run_dir(arm, seed))
                yield ArmRunRow(seed, path, found.value, found.core_seconds, found.detail, found.error)
