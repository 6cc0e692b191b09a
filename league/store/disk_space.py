"""Free space of a file system."""

from __future__ import annotations

import os
from pathlib import Path


def disk_space(path: Path) -> tuple[int, int]:
    """Free bytes for this user, and all bytes, of the file system of a path. Raises OSError where it does not say."""
    found = os.statvfs(path)
    return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
