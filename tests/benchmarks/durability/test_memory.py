"""The benchmark of the daemon's memory: what is kept for each lease shows in its figure."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.durability import memory
from league.hosts.protocol import PlayLease, Task


def test_what_is_kept_for_each_lease_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[bytes] = []
    submit = memory.MarkedHosts.submit

    def leaking(hosts: memory.MarkedHosts, task: Task) -> None:
        if isinstance(task, PlayLease):
            kept.append(bytes(20_000))
        submit(hosts, task)

    monkeypatch.setattr(memory.MarkedHosts, "submit", leaking)
    assert 20_000 < memory.held_bytes(tmp_path, (20, 60), grows=False, seed=0) < 30_000
