"""The signals that stop a command are its own: a child made by fork ends by them."""

from __future__ import annotations

import os
import signal
import time

import pytest

from league.processes import stop_signals as module
from league.processes.stop_signals import stop_signals


def test_a_forked_child_does_not_inherit_our_handlers() -> None:
    with stop_signals(lambda number, frame: None):
        child = os.fork()
        if child == 0:
            time.sleep(60)
            os._exit(0)
        os.kill(child, signal.SIGTERM)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM


def test_a_stop_as_a_child_is_forked_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(module, "_ours", {signal.SIGINT})
        module._before_fork()
        os.kill(os.getpid(), signal.SIGINT)
        module._after_fork_in_child()
        os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGINT


def test_children_inherit_no_handler_of_ours_once_an_inner_one_is_gone() -> None:
    with stop_signals(lambda number, frame: None):
        with stop_signals(lambda number, frame: None):
            pass
        child = os.fork()
        if child == 0:
            os._exit(signal.getsignal(signal.SIGTERM) != signal.SIG_DFL)
        assert os.waitpid(child, 0)[1] == 0
