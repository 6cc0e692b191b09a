"""Whole runs of games that do to their process what programs do: the journal is whole."""

from __future__ import annotations

import signal
from pathlib import Path

from league.see.reports.verify import verify_run
from tests.league.commands import spawn
from tests.league.tiny_runs import ONE_PLAYER, state_of, tiny, write_config

WILD = "tests.envs.guard.wild_games:make"


def test_a_game_that_ends_the_command_in_native_code_costs_what_was_not_saved_and_no_more(tmp_path: Path) -> None:
    kwargs = {"how": "segmentation fault", "when": "step", "every": 100, "once": str(tmp_path / "run" / "journal.db")}
    config = write_config(tmp_path, tiny(league=ONE_PLAYER, env={"id": WILD, "kwargs": kwargs}))
    first = spawn("train", config, "--run-dir", tmp_path / "run")
    _, err = first.communicate(timeout=120)
    assert first.returncode == -signal.SIGSEGV
    (said,) = [line for line in err.splitlines() if "native code" in line]
    assert f"{WILD}: step ended this process" in said and "env.workers: 1" in said
    before = state_of(tmp_path / "run").totals.games
    assert before > 0 and not verify_run(tmp_path / "run").problems


def test_a_run_of_games_that_do_everything_in_turn_plays_its_whole_budget(tmp_path: Path) -> None:
    kwargs = {"how": "mixed", "when": "step", "every": 20}
    plain = tiny(league=ONE_PLAYER, env={"id": WILD, "kwargs": kwargs}, budget={"env_steps": 1_500})
    first = spawn("train", write_config(tmp_path, plain), "--run-dir", tmp_path / "run", "--no-eval")
    _, err = first.communicate(timeout=120)
    assert first.returncode == 0, err
    totals = state_of(tmp_path / "run").totals
    assert totals.env_steps >= 1_500 and totals.aborted > 0 and not verify_run(tmp_path / "run").problems
