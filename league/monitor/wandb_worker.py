"""The process that reads spooled metrics and hands them to wandb: `python -m league.monitor.wandb_worker`.

It may block, fail or hang as wandb does; no other process waits for it. When its standard input ends it has a few
seconds left.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from league.monitor.names import BEST_RATING, ENV_STEPS
from league.monitor.spool import SpoolReader
from league.monitor.wandb_job import WandbJob
from league.store.storage import Storage

INIT_TIMEOUT_S = 20.0
POLL_INTERVAL_S = 1.0
LAST_DEADLINE_S = 8.0
"""Longer than the sink's own, so that it decides first; counts where the daemon has died."""


def say(kind: str, text: str) -> None:
    """One line to the sink; it need not be there any more."""
    try:
        print(kind, " ".join(text.split())[:500], flush=True)
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115  no later print may fail either


def init_run(wandb: Any, job: WandbJob) -> Any:
    """Open the run, offline where the server cannot be had."""
    modes = [job.mode] if job.mode == "offline" else [job.mode, "offline"]
    for mode in modes:
        settings = wandb.Settings(
            silent=True,
            console="off",
            init_timeout=INIT_TIMEOUT_S,
            disable_git=True,
            disable_code=True,
            x_disable_stats=True,
            x_save_requirements=False,
        )
        try:
            run = wandb.init(
                dir=job.run_path,
                project=job.project,
                entity=job.entity or None,
                group=job.group,
                job_type="manager",
                id=job.run_id,
                name=job.run_id,
                resume="allow" if mode == "online" else None,  # offline there is nothing to ask; the id is enough
                mode=mode,
                config=job.config,
                settings=settings,
            )
        except Exception as error:  # process boundary: whatever wandb raises must end as a sentence
            if mode == modes[-1]:
                raise
            say("warning", f"the server could not be reached ({type(error).__name__})")
            wandb.teardown(exit_code=1)  # else its service keeps trying and refuses the run's id
            continue
        run.define_metric(ENV_STEPS.name)
        run.define_metric("*", step_metric=ENV_STEPS.name)
        run.define_metric(BEST_RATING.name, step_metric=ENV_STEPS.name, summary=BEST_RATING.best)
        return run
    raise AssertionError("the last mode returned or raised")


def upload(run: Any, reader: SpoolReader, stop: threading.Event) -> None:
    """Hand rows over until `stop` is set and the spool is read to its end."""
    while True:
        stopping = stop.is_set()  # before the read: rows written before the stop are all seen
        rows = reader.rows()
        for step, time, values in rows:
            run.log({**values, ENV_STEPS.name: step, "_timestamp": time})
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
        import wandb

        run = init_run(wandb, job)
        say("folder", str(Path(run.dir).parent))
        upload(run, SpoolReader(Path(job.spool), storage=Storage()), stop)
        run.finish()
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
