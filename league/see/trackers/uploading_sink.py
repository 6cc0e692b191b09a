"""Metrics to a tracker without training ever waiting for it: rows go to a spool on disk, a process uploads them.

The process reads the spool from where it last stopped. It ends with its standard input, which closes with the sink or
the daemon, however that died. It then hands over what is left, and ends at the deadline at the latest.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping

from league.processes.line_worker import LineWorker, LineWorkerFailed
from league.run.monitor.row_spacing import RowSpacing
from league.run.monitor.spool import Spool

CLOSE_DEADLINE_S, LAST_DEADLINE_S = 8.0, 3.0
"""Longest wait for the uploading process at the end, and how much longer it lives where the daemon has died."""

SILENT_AFTER_S, SILENT_DEADLINE_S = 10.0, 3.0
"""A server that was given up, or has not answered so long after the start, is waited for so long at the end."""


class UploadingSink:
    """Spools rows and minds the uploading process; `start` before the first row.

    Args:
      tracker: its name, for people. module: of the process. job: for it, as one line.
      later: sentence on how to upload what is left.
      spool: the rows. warn: takes one sentence. close_deadline_s: longest wait at the end.
    """

    def __init__(
        self,
        tracker: str,
        *,
        module: str,
        job: bytes,
        later: str,
        spool: Spool,
        warn: Callable[[str], None],
        close_deadline_s: float,
    ) -> None:
        self._tracker = tracker
        self._module = module
        self._job = job
        self._later = later
        self._close_deadline_s = close_deadline_s
        self._spool = spool
        self._warn = warn
        self._worker: LineWorker | None = None
        self._begun = time.monotonic()
        self._ready = self._warned = False
        self._notes: set[str] = set()
        self._spacing = RowSpacing()

    @property
    def worker_pid(self) -> int | None:
        """The uploading process, while there is one."""
        return None if self._worker is None else self._worker.pid

    def start(self) -> None:
        """Start the uploading process; returns at once."""
        try:
            self._worker = LineWorker([sys.executable, "-P", "-m", self._module])
            self._worker.send(self._job)
        except LineWorkerFailed as error:
            self._stop_worker()
            self._warn_once(f"the uploading process {error}")

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """As in the protocol: one line on the local disk, less often the longer the run has lasted."""
        if self._spacing.is_due(values):
            self._spool.log(step, values)
        self._read_messages()
        if self._worker is not None and self._worker.has_ended:
            words = self._worker.last_words()
            self._stop_worker()
            self._warn_once(f"the uploading process has ended{words and f' ({words})'}")

    def close(self) -> None:
        """As in the protocol: waits `close_deadline_s` at most, and less for a server that does not answer."""
        self._spool.close()
        self._read_messages()
        worker = self._worker
        if worker is None:
            return
        is_late = not self._ready and time.monotonic() > self._begun + SILENT_AFTER_S
        is_silent = self._warned or is_late
        deadline_s = min(self._close_deadline_s, SILENT_DEADLINE_S) if is_silent else self._close_deadline_s
        has_left = worker.finish(grace_s=deadline_s)
        self._read_messages()
        if not has_left:
            self._warn_once(f"the server took more than {deadline_s:g} s to finish")
        self._stop_worker()

    def _read_messages(self) -> None:
        """Pass on what the worker says: a line `warning TEXT`, `note TEXT`, which are said once, or `ready`."""
        for line in [] if self._worker is None else self._worker.lines():
            kind, _, text = line.decode(errors="replace").partition(" ")
            self._ready |= kind == "ready"
            if kind == "warning":
                self._warn_once(text)
            elif kind == "note" and text not in self._notes:
                self._notes.add(text)
                self._warn(f"{self._tracker}: {text}.")

    def _warn_once(self, reason: str) -> None:
        if not self._warned:
            self._warned = True
            self._warn(f"{self._tracker}: {reason}. Training is not affected; the metrics are kept. {self._later}")

    def _stop_worker(self) -> None:
        """End the process and what it started, and forget it."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.end()
