"""Disk usage of a run."""

from __future__ import annotations

import os
from pathlib import Path

BLOCK_BYTES = 512  # what st_blocks counts in, whatever the file system


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
