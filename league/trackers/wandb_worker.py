"""The process that reads spooled metrics and hands them to wandb: `python -m league.trackers.wandb_worker`.

It may block, fail or hang as wandb does; no other process waits for it. When its standard input ends it has a few
seconds left.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path

import msgspec

from league.monitor.spool import SpoolReader
from league.store.storage import Storage
from league.trackers.wandb_job import WandbJob
from league.trackers.wandb_runs import WandbRuns, keep_files_in

POLL_INTERVAL_S = 1.0
LAST_DEADLINE_S = 8.0
"""Longer than the sink's own, so that it decides first; counts where the daemon has died."""


def say(kind: str, text: str) -> None:
    """One line to the sink; it need not be there any more."""
    try:
        print(kind, " ".join(text.split())[:500], flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  no later print may fail either


def upload(runs: WandbRuns, reader: SpoolReader, stop: threading.Event) -> None:
    """Hand rows over until `stop` is set and the spool is read to its end."""
    while True:
        stopping = stop.is_set()  # before the read: rows written before the stop are all seen
        rows = reader.rows()
        for step, time, values in rows:
            runs.log(step, time, values)
        if rows:
            reader.keep_place()
        elif stopping:
            return
        else:
            stop.wait(POLL_INTERVAL_S)


def watch_lifeline(stop: threading.Event) -> None:
    """Set `stop` when standard input ends; end this process and its children if that does not help in time."""
    while os.read(0, 4096):
        pass
    stop.set()
    threading.Event().wait(LAST_DEADLINE_S)
    os.killpg(0, signal.SIGKILL)


def main() -> int:
    """Serve one job."""
    os.nice(10)
    job = msgspec.json.decode(read_line(0), type=WandbJob)
    stop = threading.Event()
    threading.Thread(target=watch_lifeline, args=(stop,), daemon=True).start()
    try:
        keep_files_in(Path(job.run_path))
        import wandb

        runs = WandbRuns(wandb, job, say=say, roles=lambda player: "")
        say("folder", str(Path(runs.league.dir).parent))
        upload(runs, SpoolReader(Path(job.spool), storage=Storage()), stop)
        runs.finish()
    except Exception as error:  # process boundary: the text may quote a key, so only the kind of error is reported
        say("warning", f"the tracker failed ({type(error).__name__})")
        return 1
    return 0


def read_line(descriptor: int) -> bytes:
    """One line, without reading a byte beyond it."""
    line = bytearray()
    while (byte := os.read(descriptor, 1)) not in (b"", b"\n"):
        line += byte
    return bytes(line)


if __name__ == "__main__":
    sys.exit(main())
