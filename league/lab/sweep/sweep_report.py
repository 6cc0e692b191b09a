"""The report of a sweep: a table of its trials, the best one, and which settings mattered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from league.json_report import JsonReport
from league.lab.sweep.study import TrialRow
from league.wording import number_text


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
        widths = [max(12, len(key)) for key in keys]
        head = " ".join(f"{key:>{width}}" for key, width in zip(keys, widths, strict=True))
        lines = [f"{'trial':>5}  {'state':<8}  {self.objective:>10}  {'core-s':>7}  {head}"]
        for row in sorted(self.trials, key=_best_first):
            shown = "-" if not row.rungs else f"{row.rungs[-1]:.4f}"
            pairs = zip(keys, widths, strict=True)
            values = " ".join(f"{_text(row.values.get(key)):>{width}}" for key, width in pairs)
            lines.append(f"{row.number:>5}  {row.state:<8}  {shown:>10}  {row.core_seconds:>7.1f}  {values}")
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
