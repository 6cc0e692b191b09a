"""A replay host by itself: parts of several players, their resets, and what it says when it is back."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from league.agents.learner.errors import FeederClosedError, FeederFullError
from league.agents.replay import row_files
from league.agents.replay.row_files import NoDiskSpaceError
from league.hosts.on_ray.replay_host import ReplayHostProcess
from league.hosts.setup import HostSetup
from tests.league.hosts.host_cases import chunk_of, setup_of

OTHER = "main-1"
PLAYER = "main-0"


def replaying(folder: Path, **options: object) -> HostSetup:
    setup = setup_of()
    kind = {"kind": "replay", "capacity": 64, "min_rows": 16, "samples_per_insert": 2.0, **options}
    learner = dataclasses.replace(setup.learner, row_source=kind, algorithm="dqn")
    return dataclasses.replace(setup, learner=learner, rows=str(folder), replay_hosts=2)


def push(host: ReplayHostProcess, player: str, *, generation: int = 0, seed: int = 0) -> int:
    chunk = chunk_of(seed=seed, player=player)
    return host.push(player, generation, chunk, timeout_s=0.0).rows  # type: ignore[no-any-return]


def test_a_reset_empties_the_part_of_its_player_alone(tmp_path: Path) -> None:
    host = ReplayHostProcess(replaying(tmp_path), "replay-0")
    assert not host.progress(budget_fraction=0.0).has_worked
    assert push(host, PLAYER) == push(host, OTHER) == 8
    assert host.progress(budget_fraction=0.0).has_worked
    assert host.batch(PLAYER, 1, timeout_s=0.0) is None
    with pytest.raises(FeederClosedError, match="main-0 has been reset"):
        push(host, PLAYER)
    with pytest.raises(FeederClosedError, match="main-0 has been reset"):
        host.batch(PLAYER, 0, timeout_s=0.0)
    sample = host.batch(OTHER, 0, timeout_s=0.0)
    assert sample is not None and len(sample.block) == 8
    table = host._kept[OTHER].source.table
    host.update(OTHER, 0, sample, np.full(8, 7.0, np.float32))
    assert set(table._memory.errors[sample.slots]) == {7.0}
    host.update(OTHER, 1, sample, np.full(8, 9.0, np.float32))
    host.update("gone-0", 0, sample, np.full(8, 9.0, np.float32))
    assert set(table._memory.errors[sample.slots]) == {7.0}, "errors of another generation are nobody's"


def test_a_host_that_is_back_says_what_it_has(tmp_path: Path) -> None:
    for storage in ("file", "memory"):
        setup = replaying(tmp_path / storage, storage=storage)
        first = ReplayHostProcess(setup, "replay-0")
        push(first, PLAYER)
        assert first.progress(budget_fraction=0.0).remarks == ()
        again = ReplayHostProcess(setup, "replay-0", is_again=True)
        again.batch(PLAYER, 0, timeout_s=0.0)
        wanted = {
            "file": "replay-0 has 8 rows of main-0 from its file",
            "memory": "replay-0 is back without the rows of main-0 that it held",
        }
        assert again.progress(budget_fraction=0.0).remarks == (wanted[storage],)
        assert again.progress(budget_fraction=0.0).remarks == ()
    assert (tmp_path / "file" / PLAYER / "replay-0" / "rows").exists()


def test_a_full_disk_refuses_the_rows_and_ends_no_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, start: int, stop: int) -> None:
        raise NoDiskSpaceError("no place on the disk")

    host = ReplayHostProcess(replaying(tmp_path, storage="file"), "replay-0")
    with monkeypatch.context() as patched:
        patched.setattr(row_files, "_reserve", full)
        with pytest.raises(FeederFullError, match="no place on the disk"):
            push(host, PLAYER)
    assert push(host, PLAYER) == 8
