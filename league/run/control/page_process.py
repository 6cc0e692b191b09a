"""The process that serves the web page beside a daemon, for as long as the daemon trains."""

from __future__ import annotations

import contextlib
import functools
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

from league.envs.workers.child_endings import wait_for_killed
from league.higher_wings import PAGE
from league.processes.child_process import end_with_parent
from league.store.run_folder import RunFolder

STOP_S = 5.0


@contextlib.contextmanager
def page_process(folder: RunFolder, *, say: Callable[[str], object]) -> Iterator[None]:
    """Serve the page of a run for as long as the block takes. Training continues without it where it fails."""
    try:
        with (folder.logs_path / "page.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", PAGE, str(folder.path)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=functools.partial(end_with_parent, signal.SIGTERM),  # noqa: PLW1509  it calls one system call
            )
    except OSError as error:
        say(f"The page cannot be served ({error.strerror}): training continues without it.")
        yield
        return
    say(f"The page of this run is served: `league serve {folder.path}` prints its address.")
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            wait_for_killed(process)
