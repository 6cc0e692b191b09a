"""The errors that a user or operator can mend: each says in one sentence what is wrong, where, and what to do.

The command line prints the sentence alone and leaves with `exit_code`; anything that is not a `LeagueError` is our bug
and keeps its traceback.
"""

# ruff: noqa: N818  (the names say what happened; `LeagueError` is the suffix of them all)

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from pathlib import Path

from league.wording import counted

USER_ERROR = 2
"""Exit code of a command that cannot do what was asked; the sentence says what to mend."""
PREEMPTED = 75
"""Exit code of a training command that a signal stopped before its run had spent its budget (EX_TEMPFAIL of sysexits.h,
"try again later"): everything is saved, and `league resume` continues."""


class LeagueError(Exception):
    """Root of the tree; `str(error)` is a full sentence for the user."""

    exit_code = USER_ERROR


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a sentence on an unknown name: the known ones that look like it, if any."""
    near = difflib.get_close_matches(name, list(known), n=3, cutoff=0.5)
    return f"; did you mean {' or '.join(near)}?" if near else "."


class ConfigError(LeagueError):
    """A configuration cannot be used. `problems` holds every problem found, one sentence each."""

    def __init__(self, source: str, problems: Sequence[str]) -> None:
        self.source = source
        self.problems = tuple(problems)
        count = counted(len(self.problems), "problem")
        super().__init__("\n".join([f"{source}: {count}", *(f"  - {problem}" for problem in self.problems)]))


class InvalidName(LeagueError):
    """A name of a run, player or project is not of the allowed form."""


class StorageError(LeagueError):
    """The operating system refused a file operation: nothing was saved, what was there before is intact."""


class DiskFull(StorageError):
    """No space (or quota) left for a write; the old file is intact and the write may be tried again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(
            f"The disk that holds {path} is full: nothing was overwritten. "
            "Free some space there, then give the command again; `league resume` continues a run that ended by it."
        )


class MissingRun(LeagueError):
    """A path is not a run folder."""


class RunExists(LeagueError):
    """A new run would be written over another one."""


class RunInUse(LeagueError):
    """Another live process works on the run folder."""

    def __init__(self, path: Path, *, pid: int | None, host: str | None) -> None:
        self.path = path
        self.pid = pid
        self.host = host
        who = "another process" if pid is None else f"process {pid} on host {host}"
        super().__init__(
            f"{path} is in use by {who}. Stop it first (`league down {path}`), or choose another --run-dir."
        )


class JournalError(LeagueError):
    """The journal is missing, damaged, or of another version; it never starts from scratch by itself."""


class MissingSnapshot(LeagueError):
    """No snapshot or checkpoint of that digest is in the store."""


class CorruptSnapshot(LeagueError):
    """A stored snapshot or checkpoint is not what was written."""

    def __init__(self, path: Path, reason: str) -> None:
        self.path = path
        self.reason = reason
        super().__init__(
            f"{path} is corrupt: {reason}. "
            "Restore the file from a copy; `league resume` continues without it as long as it is damaged."
        )


class LearningFailed(LeagueError):
    """A learner in this process cannot learn on. player: whose it is; reason: half a sentence without a stop."""

    def __init__(self, player: str, reason: str) -> None:
        self.player = player
        super().__init__(f"{player} cannot learn on: {reason}.")


class RayUnguarded(LeagueError):
    """A Ray takes commands from more than those who may give them."""


class RayHeadLost(LeagueError):
    """The control store of a run's own Ray has ended; the hosts answer for about a minute longer."""

    def __init__(self) -> None:
        super().__init__(
            "Ray's control store has ended, and no host can be started any more. `league resume RUN` starts another "
            "Ray and continues; a run of `league up` does so by itself."
        )


class RayUnreachable(LeagueError):
    """No Ray cluster answers at the configured address."""

    def __init__(self, address: str, reason: str) -> None:
        self.address = address
        super().__init__(
            f"No Ray cluster answers at {address} ({reason}). Start one with `ray start --head`, set "
            "RAY_AUTH_MODE and the token as that cluster has them, or use `runtime.address: local`."
        )
