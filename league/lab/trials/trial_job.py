"""The job of a trial's process, up to one rung, and its result; both are files of JSON in the folder of the sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import msgspec

from league.lab.trials.objective import TrialObjective


class TrialJob(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Train a trial up to a rung, and measure it.

    Fields:
      run: its run folder, begun at the first rung. rung: counted from 0.
      source, overrides: its configuration. core_seconds: its whole budget; until: training by the end of this rung.
      objective: the measure. seed: of its games.
      result: file for the result.
    """

    run: str
    rung: int
    source: str
    overrides: tuple[str, ...]
    core_seconds: float
    until: float
    objective: TrialObjective
    seed: int
    result: str


class TrialResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The outcome of a job.

    Fields:
      value: of the objective; more is better. core_seconds: trained so far, in all rungs.
      detail: one line for people. error: a sentence where it failed, else empty.
      is_interrupted: whether it was stopped from outside; the next start continues it.
    """

    value: float = 0.0
    core_seconds: float = 0.0
    detail: str = ""
    error: str = ""
    is_interrupted: bool = False


class TrialRunner(Protocol):
    """Carries out a job: in a process of its own, or in a test."""

    def run(self, job: TrialJob) -> TrialResult:
        """Train and measure; waits for the end."""
        ...


def read_result(path: Path) -> TrialResult | None:
    """The result of a job that was carried out; None where there is none, or the file is torn."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrialResult)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None
