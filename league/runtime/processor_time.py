"""Processor time of single processes."""

from __future__ import annotations

import os
import resource
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """User and system time of a process; 0 for one that is gone or whose system does not say."""
    if pid == os.getpid():
        usage = resource.getrusage(resource.RUSAGE_SELF)
        return usage.ru_utime + usage.ru_stime
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
