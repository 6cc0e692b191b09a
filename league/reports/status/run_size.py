"""Disk usage of a run, and amounts formatted for people."""

from __future__ import annotations

import os
from pathlib import Path

BLOCK_BYTES = 512  # what st_blocks counts in, whatever the file system
_TIMES = ((86_400.0, "d"), (3_600.0, "h"), (60.0, "min"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def disk_bytes(folder: Path) -> int:
    """Bytes that the files below a folder take; those that go meanwhile count nothing, links are not followed."""
    total, waiting = 0, [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(Path(entry.path))
                    else:
                        total += _taken(entry)
        except OSError:  # gone since it was listed, or not to be read
            continue
    return total


def _taken(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * BLOCK_BYTES
    except FileNotFoundError:
        return 0


def duration_text(seconds: float) -> str:
    """As 12 s, 3.5 min, 2.0 h or 1.2 d."""
    for size, unit in _TIMES:
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def size_text(num_bytes: int) -> str:
    """As 512 B, 1.5 kB, 20.0 MB or 3.1 GB."""
    for size, unit in _SIZES:
        if num_bytes >= size:
            return f"{num_bytes / size:.1f} {unit}"
    return f"{num_bytes} B"
