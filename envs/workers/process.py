"""The parent's end of a games' process: starts it, waits for it with deadlines, says how it failed, and ends it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import Any

from league.envs.guard.settings import current_folder
from league.envs.protocol import EnvError, EnvSpec
from league.envs.workers.channel import END, ERROR, MADE, MAKE, SEND_S, Channel, ChannelClosed, ChannelSilent
from league.envs.workers.child_endings import ending, wait_for_killed
from league.envs.workers.shared_turn import SharedTurn, block_size
from league.envs.workers.spec_text import spec_from_text

LOOK_S = 0.25
"""Time between two looks at a process that has not answered."""

LEAVE_S = 2.0
"""Time that a process has to close its games before it is killed."""

START_S = 60.0
"""Time that the interpreter and its imports take at most, beside the games."""

ROOM = 0.9
"""Part of its memory that a process may take when its games have just been put into it."""

TRACE_BYTES = 1 << 16
MIB = 1 << 20
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")


class Stopped(Exception):  # noqa: N818 - the state of a process
    """A process died, hung or grew too large, and is gone. reason: a clause; traceback: of its code, or empty."""

    def __init__(self, reason: str, traceback: str) -> None:
        super().__init__(reason)
        self.reason, self.traceback = reason, traceback


@dataclass(frozen=True)
class ProcessDeadlines:
    """Limits of one process.

    Fields:
      reset_s: for one reset of one game, and for making it. step_s: for one step of one game.
      memory_mib: resident memory.
    """

    reset_s: float
    step_s: float
    memory_mib: int


class GamesProcess:
    """One process with a share of the games.

    Args:
      config: plain `EnvConfig` for the process. num_games: n. first: number of its first game.
    """

    def __init__(self, config: Mapping[str, Any], *, num_games: int, first: int, deadlines: ProcessDeadlines) -> None:
        self._config = config
        self.num_games, self.first = num_games, first
        self._deadlines = deadlines
        self._memory = _unnamed_file("games")
        self._trace = _unnamed_file("trace")
        self._shared: SharedTurn | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel | None = None
        self._life = -1
        self._next_look = 0.0

    @property
    def shared(self) -> SharedTurn:
        """The memory shared with the process."""
        assert self._shared is not None, "its spec is not known yet"
        return self._shared

    @property
    def is_running(self) -> bool:
        """True between `start` and the end of the process, as far as is known."""
        return self._process is not None

    def start(self) -> None:
        """Start a process and let it make its games; `spec` waits for the end of that."""
        ours, theirs = socket.socketpair()
        life, self._life = os.pipe()
        ours.settimeout(SEND_S)
        numbers = (theirs.fileno(), life, self._memory, self._trace)
        paths = os.pathsep.join(path or current_folder() for path in sys.path)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "league.envs.workers.child", *map(str, numbers)],
                pass_fds=numbers,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**os.environ, **dict.fromkeys(THREADS, "1"), "PYTHONPATH": paths},
            )
        finally:
            theirs.close()
            os.close(life)
        self._channel = Channel(ours)
        self.send(MAKE, {"config": self._config, "num_games": self.num_games, "first": self.first})

    def spec(self) -> EnvSpec:
        """The spec of the games, once they are made.

        Raises:
          Stopped: see there. EnvError: the games cannot be made.
        """
        limit_s = START_S + self.num_games * self._deadlines.reset_s
        kind, payload = self.wait(limit_s, what=f"made its games after {limit_s:g} s")
        if kind != MADE:
            raise EnvError(payload)
        return spec_from_text(payload)

    def attach(self, spec: EnvSpec) -> None:
        """Give the shared memory its size."""
        if self._shared is None:
            size = block_size(spec, self.num_games)
            os.ftruncate(self._memory, size)
            self._shared = SharedTurn(spec, self.num_games, mmap(self._memory, size))

    def send(self, kind: bytes, payload: object = None) -> None:
        """Ask for something; a process that is gone is noticed by `answer`."""
        assert self._channel is not None, "not started"
        with contextlib.suppress(ChannelClosed, ChannelSilent):
            self._channel.send(kind, payload)

    def answer(self) -> Any:
        """Wait until the turn is in shared memory; returns the failures that came with it.

        Raises:
          Stopped: the process died, one call of a game took too long, or it grew too large.
          EnvError: the env raised.
        """
        place, call, since = self.shared.place, -1, 0.0
        while True:
            with contextlib.suppress(ChannelSilent):
                kind, payload = self._receive(LOOK_S)
                if kind == ERROR:
                    raise EnvError(payload)
                return payload
            self.check_memory()
            now = time.monotonic()
            if place[0] != call:
                call, since = int(place[0]), now
            limit, name = (self._deadlines.step_s, "step") if place[3] else (self._deadlines.reset_s, "reset")
            if now - since > limit:
                raise self._end(f"did not come back within env.{name}_deadline_s ({limit:g} s)", dump=True)

    def wait(self, timeout_s: float, *, what: str) -> tuple[bytes, Any]:
        """The next frame. what: what it had to do by then, "made its games".

        Raises:
          Stopped: see there.
        """
        until = time.monotonic() + timeout_s
        while time.monotonic() < until:
            with contextlib.suppress(ChannelSilent):
                return self._receive(LOOK_S)
            self.check_memory()
        raise self._end(f"had not {what}", dump=True)

    def written(self, num_bytes: int) -> bytes:
        """The bytes that the process wrote into its memory, in place of turns."""
        return os.pread(self._memory, num_bytes, 0)

    def memory_mib(self) -> float:
        """Resident memory; 0 where it cannot be read."""
        assert self._process is not None
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        except (OSError, IndexError, ValueError):
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / MIB

    def is_too_large(self, *, now: float) -> bool:
        """True if it has grown too large; looks once in a second."""
        if now < self._next_look:
            return False
        self._next_look = now + 1.0
        return self.memory_mib() > self._deadlines.memory_mib

    def check_memory(self) -> None:
        """Raises Stopped if the process has grown too large."""
        taken = self.memory_mib()
        if taken > self._deadlines.memory_mib:
            raise self._end(
                f"took {taken:,.0f} MiB, env.worker_memory_mib is {self._deadlines.memory_mib:,}", dump=True
            )

    def check_room(self) -> None:
        """Raises EnvError if the process is close to its limit just after its start, as it would be again and again."""
        taken, limit = self.memory_mib(), self._deadlines.memory_mib
        if taken > ROOM * limit:
            raise EnvError(
                f"{self._config['id']}: {self.num_games} games take {taken:,.0f} MiB in a new process, and"
                f" env.worker_memory_mib is {limit:,}; raise it, or play fewer games"
            )

    def kill(self) -> None:
        """End the process and all that it started, at once; may be called twice."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            wait_for_killed(self._process)
            self._process = None
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def leave(self) -> None:
        """Ask the process to close its games and leave; `close` waits for it."""
        if self._channel is not None:
            self.send(END)

    def close(self) -> None:
        """Wait a moment for the process to leave, then end it; may be called twice."""
        if self._process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=LEAVE_S)
        self._release()

    def __del__(self) -> None:
        if self._memory >= 0:
            self._release()

    def _release(self) -> None:
        """End the process, and give the memory back."""
        self.kill()
        for file in (self._memory, self._trace):
            if file >= 0:
                os.close(file)
        self._memory = self._trace = -1

    def _receive(self, timeout_s: float) -> tuple[bytes, Any]:
        assert self._channel is not None, "not started"
        try:
            return self._channel.receive(timeout_s=timeout_s)
        except ChannelClosed:
            raise self._end("ended its process") from None
        except ValueError as error:
            raise self._end(f"wrote to the pipe of its process: {error}") from error

    def _end(self, reason: str, *, dump: bool = False) -> Stopped:
        """End the process; returns the exception that says why, with the traceback of its code."""
        assert self._process is not None
        if dump:
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(signal.SIGUSR2)
            time.sleep(LOOK_S)
        else:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = self._process.wait(timeout=LEAVE_S)
                reason = f"{reason} ({ending(code)})"
        self.kill()
        trace = os.pread(self._trace, TRACE_BYTES, 0).decode(errors="replace")
        os.ftruncate(self._trace, 0)
        return Stopped(reason, trace)


def _unnamed_file(name: str) -> int:
    """A file in memory without a name anywhere, so that nothing of it outlives the processes that hold it."""
    return os.memfd_create(f"league-{name}")
