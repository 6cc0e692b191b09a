"""The report of a sweep: a table of its trials, the best one, and which settings mattered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from league.envs.text.number_text import number_text
from league.json_report import JsonReport
from league.lab.sweep.optuna_study import TrialRow
from league.text_table import TextTable


@dataclass(frozen=True)
class SweepReport(JsonReport):
    """A finished sweep.

    Fields:
      folder: of it. objective: its kind. core_seconds: budget of each trial.
      best: number of the best trial. best_config: file with its whole configuration.
      trials: in their order. importance: dotted key -> its part in the differences; empty for too few trials.
    """

    must_be_finite: ClassVar[bool] = True

    folder: str
    objective: str
    core_seconds: float
    best: int
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
        lines.append(f"best: trial {self.best}; its configuration is {self.best_config}")
        return "\n".join(lines)


def _best_first(row: TrialRow) -> tuple[bool, int, float]:
    """Complete trials first, then those that came farthest."""
    return row.state != "complete", -len(row.rungs), -(row.rungs[-1] if row.rungs else 0.0)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{number_text(value, 4)}"
    return "-" if value is None else str(value)
