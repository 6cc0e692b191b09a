"""Contenders as a configuration writes them, told apart without loading any: `uci:stockfish`, `RUN:NAME`, `random`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from league.core.state.records import bot_name
from league.envs.bots import is_own_bot

PROGRAMS = ("uci", "gtp")
ADDRESSES = ("http", "unix")
"""Kinds, the word before the first colon, of contenders that are programs, and that are served elsewhere."""
FROM = ":"
"""Between a folder and the name of a policy in it."""


def split_source(text: str, *, start: Path = Path()) -> tuple[Path, str]:
    """The folder of FOLDER or FOLDER:NAME, and the name of a policy in it; an empty name where none is given.

    The last colon separates them. It belongs to the folder where the whole text exists, where nothing follows, or where
    a slash follows, as in C:/runs/first. The folder before it may be empty, for `start` itself.

    Args:
      start: folder against which a relative one is read; "~" is the user's home.
    """
    whole = start / Path(text).expanduser()
    folder, _, name = text.rpartition(FROM)
    if FROM not in text or not name or "/" in name or "\\" in name or whole.exists():
        return whole, ""
    return start / Path(folder).expanduser(), name


def kind_before_colon(written: str) -> str:
    """The word before the first colon; empty without one."""
    kind, colon, _ = written.partition(":")
    return kind if colon else ""


def is_folder(written: str) -> bool:
    """True for FOLDER and FOLDER:NAME; a bot of the user's own is `module:attribute` or `path/file.py:attribute`."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES, "bot") or written.partition(":")[0].endswith(".py"):
        return False
    folder, _ = split_source(written)
    return folder.is_dir() or (FROM in written and "/" in str(folder))


def runs_outside_code(written: str) -> bool:
    """True if it starts a program, loads a bot of the user's own, or sends what a file holds to an address."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES):
        return True
    return not is_folder(written) and is_own_bot(bot_name(written))


def with_absolute_folder(written: str, starts: Iterable[Path]) -> str:
    """FOLDER or FOLDER:NAME with the absolute path of the folder in the first start that has it; else as it is."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES, "bot"):
        return written
    for start in starts:
        folder, name = split_source(written, start=start)
        if folder.is_dir():
            return f"{folder.absolute()}{FROM}{name}" if name else str(folder.absolute())
    return written
