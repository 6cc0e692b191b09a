"""Runs a training command to its end for a benchmark, and always ends its process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from league.run.launch import has_spent_its_budget
from league.store.run_folder import RunFolder

STOP_S = 60.0
"""Time that a run has to leave in an orderly way."""


def run_to_end(command: Sequence[str], *, log: Path, timeout_s: float) -> None:
    """Run a command in a process group of its own, its output at the end of `log`.

    Raises:
      SystemExit: it did not end in time or left with another code than 0; the end of its log is in the message.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _stop(process)
    if code != 0:
        tail = log.read_text(errors="replace").splitlines()[-20:]
        reason = "did not end in time" if code is None else f"left with code {code}"
        raise SystemExit("\n".join([f"`{' '.join(command)}` {reason}:", *tail]))


def spend_budget(command: Sequence[str], *, run_dir: Path, log: Path, timeout_s: float) -> None:
    """Run a command that trains or resumes the run in `run_dir` until its budget is used up.

    Raises:
      SystemExit: as `run_to_end`, or somebody stopped the run before that.
    """
    run_to_end(command, log=log, timeout_s=timeout_s)
    if not has_spent_its_budget(RunFolder.open(run_dir)):
        raise SystemExit(f"{run_dir} was stopped before the end of its budget: run the same command again.")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a run that is still going: in an orderly way, then with force."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(STOP_S)
