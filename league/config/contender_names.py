"""Contenders as a configuration writes them, told apart without loading any: `uci:stockfish`, `RUN:NAME`, `random`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from envs.bots import is_own_bot
from league.core.state.records import bot_name

PROGRAMS = ("uci", "gtp")
ADDRESSES = ("http", "unix")
"""Kinds, the word before the first colon, of contenders that are programs, and that are served elsewhere."""


def kind_before_colon(written: str) -> str:
    """The word before the first colon; empty without one."""
    kind, colon, _ = written.partition(":")
    return kind if colon else ""


def is_folder(written: str) -> bool:
    """True for FOLDER and FOLDER:NAME; a bot of the user's own is `module:attribute` or `path/file.py:attribute`."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES, "bot") or written.partition(":")[0].endswith(".py"):
        return False
    folder, colon, _ = written.rpartition(":")
    return Path(written).is_dir() or (bool(colon) and ("/" in folder or Path(folder).is_dir()))


def runs_outside_code(written: str) -> bool:
    """True if it starts a program, loads a bot of the user's own, or sends what a file holds to an address."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES):
        return True
    return not is_folder(written) and is_own_bot(bot_name(written))


def with_absolute_folder(written: str, starts: Iterable[Path]) -> str:
    """FOLDER or FOLDER:NAME with the absolute path of the folder in the first start that has it; else as it is."""
    if kind_before_colon(written) in (*PROGRAMS, *ADDRESSES, "bot"):
        return written
    folder, colon, name = written.rpartition(":")
    for start in starts:
        if (start / written).is_dir():
            return str((start / written).absolute())
        if colon and folder and (start / folder).is_dir():
            return f"{(start / folder).absolute()}:{name}"
    return written
