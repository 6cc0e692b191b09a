"""Error handling of the `league` command: a user error prints one sentence and exits with code 2."""

from __future__ import annotations

import errno
import functools
import gc
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import typer

from league.envs.guard.witness import witness
from league.errors import USER_ERROR, LeagueError
from league.hosts.call_watch import watched_calls
from league.run.monitor.first_output import FirstOutput

# Of the library below typer, which lies in another package from version to version.
USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
NO_COMMAND = "NoArgsIsHelpError"
COLLECT_AFTER = 50_000
"""New objects after which Python looks for garbage; at its own 700 a fifth of the time of our imports goes there."""


def run_command(app: typer.Typer) -> NoReturn:
    """Run the command of this process's arguments and leave with its exit code."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch loads: more threads than cores cost a factor of ten
    gc.set_threshold(COLLECT_AFTER, 10, 10)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name that the terminal cannot show is no reason to fail
            stream.reconfigure(errors="backslashreplace")
    if not _has_folder():
        _leave("the current folder has been removed: go to another one and give the command again.", USER_ERROR)
    try:
        with FirstOutput(" ".join(sys.argv[1:2])), watched_calls(_say), witness.watching():
            code = _command_of(app)(prog_name="league", standalone_mode=False)
    except _errors_of_one_sentence() as error:
        _leave(str(error), error.exit_code if isinstance(error, LeagueError) else USER_ERROR)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a file that the user named; of ours the stores raise errors of their own
        if error.filename is not None:
            _leave(f"{os.fsdecode(error.filename)}: {error.strerror}.", USER_ERROR)
        if error.errno == errno.ENOSPC:  # of a write, which names no file
            _leave(f"what this command writes could not be saved: {error.strerror}.", USER_ERROR)
        raise
    except typer.Abort:
        _leave("nothing more was done.", 1)
    except USAGE_ERROR as error:
        _leave_with_usage(error)
    sys.exit(code if isinstance(code, int) else 0)


def _has_folder() -> bool:
    """True if there still is a current folder: without one relative paths mean nothing, and libraries fail to load."""
    try:
        return bool(Path.cwd())
    except OSError:
        return False


@functools.cache
def _command_of(app: typer.Typer) -> Any:
    """The tree of commands, which takes a tenth of a second to build: made once in a process."""
    return typer.main.get_command(app)


def _errors_of_one_sentence() -> tuple[type[Exception], ...]:
    """The errors whose text is all that a user needs; asked for once one is raised, for the second brings numpy."""
    from league.envs.protocol import EnvError

    return LeagueError, EnvError


def _say(sentence: str) -> None:
    typer.echo(f"league: {sentence}", err=True)


def _leave(sentence: str, code: int) -> NoReturn:
    _say(sentence)
    sys.exit(code)


def _leave_with_usage(error: Any) -> NoReturn:
    """A mistake in the arguments: what is wrong, and where the right ones are listed; the help where there are none."""
    if type(error).__name__ == NO_COMMAND:
        error.show()
        sys.exit(USER_ERROR)
    where = "league" if error.ctx is None else error.ctx.command_path
    _leave(f"{' '.join(error.format_message().split()).rstrip('.')}. See `{where} --help`.", USER_ERROR)
