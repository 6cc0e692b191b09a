"""Whole runs of games that do to their process what programs do: the journal is whole."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from league.errors import PREEMPTED
from league.see.reports.verify import verify_run
from tests.league.commands import spawn, wait_for_play, wait_until
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


@pytest.mark.xdist_group("ray")
@pytest.mark.timeout(600)
def test_a_run_on_ray_whose_games_end_their_hosts_plays_on_and_is_resumed(tmp_path: Path) -> None:
    """Hosts die of native code while the game is armed; the run gives them up, and the next command needs no care."""
    armed, run = tmp_path / "armed", tmp_path / "run"
    plain = tiny(
        league=ONE_PLAYER,
        env={"id": WILD, "kwargs": {"how": "segmentation fault", "when": "step", "every": 50, "once": str(armed)}},
        runtime={"kind": "ray", "actor_hosts": 1, "object_store_mb": 80},
    )
    first = spawn("train", write_config(tmp_path, plain), "--run-dir", run, "--for", "400s", "--no-eval")
    wait_for_play(first, run, deadline_s=180.0)
    before = actor_host(run)
    armed.touch()
    wait_until(lambda: first.poll() is not None or actor_host(run) != before, "another host", deadline_s=180.0)
    armed.unlink()
    steps = state_of(run).totals.env_steps
    wait_until(
        lambda: first.poll() is not None or state_of(run).totals.env_steps > steps, "more games", deadline_s=180.0
    )
    assert first.poll() is None, first.communicate()
    os.kill(first.pid, signal.SIGINT)
    _, err = first.communicate(timeout=60)
    assert first.returncode == PREEMPTED, err
    counted = state_of(run).totals.env_steps
    resumed = spawn("resume", run, "--env-steps", 500, "--no-eval")
    _, err = resumed.communicate(timeout=240)
    assert resumed.returncode == 0, err
    assert state_of(run).totals.env_steps >= counted + 500 and not verify_run(run).problems


def actor_host(run: Path) -> int:
    """The process of the run's actor host, 0 while there is none."""
    workers = json.loads((run / "status.json").read_text())["workers"]
    return next((worker["pid"] or 0 for worker in workers if worker["kind"] == "actor_host"), 0)
