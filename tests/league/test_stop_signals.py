"""The signals that stop a command are its own: a child made by fork ends by them."""

from __future__ import annotations

import os
import signal
import time

from league.processes.stop_signals import stop_signals


def test_a_forked_child_does_not_inherit_our_handlers() -> None:
    with stop_signals(lambda number, frame: None):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        os.kill(child, signal.SIGTERM)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM
