"""Which runs a strength benchmark trains, resumes or uses again, and which it refuses."""

from __future__ import annotations

import copy
import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.strength import runs
from benchmarks.strength.run_to_end import RunFailed, run_to_end, spend_budget
from benchmarks.strength.runs import HALF, LATEST, LEAGUE, Plan, control_sections, finished_run, stored_or_found
from league.config.loading import load_config
from league.run.budget import Limits
from league.run.launch import train
from league.store.lock import this_process
from league.store.run_folder import RunFolder
from tests.forked_python import ForkedPython

CONFIG = """
env: {id: rock_paper_scissors}
network: {hidden: [4]}
learner: {unroll_length: 1, batch_rows: 16, precision: float32}
actors: {num_envs: 16}
league: {lease_steps: 8, ratings: {step_fraction: 0.0, final_leases: 0}}
runtime: {kind: inprocess}
evaluation: {bots: []}
wandb: {mode: disabled}
"""
BUDGET = "budget={env_steps: 1000}"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the configuration and a run of it at the end of its budget."""
    path = tmp_path_factory.mktemp("finished") / "tiny.yaml"
    path.write_text(CONFIG)
    begun(path)
    return path.parent


@pytest.fixture
def run_dir(finished: Path, config: Path) -> Path:
    """A finished run beside the configuration."""
    return Path(shutil.copytree(finished / "run", config.parent / "run"))


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The commands that would have been run, without the program's folder."""
    seen: list[list[str]] = []

    def note(command: Sequence[str], *, run_dir: Path, log: Path, timeout_s: float) -> None:
        seen.append([Path(command[0]).name, *command[1:]])

    monkeypatch.setattr(runs, "spend_budget", note)
    return seen


def begun(config: Path, *, env_steps: int | None = None) -> Path:
    """A run of this configuration that stopped by itself, or earlier."""
    run_dir = config.parent / "run"
    train(config, overrides=(BUDGET,), run_dir=run_dir, limits=Limits(env_steps=env_steps))
    return run_dir


def test_a_run_that_is_not_there_is_trained_with_all_settings(config: Path, commands: list[list[str]]):
    run_dir = config.parent / "run"
    finished_run(config, run_dir=run_dir, settings=["seed=3", BUDGET], timeout_s=1.0)
    settings = ["-s", "seed=3", "-s", BUDGET, "-s", "wandb.mode=disabled"]
    assert commands == [["league", "train", str(config), "--run-dir", str(run_dir), *settings]]


def test_a_finished_run_is_used_again(
    run_dir: Path, config: Path, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
):
    finished_run(config, run_dir=run_dir, settings=[BUDGET], timeout_s=1.0)
    assert commands == []
    assert capsys.readouterr().out.endswith("run: finished before, used again\n")


def test_an_interrupted_run_is_resumed(config: Path, commands: list[list[str]]):
    run_dir = begun(config, env_steps=100)
    finished_run(config, run_dir=run_dir, settings=[BUDGET], timeout_s=1.0)
    assert commands == [["league", "resume", str(run_dir)]]


def test_a_run_that_is_being_trained_is_left_alone(run_dir: Path, config: Path, commands: list[list[str]]):
    folder = RunFolder.open(run_dir)
    status = folder.read_status()
    assert status is not None
    folder.write_status(replace(status, daemon=this_process(run_dir), phase="running"))
    with pytest.raises(SystemExit, match=f"is being trained by pid {os.getpid()}"):
        finished_run(config, run_dir=run_dir, settings=[BUDGET], timeout_s=1.0)
    assert commands == []


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("seed=4", "seed"),
        ("env.id=cyclic_game", "env.id"),
        ("budget.env_steps=2000", "budget.env_steps"),
        ("network.hidden=[8]", "network.hidden"),
        ("league.preset=self_play", "league.preset"),
    ],
)
def test_another_run_in_the_same_folder_is_refused(
    run_dir: Path, config: Path, commands: list[list[str]], setting: str, words: str
):
    with pytest.raises(SystemExit, match=f"another run than the one asked for: {words}"):
        finished_run(config, run_dir=run_dir, settings=[BUDGET, setting], timeout_s=1.0)
    assert commands == []


def test_smaller_differences_are_said(
    run_dir: Path, config: Path, commands: list[list[str]], capsys: pytest.CaptureFixture[str]
):
    settings = [BUDGET, "learner.gamma=0.5", "evaluation.games=10", "learner.precision=auto"]
    finished_run(config, run_dir=run_dir, settings=settings, timeout_s=1.0)
    assert capsys.readouterr().out.endswith("used again; its settings differ from today's in learner.gamma\n")


def test_runs_are_named_after_game_population_and_seed(tmp_path: Path):
    plan = Plan(
        seeds=(0,), populations=(LEAGUE,), core_seconds=None, seconds=1.0, games=2, evaluation_seed=0, folder=tmp_path
    )
    assert plan.run_dir("c4", HALF, 2) == tmp_path / "c4-half-2"
    assert plan.run_dir("leduc", LEAGUE, 0) == tmp_path / "leduc-league-0"


def test_controls_are_the_newest_weights_and_half_the_games_against_the_past(config: Path):
    sections = control_sections(save_steps=500, rest="lease_steps: 8")
    latest, half = (load_config(config, overrides=[f"league={sections[name]}"]).league for name in (LATEST, HALF))
    assert latest.players[0].matchmaker_name == "self_play"
    assert half.players[0].matchmaker["self_play"] == 0.5
    assert half.players[0].matchmaker["window"] == 1_000_000
    assert {section.players[0].gate.min_steps for section in (latest, half)} == {500}


def test_figures_are_found_again_under_other_conditions_alone(tmp_path: Path):
    path, calls = tmp_path / "figures.json", []

    def find() -> dict[str, float]:
        calls.append(1)
        return {"score": 0.5 + len(calls)}

    first = stored_or_found(path, conditions={"seed": 1, "bots": ["a"]}, find=find)
    assert stored_or_found(path, conditions={"seed": 1, "bots": ["a"]}, find=find) == first == {"score": 1.5}
    assert stored_or_found(path, conditions={"seed": 2, "bots": ["a"]}, find=find) == {"score": 2.5}
    assert json.loads(path.read_text())["conditions"]["seed"] == 2
    with pytest.raises(SystemExit, match="figures of other conditions \\(bots, seed\\): give another folder"):
        stored_or_found(path, conditions={"seed": 1}, find=find, replace=False)


def test_results_need_no_run_and_a_section_that_a_setting_replaces_does_not_count(config: Path, tmp_path: Path):
    plan = Plan(
        seeds=(0,),
        populations=(LEAGUE,),
        core_seconds=None,
        seconds=1.0,
        games=2,
        evaluation_seed=0,
        folder=tmp_path / "runs",
        results=tmp_path / "results",
    )
    run_dir, control = plan.run_dir("c4", LATEST, 0), ["league={preset: self_play}"]
    found = plan.figures(run_dir, config=config, settings=control, find=lambda: {"score": 0.5})

    def never() -> dict[str, float]:
        raise AssertionError("known already")

    config.write_text(CONFIG.replace("lease_steps: 8", "lease_steps: 16"))
    assert plan.figures(run_dir, config=config, settings=control, find=never) == found == {"score": 0.5}
    with pytest.raises(SystemExit, match="other conditions"):
        plan.figures(run_dir, config=config, settings=[], find=never)


def test_a_folder_for_runs_is_made(tmp_path: Path) -> None:
    log = tmp_path / "new" / "runs" / "seed-0.log"
    run_to_end(["echo", "trained"], log=log, timeout_s=60.0)
    assert log.read_text() == "trained\n"


def test_a_run_ends_in_order_with_a_benchmark_that_is_killed(tmp_path: Path) -> None:
    run = (
        "import signal, time; signal.signal(signal.SIGTERM, lambda *_: (print('saved', flush=True), exit())); "
        "print('began', flush=True); time.sleep(60)"
    )
    benchmark = (
        "import sys; from pathlib import Path; from benchmarks.strength.run_to_end import run_to_end; "
        "run_to_end([sys.executable, '-c', sys.argv[1]], log=Path(sys.argv[2]), timeout_s=60.0)"
    )
    log = tmp_path / "log"
    process = ForkedPython(benchmark, run, str(log), env=os.environ)
    wait_for(log, "began\n")
    process.kill()
    process.wait(60.0)
    wait_for(log, "began\nsaved\n")


def wait_for(log: Path, text: str) -> None:
    until = time.monotonic() + 60.0
    while not log.exists() or log.read_text() != text:
        assert time.monotonic() < until, log.read_text() if log.exists() else "no log"
        time.sleep(0.05)


def test_a_run_that_somebody_stopped_has_no_figures_yet(config: Path) -> None:
    run_dir = begun(config, env_steps=100)
    with pytest.raises(SystemExit, match="stopped before the end of its budget"):
        spend_budget(["true"], run_dir=run_dir, log=config.with_suffix(".log"), timeout_s=60.0)


def test_a_run_at_the_end_of_its_budget_is_judged(run_dir: Path, config: Path) -> None:
    spend_budget(["true"], run_dir=run_dir, log=config.with_suffix(".log"), timeout_s=60.0)


def test_a_failure_comes_back_from_another_process_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("the game dumped its core")
    failed = RunFailed.of(["league", "train"], reason="left with code -11", log=tmp_path / "log")
    again = copy.copy(failed)  # takes the way that pickle takes
    assert (str(again), again.reason) == (str(failed), "left with code -11")
    assert "the game dumped its core" in str(again)
