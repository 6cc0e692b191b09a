"""The alert sink that runs a command for each news, with the news as JSON on its standard input."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import msgspec

from league.envs.workers.child_endings import wait_for_killed
from league.processes.child_process import end_group
from league.run.alerts.sink import AlertContext, AlertNews, AlertSinkFailed


@dataclass(frozen=True)
class CommandOptions:
    """Options: argv is the program and its arguments, without a shell; deadline_s when it is killed."""

    argv: tuple[str, ...]
    deadline_s: float = 10.0

    def problems(self) -> Iterator[str]:
        if not self.argv or not self.argv[0]:
            yield "argv: give a program and its arguments, as [notify-send, league]"
        if not 0.0 < self.deadline_s <= 600.0:
            yield f"deadline_s: {self.deadline_s} must be above 0 and at most 600"


class CommandSink:
    """The command has a session of its own, so that it is killed with all that it started."""

    def __init__(self, context: AlertContext, options: CommandOptions) -> None:
        del context
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    def deliver(self, news: AlertNews) -> None:
        program = self._options.argv[0]
        try:
            process = self._process = subprocess.Popen(
                self._options.argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            raise AlertSinkFailed(f"{program} cannot be started ({error.strerror})") from error
        try:
            process.communicate(msgspec.json.encode(asdict(news)) + b"\n", timeout=self._options.deadline_s)
        except subprocess.TimeoutExpired as error:
            slow = f"{program} took longer than {self._options.deadline_s:g} s and was killed"
            raise AlertSinkFailed(slow) from error
        finally:
            self.close()
            self._process = None
            assert process.stdin is not None
            with contextlib.suppress(OSError):  # what it did not read
                process.stdin.close()
        if process.returncode:
            raise AlertSinkFailed(f"{program} ended with exit code {process.returncode}")

    def close(self) -> None:
        process = self._process
        if process is not None and process.poll() is None:
            end_group(process.pid)
            wait_for_killed(process)
