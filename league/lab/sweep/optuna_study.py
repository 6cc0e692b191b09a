"""The trials of a sweep in Optuna's own storage, a journal file from which a killed sweep continues."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from league.envs.plugins import install_extra
from league.errors import LeagueError
from league.lab.sweep.plan import SweepPlan
from league.lab.sweep.space import Choices, Range, Space

STUDY = "league"
MIN_TRIALS_OF_IMPORTANCE = 20
"""Complete trials below which importances are mostly noise."""


@dataclass(frozen=True)
class TrialRow:
    """One trial.

    Fields:
      number: from 0. state: "running", "complete", "pruned" or "failed".
      values: dotted key -> value; a choice is JSON. rungs: value of the objective after each rung so far.
      core_seconds: trained. detail: one line, or why it failed.
    """

    number: int
    state: str
    values: dict[str, Any]
    rungs: tuple[float, ...]
    core_seconds: float
    detail: str

    @property
    def value(self) -> float | None:
        """Of a complete trial."""
        return self.rungs[-1] if self.state == "complete" and self.rungs else None


class KnownStudy:
    """The trials so far, only read.

    Raises:
      LeagueError: Optuna is not installed.
    """

    def __init__(self, path: Path) -> None:
        self._optuna = _optuna()
        backend = self._optuna.storages.journal.JournalFileBackend(str(path))
        self._storage = self._optuna.storages.JournalStorage(backend)
        self._study = self._opened()

    def _opened(self) -> Any:
        return self._optuna.load_study(storage=self._storage, study_name=STUDY)

    def rows(self) -> tuple[TrialRow, ...]:
        """All trials in their order."""
        names = {"FAIL": "failed", "WAITING": "running"}
        return tuple(
            TrialRow(
                number=found.number,
                state=names.get(found.state.name, found.state.name.lower()),
                values=dict(found.params),
                rungs=tuple(value for _, value in sorted(found.intermediate_values.items())),
                core_seconds=float(found.user_attrs.get("core_seconds", 0.0)),
                detail=str(found.user_attrs.get("detail", "")),
            )
            for found in self._study.get_trials(deepcopy=False)
        )

    def importance(self) -> dict[str, float]:
        """Dotted key -> its part in the differences between trials, the largest first; empty for too few trials.

        Source: Watanabe et al. 2023, PED-ANOVA.
        """
        complete = [row for row in self.rows() if row.state == "complete"]
        if len(complete) < MIN_TRIALS_OF_IMPORTANCE or len({row.value for row in complete}) < 2:
            return {}
        evaluator = self._optuna.importance.PedAnovaImportanceEvaluator()
        found = self._optuna.importance.get_param_importances(self._study, evaluator=evaluator)
        return {key: float(value) for key, value in found.items()}


class OptunaStudy(KnownStudy):
    """Hands out trials and takes their results; safe for several threads.

    Raises:
      LeagueError: Optuna is not installed.
    """

    def __init__(self, path: Path, plan: SweepPlan, space: Space) -> None:
        self._plan = plan
        self._space = space
        self._lock = threading.Lock()
        super().__init__(path)
        optuna = self._optuna
        known = self._study.get_trials(deepcopy=False)
        self._study.sampler = optuna.samplers.TPESampler(seed=plan.seed + len(known), constant_liar=True)
        running = [found for found in known if found.state == optuna.trial.TrialState.RUNNING]
        self._left = [optuna.trial.Trial(self._study, found._trial_id) for found in running]

    def _opened(self) -> Any:
        return self._optuna.create_study(
            storage=self._storage,
            study_name=STUDY,
            direction="maximize",
            load_if_exists=True,
            pruner=self._optuna.pruners.SuccessiveHalvingPruner(
                min_resource=1, reduction_factor=self._plan.reduction, min_early_stopping_rate=0
            ),
        )

    def next_trial(self, num_trials: int) -> Any:
        """A trial that a killed sweep has left, else a new one; None where there are `num_trials`."""
        with self._lock:
            if self._left:
                trial = self._left.pop(0)  # its values stay; one that was killed among them gets the others
            elif len(self._study.get_trials(deepcopy=False)) >= num_trials:
                return None
            else:
                trial = self._study.ask()
            for key, found in self._space.items():
                self._suggest(trial, key, found)
            return trial

    def report(self, trial: Any, rung: int, value: float, *, core_seconds: float, detail: str) -> bool:
        """Note a rung; True where the trial is to end here, as others were better at this rung."""
        with self._lock:
            trial.set_user_attr("core_seconds", core_seconds)
            trial.set_user_attr("detail", detail)
            trial.report(value, self._plan.steps[rung])
            return rung + 1 < self._plan.rungs and bool(trial.should_prune())

    def end(self, trial: Any, *, value: float | None = None, error: str = "") -> None:
        """The trial is complete with a value, has failed with an error, or was pruned."""
        states = self._optuna.trial.TrialState
        with self._lock:
            if error:
                trial.set_user_attr("detail", error)
                self._study.tell(trial, state=states.FAIL)
            elif value is None:
                self._study.tell(trial, state=states.PRUNED)
            else:
                self._study.tell(trial, value)

    def _suggest(self, trial: Any, key: str, found: Range | Choices) -> None:
        if isinstance(found, Choices):
            trial.suggest_categorical(key, list(found.values))
        elif found.is_whole:
            trial.suggest_int(key, int(found.low), int(found.high), log=found.log)
        else:
            trial.suggest_float(key, found.low, found.high, log=found.log)


def _optuna() -> Any:
    try:
        import optuna
    except ImportError as error:
        raise LeagueError(f"a sweep needs Optuna; {install_extra('sweep')}.") from error
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def best_of(rows: Sequence[TrialRow]) -> TrialRow | None:
    """The complete trial with the highest value; None before the first one."""
    complete = [row for row in rows if row.value is not None]
    return max(complete, key=lambda row: (row.value, -row.number), default=None)
