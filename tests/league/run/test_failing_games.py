"""Games that fail within a run: it trains on, counts them, and leaves nothing of its child processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from league.run.budget import Limits
from league.run.launch import train
from league.see.reports.status.status_report import read_status
from league.store.run_folder import RunFolder
from tests.envs.workers.forked_games import forked_games  # noqa: F401 - a fixture
from tests.forked_python import ForkedPython
from tests.league.commands import wait_until
from tests.league.tiny_runs import ONE_PLAYER, state_of, tiny, write_config

GAME = "tests.envs.crash_games:make"


def failing(how: str, *, workers: int, one_in: int = 12, **limits: Any) -> dict[str, Any]:
    kwargs = {"kind": "parallel", "method": "step", "how": how, "length": 8, "one_in": one_in}
    return tiny(env={"id": GAME, "kwargs": kwargs, "workers": workers, **limits}, league=ONE_PLAYER)


@pytest.mark.parametrize(("how", "workers"), [("raise", 0), ("raise", 2), ("exit", 2)])
def test_a_run_outlives_games_that_fail_and_counts_them(
    how: str,
    workers: int,
    tmp_path: Path,
    forked_games: list[ForkedPython],  # noqa: F811 - the fixture
) -> None:
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
    assert len(forked_games) >= workers
    wait_until(lambda: None not in [process.poll() for process in forked_games], "the end of every process of games")
