"""Carries out trials in processes of their own, each with a log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from league.lab.trials.trial_job import TrialJob, TrialResult, read_result


class ProcessRunner:
    """One process for each rung of a trial. A result that is there already is taken, and nothing is done again.

    Args:
      logs: folder of the logs; it is there.
    """

    def __init__(self, logs: Path) -> None:
        self._logs = logs

    def run(self, job: TrialJob) -> TrialResult:
        found = read_result(Path(job.result))
        if found is not None:
            return found
        log = self._logs / f"{Path(job.run).name}.log"
        with log.open("ab") as output:
            done = subprocess.run(
                [sys.executable, "-P", "-m", "league.lab.trials.trial_process"],
                input=msgspec.json.encode(job),
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
                check=False,
            )
        found = read_result(Path(job.result))
        if found is not None:
            return found
        if done.returncode in (0, -2, -15):
            return TrialResult(is_interrupted=True)
        return TrialResult(error=f"its process ended with code {done.returncode}; see {log}")
