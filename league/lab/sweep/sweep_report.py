"""The report of a sweep: a table of its trials, the best one, and which settings mattered."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import msgspec

from league.envs.text.number_text import number_text
from league.errors import LeagueError
from league.json_report import JsonReport
from league.lab.sweep.optuna_study import KnownStudy, TrialRow, best_of
from league.lab.sweep.plan import SweepPlan
from league.lab.sweep.space import Space, space_of
from league.lab.trials.trial_folder import PLAN_FILE
from league.store.lock import Holder, is_alive
from league.text_table import TextTable

STUDY_FILE, BEST_FILE, LOCK_FILE = "study.journal", "best.yaml", "sweep.lock"


@dataclass(frozen=True)
class SweepReport(JsonReport):
    """A sweep so far.

    Fields:
      folder: of it. objective: its kind. core_seconds: budget of each trial. rungs: measurements of a trial.
      space: dotted key -> its range or choices. is_live: whether a process works on it.
      best: number of the best trial, None before the first complete one. best_config: file with its whole
        configuration, empty before.
      trials: in their order. importance: dotted key -> its part in the differences; empty for too few trials.
    """

    must_be_finite: ClassVar[bool] = True

    folder: str
    objective: str
    core_seconds: float
    rungs: int
    space: Space
    is_live: bool
    best: int | None
    best_config: str
    trials: tuple[TrialRow, ...]
    importance: dict[str, float]

    def text(self) -> str:
        """For people: the best trials first."""
        keys = list(dict.fromkeys(key for row in self.trials for key in row.values))
        rows = []
        for row in sorted(self.trials, key=_best_first):
            shown = "-" if not row.rungs else f"{row.rungs[-1]:.4f}"
            values = (_text(row.values.get(key)) for key in keys)
            rows.append((row.number, row.state, shown, row.core_seconds, *values))
        lines = TextTable(("trial", "state", self.objective, "core-s", *keys), rows, (1,), ("", "", "", ".1f")).lines()
        if self.importance:
            parts = ", ".join(f"{key} {value:.0%}" for key, value in self.importance.items())
            lines.append(f"what mattered: {parts}")
        if self.best is not None:
            lines.append(f"best: trial {self.best}; its configuration is {self.best_config}")
        return "\n".join(lines)


def read_sweep(folder: Path) -> SweepReport:
    """The sweep in a folder as it stands, which may be at work.

    Raises:
      LeagueError: there is none, or Optuna is not installed.
    """
    try:
        plan = msgspec.json.decode((folder / PLAN_FILE).read_bytes(), type=SweepPlan)
    except (OSError, msgspec.MsgspecError) as error:
        raise LeagueError(f"{folder} holds no sweep: `league sweep --dir {folder}` makes one.") from error
    if not (folder / STUDY_FILE).is_file():
        raise LeagueError(f"{folder} has no trial yet.")
    return report_of(folder, plan, space_of(plan.space, source="space"), KnownStudy(folder / STUDY_FILE))


def report_of(folder: Path, plan: SweepPlan, space: Space, study: KnownStudy) -> SweepReport:
    """The report on a study."""
    rows = study.rows()
    best = best_of(rows)
    return SweepReport(
        folder=str(folder),
        objective=plan.objective.kind,
        core_seconds=plan.core_seconds,
        rungs=plan.rungs,
        space=space,
        is_live=_is_held(folder / LOCK_FILE),
        best=None if best is None else best.number,
        best_config="" if best is None else str(folder / BEST_FILE),
        trials=rows,
        importance=study.importance(),
    )


def _is_held(path: Path) -> bool:
    try:
        return is_alive(msgspec.json.decode(path.read_bytes(), type=Holder))
    except (OSError, msgspec.MsgspecError):
        return False


def _best_first(row: TrialRow) -> tuple[bool, int, float]:
    """Complete trials first, then those that came farthest."""
    return row.state != "complete", -len(row.rungs), -(row.rungs[-1] if row.rungs else 0.0)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{number_text(value, 4)}"
    return "-" if value is None else str(value)
