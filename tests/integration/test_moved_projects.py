"""A project that was renamed, moved or copied together with its runs works, and tells what changed in it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import league.envs.plugins
from league.config.run_config import BudgetConfig
from league.deploy.export.exporter import export_policy
from league.envs.own_code.places import MOVED
from league.envs.protocol import EnvError
from league.judge.matches.evaluation import evaluate_run
from league.lab.exploit.exploit import exploit_run
from league.operate.history.fork import fork_run
from league.policies import trust
from league.policies.exact.load_policy import load_policy
from league.policies.own_code import CODE_FILE
from league.policies.trust import MARK_FILE, Untrusted
from league.processes.child_process import SESSION_KEY
from league.run.budget import Limits
from league.run.launch import resume
from tests.league.tiny_runs import ONE_PLAYER, start, tiny

RULES = "WIN = 1.0\n"
GAME = """
import numpy as np
from league.envs.games.kuhn import KuhnPoker
from {rules} import WIN

def make(*, num_envs, where=None):
    {lazy}
    return KuhnPoker(num_envs=num_envs)
"""
NAMES = {"file": "board.py:make", "package": "plays.board:make", "nested": "plays.small.board:make"}


@pytest.fixture(autouse=True)
def forget(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A process of its own, as far as code of the user goes; called, it is another one."""

    def forget() -> None:
        monkeypatch.setattr(league.envs.plugins, "_ADMITTED", set())
        monkeypatch.delenv(MOVED, raising=False)

    forget()
    return forget


def made_project(path: Path, form: str, monkeypatch: pytest.MonkeyPatch, *, workers: int = 0) -> Path:
    """A project with its game and a run of it under runs/; it is the current folder."""
    module = NAMES[form].partition(":")[0].removesuffix(".py")
    package = module.rpartition(".")[0]
    inner = f"{package}." if package else ""
    for name, text in (
        ("board", GAME.format(rules=f"{inner}rules", lazy=f"from {inner}lazy import NAME" if inner else "")),
        ("rules", RULES),
        ("lazy", "NAME = 'lazy'\n"),
    ):
        file = path.joinpath(*package.split(".")) / f"{name}.py" if package else path / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.chdir(path)
    (path / "runs").mkdir()
    env = {"id": NAMES[form], "workers": workers}
    start(path / "runs", tiny(env=env, league=ONE_PLAYER), env_steps=200, run="first")
    return path / "runs" / "first"


def use_everywhere(run: Path) -> None:
    """What people do with a run."""
    load_policy(run).spec  # noqa: B018
    evaluate_run(run, games=2, bots=("random",))
    export_policy(run, run.parent / "package")
    load_policy(run.parent / "package").spec  # noqa: B018
    resume(run, limits=Limits(env_steps=50))
    budget = BudgetConfig(env_steps=100)
    assert exploit_run(run, player="last", run_dir=run.parent / "exploiter", budget=budget, games=2, seed=0)
    fork_run(run, run.parent / "fork", at="latest")
    resume(run.parent / "fork", limits=Limits(env_steps=50))


@pytest.mark.parametrize("form", NAMES)
def test_a_project_that_moved_with_its_runs_works(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    made_project(tmp_path / "before", form, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "before").rename(tmp_path / "after")
    forget()
    use_everywhere(tmp_path / "after" / "runs" / "first")


@pytest.mark.parametrize("form", ["file", "package"])
def test_the_package_of_a_moved_run_is_played_wherever_it_lies(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    """Exported after a move, moved with the project once more, and carried away alone."""
    made_project(tmp_path / "first", form, monkeypatch)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first").rename(tmp_path / "second")
    forget()
    package = tmp_path / "second" / "packages" / "mine"
    export_policy(tmp_path / "second" / "runs" / "first", package)
    forget()
    alone = tmp_path / "far" / "away" / "mine"
    shutil.copytree(package, alone)
    assert evaluate_run(alone, games=2, bots=("random",)), "by its name"
    (tmp_path / "second").rename(tmp_path / "third")
    forget()
    assert evaluate_run(tmp_path / "third" / "packages" / "mine", games=2, bots=("random",)), "beside the package"
    (tmp_path / "third" / "rules.py").write_text("WIN = 2.0\n")
    forget()
    if form == "file":
        assert load_policy(tmp_path / "third" / "packages" / "mine").spec, "code that is not what was marked is not run"


@pytest.mark.parametrize("form", ["file", "package"])
def test_a_copied_project_plays_its_own_game(
    form: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    forget: Callable[[], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = made_project(tmp_path / "first", form, monkeypatch)
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    copied = tmp_path / "second" / "runs" / "first"
    evaluate_run(run, games=2, bots=("random",))
    resume(copied, limits=Limits(env_steps=50))
    assert sources_loaded("rules", tmp_path) == {tmp_path / "second"}
    evaluate_run(run, games=2, bots=("random",))
    assert sources_loaded("rules", tmp_path) == {tmp_path / "first"}
    next((tmp_path / "second").rglob("rules.py")).write_text("WIN = 2.0\n")
    capsys.readouterr()
    resume(copied, limits=Limits(env_steps=50))
    assert "has changed since this run was last started" in capsys.readouterr().out


def sources_loaded(module: str, folder: Path) -> set[Path]:
    """Projects below a folder from which the modules of that name are that are in use now."""
    loaded = [value for name, value in sys.modules.items() if name.rpartition(".")[2] == module]
    files = [Path(str(value.__file__)) for value in loaded if getattr(value, "__file__", None)]
    return {folder / file.relative_to(folder).parts[0] for file in files if file.is_relative_to(folder)}


def test_moved_code_that_is_not_what_the_user_trained_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    """As in a folder from somebody else that has a mark of the user's own."""
    made_project(tmp_path / "first", "file", monkeypatch)
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    (tmp_path / "second" / "rules.py").write_text("raise SystemExit('run')\n")
    forget()
    copied = tmp_path / "second" / "runs" / "first"
    with pytest.raises(Untrusted, match=r"second/board\.py now is not the code .* add --trust"):
        load_policy(copied)
    (tmp_path / "second" / "rules.py").write_text("WIN = 3.0\n")
    assert load_policy(copied, trust=True)


def test_a_resume_says_once_that_rules_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = made_project(tmp_path, "package", monkeypatch)
    (tmp_path / "train_me.py").write_text("print('no part of the game')\n")
    resume(run, limits=Limits(env_steps=20))
    assert "has changed" not in capsys.readouterr().out
    (tmp_path / "plays" / "rules.py").write_text("WIN = 2.0\n")
    resume(run, limits=Limits(env_steps=20))
    assert capsys.readouterr().out.count("The code of") == 1
    resume(run, limits=Limits(env_steps=20))
    assert "The code of" not in capsys.readouterr().out


def test_a_run_alone_finds_its_game_where_it_was_made_and_says_where_it_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    run = made_project(tmp_path / "project", "file", monkeypatch)
    alone = tmp_path / "far" / "away" / "alone"
    alone.parent.mkdir(parents=True)
    run.rename(alone)
    forget()
    assert load_policy(alone)
    (tmp_path / "project").rename(tmp_path / "gone")
    forget()
    monkeypatch.chdir(tmp_path / "far")
    with pytest.raises(EnvError, match=r"board\.py; it was looked for as it lay beside the run, .*env="):
        load_policy(alone)
    monkeypatch.chdir(tmp_path / "gone")
    forget()
    assert load_policy(alone), "below the current folder"


def test_games_in_child_processes_and_plug_ins_of_the_league_move_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    project = tmp_path / "before"
    project.mkdir()
    (project / "pairing.py").write_text(
        "from league.core.matchmaking.matchmakers import SelfPlay\nclass Mine(SelfPlay):\n    pass\n"
    )
    monkeypatch.chdir(project)
    players = [{"role": "main_agent", "matchmaker": "pairing.py:Mine", "gate": ONE_PLAYER["players"][0]["gate"]}]
    monkeypatch.setitem(ONE_PLAYER, "players", players)
    made_project(project, "package", monkeypatch, workers=1)
    monkeypatch.chdir(tmp_path)
    project.rename(tmp_path / "after")
    forget()
    assert resume(tmp_path / "after" / "runs" / "first", limits=Limits(env_steps=100)).spent.env_steps >= 300


def test_a_run_without_digests_opens_as_before_and_elsewhere_with_trust(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    """As older versions have made them."""
    run = made_project(tmp_path / "before", "file", monkeypatch)
    (run / CODE_FILE).unlink()
    mark = json.loads((run / MARK_FILE).read_text())
    names = [name for name in mark["names"] if not name.startswith(("source ", "at "))]
    key = trust._own_key()
    assert key is not None
    (run / MARK_FILE).write_text(json.dumps({"names": names, "hmac": trust._sign(key, names)}))
    forget()
    assert load_policy(run)
    (tmp_path / "before").rename(tmp_path / "after")
    forget()
    with pytest.raises(Untrusted):
        load_policy(tmp_path / "after" / "runs" / "first")
    assert load_policy(tmp_path / "after" / "runs" / "first", trust=True)


def test_a_restart_may_do_what_the_start_might_although_no_key_can_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forget: Callable[[], None]
) -> None:
    (tmp_path / "state").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv(SESSION_KEY, "of a supervisor")
    run = made_project(tmp_path, "file", monkeypatch)
    forget()
    resume(run, limits=Limits(env_steps=20))
    forget()
    monkeypatch.delenv(SESSION_KEY)
    with pytest.raises(Untrusted):
        resume(run, limits=Limits(env_steps=20))
