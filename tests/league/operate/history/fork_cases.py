"""Sources of forks and their files, for the tests of forks."""

from __future__ import annotations

from pathlib import Path

from tests.league.tiny_runs import (
    ONE_PLAYER,
    start,
    tiny,
)


def contents(path: Path) -> dict[str, bytes]:
    """Every file of a run but those that reading sqlite touches."""
    return {
        found.relative_to(path).as_posix(): found.read_bytes()
        for found in sorted(path.rglob("*"))
        if found.is_file() and not found.name.startswith("journal.db-")
    }


def small_source(folder: Path) -> Path:
    """A run with few files, so that there are few points to die at."""
    start(folder, tiny(league=ONE_PLAYER), env_steps=150)
    return folder / "run"
