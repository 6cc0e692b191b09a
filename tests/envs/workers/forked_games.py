"""Processes of games for tests that start dozens of them: forked, each begins at once, not after half a second."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from league.envs.workers import process
from tests.forked_python import ForkedPython

MODULE = "league.envs.workers.child"


class ForkedSubprocess:
    """Stands in for `subprocess` where processes of games are started; `started` are all of them."""

    def __init__(self) -> None:
        self.started: list[ForkedPython] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def Popen(self, command: Sequence[str], *, start_new_session: bool, **given: Any) -> ForkedPython:
        """As of `subprocess`, for this one program."""
        assert (list(command[:3]), start_new_session) == ([sys.executable, "-m", MODULE], True)
        self.started.append(ForkedPython(f"from {MODULE} import main; main()", *command[3:], kind="games", **given))
        return self.started[-1]


@pytest.fixture
def forked_games(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ForkedPython]]:
    """Games in child processes are forked; the processes that have been started."""
    forked = ForkedSubprocess()
    with monkeypatch.context() as patched:
        patched.setattr(process, "subprocess", forked)
        yield forked.started
