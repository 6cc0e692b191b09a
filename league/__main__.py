"""The `league` command, also as `python -m league`. A Ctrl-C while it loads ends it without a word."""

from __future__ import annotations

import os
import signal
from typing import NoReturn

INTERRUPTED = 130
"""Exit code of a command that a Ctrl-C ends, as shells give it."""


def main() -> NoReturn:
    """Load the command, then run it; until it has loaded there is nothing to put in order."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:  # as of what a shell starts in the background
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    from league.cli.main import main as run

    signal.signal(signal.SIGINT, before)
    run()


if __name__ == "__main__":
    main()
