"""Runs a training command to its end for a benchmark, and always ends its process."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from league.processes.child_process import end_with_parent
from league.run.launch import has_spent_its_budget
from league.store.run_folder import RunFolder

STOP_S = 60.0
"""Time that a run has to leave in an orderly way."""


class RunFailed(SystemExit):
    """A command that did not end in time or in order. reason: which of both; the text also has the end of its log."""

    def __init__(self, text: str, *, reason: str = "") -> None:  # by its text alone it comes back from a process
        super().__init__(text)
        self.reason = reason

    @classmethod
    def of(cls, command: Sequence[str], *, reason: str, log: Path) -> RunFailed:
        """The failure of a command whose output lies at the end of `log`."""
        tail = log.read_text(errors="replace").splitlines()[-20:]
        return cls("\n".join([f"`{' '.join(command)}` {reason}:", *tail]), reason=reason)


def run_to_end(command: Sequence[str], *, log: Path, timeout_s: float) -> None:
    """Run a command in a process group of its own, its output at the end of `log`. Killed, we take it along in order.

    Raises:
      RunFailed: it did not end in time or left with another code than 0.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=functools.partial(end_with_parent, signal.SIGTERM),  # noqa: PLW1509  it calls one system call
        )
        try:
            code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _stop(process)
    if code != 0:
        raise RunFailed.of(command, reason="did not end in time" if code is None else f"left with code {code}", log=log)


def spend_budget(command: Sequence[str], *, run_dir: Path, log: Path, timeout_s: float) -> None:
    """Run a command that trains or resumes the run in `run_dir` until its budget is used up.

    Raises:
      RunFailed: as in `run_to_end`.
      SystemExit: somebody stopped the run before that.
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
