"""A fork that is cut off at any write, or meets a full disk, leaves no half fork."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from league.config.loading import parse_config
from league.errors import DiskFull
from league.operate.history.fork import fork_run
from league.see.reports.verify import verify_run
from league.store.run_folder import RunFolder
from league.store.storage import Storage
from tests.league.operate.history.fork_cases import contents, small_source
from tests.league.store.store_faults import DieAt, Died, FailAt
from tests.league.tiny_runs import (
    head_of,
)


def test_death_at_any_write_leaves_no_fork_or_a_whole_one_and_the_next_attempt_makes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = small_source(tmp_path)
    config = parse_config(RunFolder.open(source).read_config(), source="test")
    opened = SimpleNamespace(config=lambda overrides=(): config)
    monkeypatch.setattr("league.operate.history.fork.open_config", lambda origin: opened)  # half of the time of a fork
    before = contents(source)
    new, deaths = tmp_path / "new", 0
    while True:
        try:
            fork_run(source, new, at="latest", wall_time=lambda: 0.0, storage=Storage(hook=DieAt(deaths)))
            break
        except Died:
            deaths += 1
        if new.exists():
            assert verify_run(new).problems == ()
            shutil.rmtree(new)
    assert deaths > 30
    assert verify_run(new).problems == ()
    assert contents(source) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "new", "run"]


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    source = small_source(tmp_path)
    for number in range(0, 40, 7):
        with pytest.raises(DiskFull):
            fork_run(source, tmp_path / "new", at="latest", storage=Storage(hook=FailAt(number)))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "run"]
    assert fork_run(source, tmp_path / "new", at="latest").event == head_of(source)[0]
