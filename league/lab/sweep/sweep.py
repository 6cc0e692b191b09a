"""`league sweep`: trains runs with different settings and equal budgets, and reports which came out strongest.

The folder of a sweep: plan.json, study.journal (Optuna's), trials/NNNN (run folders), results/, logs/, best.yaml.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from league.errors import LeagueError
from league.lab.sweep.optuna_study import OptunaStudy, best_of
from league.lab.sweep.plan import SweepPlan
from league.lab.sweep.space import Space, check_space, overrides_of, read_space
from league.lab.sweep.sweep_report import BEST_FILE, STUDY_FILE, SweepReport, report_of
from league.lab.trials.trial_folder import TrialFolder
from league.lab.trials.trial_job import TrialJob, TrialRunner
from league.store.storage import Storage


class Sweep:
    """One sweep in its folder.

    Args:
      folder: made where it is missing; a sweep that lies there is continued. plan: of it. space: as in the plan.
      runner: carries out the trials. say: takes one sentence for people.
    Raises:
      LeagueError: another sweep lies there, or another process works on this one.
    """

    def __init__(
        self, folder: Path, plan: SweepPlan, space: Space, *, runner: TrialRunner, say: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._plan = plan
        self._space = space
        self._runner = runner
        self._say = say
        self._interrupted = False
        self._held = TrialFolder(folder, plan, what="sweep", folders=("trials", "results", "logs"))

    def run(self, *, num_trials: int, jobs: int) -> SweepReport:
        """Carry out trials until there are `num_trials`, so many at a time as `jobs`.

        Raises:
          LeagueError: it was interrupted; the same command continues it.
        """
        with self._held.locked():
            study = OptunaStudy(self._folder / STUDY_FILE, self._plan, self._space)
            with ThreadPoolExecutor(max_workers=jobs) as pool:
                for worker in [pool.submit(self._work, study, num_trials) for _ in range(jobs)]:
                    worker.result()
            if self._interrupted:
                raise LeagueError("the sweep was interrupted: give the same command again to continue it.")
            self._keep_best(study)
        return report_of(self._folder, self._plan, self._space, study)

    def _work(self, study: OptunaStudy, num_trials: int) -> None:
        while not self._interrupted and (trial := study.next_trial(num_trials)) is not None:
            self._carry_out(study, trial)

    def _carry_out(self, study: OptunaStudy, trial: Any) -> None:
        value = None
        for rung in range(self._plan.rungs):
            found = self._runner.run(self._job(trial.number, trial.params, rung))
            if found.is_interrupted:
                self._interrupted = True
                return  # stays as running, and is taken up by the next start
            if found.error:
                self._say(f"Trial {trial.number} failed: {found.error}")
                study.end(trial, error=found.error)
                return
            value = found.value
            is_over = study.report(trial, rung, value, core_seconds=found.core_seconds, detail=found.detail)
            self._say(f"Trial {trial.number}, {found.core_seconds:.0f} core-s: {value:.4f} ({found.detail})")
            if is_over:
                study.end(trial)
                return
        study.end(trial, value=value)

    def _job(self, number: int, values: Mapping[str, object], rung: int) -> TrialJob:
        run = self._folder / "trials" / f"{number:04d}"
        return TrialJob(
            run=str(run.absolute()),
            rung=rung,
            source=self._plan.source,
            overrides=(*self._plan.overrides, *overrides_of(values)),
            core_seconds=self._plan.core_seconds,
            until=self._plan.core_seconds_at(rung),
            objective=self._plan.objective,
            seed=self._plan.seed,
            result=str((self._folder / "results" / f"{number:04d}-{rung}.json").absolute()),
        )

    def _keep_best(self, study: OptunaStudy) -> None:
        """Write the configuration of the best trial. Raises LeagueError: there is none."""
        rows = study.rows()
        best = best_of(rows)
        if best is None:
            why = next((row.detail for row in rows if row.state == "failed"), "")
            raise LeagueError(f"no trial was completed{': ' + why if why else '.'}")
        config = self._folder / "trials" / f"{best.number:04d}" / "config.yaml"
        if config.is_file():
            head = f"# Trial {best.number} of {len(rows)}: {self._plan.objective.kind} {best.value:.4f}\n"
            Storage().atomic_write_bytes(self._folder / BEST_FILE, head.encode() + config.read_bytes())


def open_sweep(
    folder: Path, plan: SweepPlan, space_path: Path, *, runner: TrialRunner, say: Callable[[str], None]
) -> Sweep:
    """A sweep after checking its plan and space.

    Raises:
      LeagueError, ConfigError: one sentence for the user.
    """
    plan.require_valid()
    space = read_space(space_path)
    check_space(space, source=plan.source, overrides=plan.overrides)
    return Sweep(folder, plan, space, runner=runner, say=say)
