"""Processor time of single processes, and the number of cores."""

from __future__ import annotations

import os
import resource
from pathlib import Path

from league.processes.reaper import descendants


def num_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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


def children_cpu_seconds(pid: int) -> float:
    """User and system time of all processes below one, those that have ended and been waited for included."""
    return _waited_for(pid) + sum(cpu_seconds(one) + _waited_for(one) for one in descendants(pid))


def _waited_for(pid: int) -> float:
    """User and system time of the children of a process that have ended and been waited for."""
    if pid == os.getpid():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
