"""The end of a child process that was killed is waited for, but not for ever."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from league.envs.workers.child_endings import KILLED_S, ending, wait_for_killed


class Stuck(subprocess.Popen):  # type: ignore[type-arg]
    """A process that the kernel cannot end."""

    waits: list[float | None]

    def wait(self, timeout: float | None = None) -> int:
        self.waits = [*getattr(self, "waits", []), timeout]
        if timeout == KILLED_S:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return super().wait(timeout)


def test_a_killed_process_is_reaped() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    process.kill()
    assert wait_for_killed(process)
    assert ending(process.returncode) == "SIGKILL"


def test_one_that_is_stuck_is_left_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    process = Stuck([sys.executable, "-c", ""])
    with caplog.at_level(logging.WARNING):
        assert not wait_for_killed(process)
    assert process.waits == [KILLED_S]
    assert f"process {process.pid} was killed and is not gone" in caplog.text
    process.wait()


@pytest.mark.parametrize(
    ("code", "text"), [(0, "exit code 0"), (3, "exit code 3"), (-11, "SIGSEGV"), (-99, "signal 99")]
)
def test_an_end_in_words(code: int, text: str) -> None:
    assert ending(code) == text
