"""Games that fail within a run: it trains on, counts them, and leaves nothing of its child processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from league.processes.reaper import descendants
from league.run.budget import Limits
from league.run.launch import train
from league.see.reports.status.status_report import read_status
from league.store.run_folder import RunFolder
from tests.league.tiny_runs import ONE_PLAYER, state_of, tiny, write_config

GAME = "tests.envs.crash_games:make"


def failing(how: str, *, workers: int, one_in: int = 12, **limits: Any) -> dict[str, Any]:
    kwargs = {"kind": "parallel", "method": "step", "how": how, "length": 8, "one_in": one_in}
    return tiny(env={"id": GAME, "kwargs": kwargs, "workers": workers, **limits}, league=ONE_PLAYER)


@pytest.mark.parametrize(("how", "workers"), [("raise", 0), ("raise", 2), ("exit", 2)])
def test_a_run_outlives_games_that_fail_and_counts_them(how: str, workers: int, tmp_path: Path) -> None:
    config = write_config(tmp_path, failing(how, workers=workers))
    train(config, overrides=(), run_dir=tmp_path / "run", limits=Limits(env_steps=1_000))
    state = state_of(tmp_path / "run")
    assert state.totals.env_steps + state.totals.settling_steps >= 1_000
    assert state.totals.games > 50
    assert 0 < state.totals.aborted < state.totals.games
    assert state.players["main-0"].trained_steps > 0
    log = (RunFolder.open(tmp_path / "run").path / "logs" / "daemon.log").read_text()
    assert f"{GAME}: step " in log
    assert "seed" in log and (how == "exit" or "RuntimeError: the ball rolled off" in log)
    assert f"{state.totals.aborted:,} games thrown away" in read_status(tmp_path / "run").text()
    running = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in descendants(os.getpid())]
    assert not any(b"league.envs.workers" in command for command in running)
