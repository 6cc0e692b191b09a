"""An installed league beside a project with packages of the same names as ours, and no claim on any other name."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest
import yaml

from tests.league.tiny_runs import ONE_PLAYER, tiny

ROOT = Path(__file__).parent.parent

GAME = """
import gymnasium
import numpy as np

from agents import REWARD

class Guess(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0.0, 1.0, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        return np.ones(2, np.float32), REWARD * float(action), True, False, {}

def make():
    return Guess()
"""


def run(*command: str, cwd: Path) -> str:
    """Standard output of a command that must succeed; it sees none of this checkout's paths."""
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), "OMP_NUM_THREADS": "1", "WANDB_MODE": "disabled"}
    ran = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=150, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(ROOT), cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="module")
def python(wheel: Path) -> str:
    """The interpreter of a new environment: the wheel is installed, packages of others come from this environment."""
    folder = wheel.parent / "venv"
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    (site / "packages_of_others.pth").write_text(sysconfig.get_path("purelib"))  # its .pth files are not followed
    return str(folder / "bin" / "python")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with packages `envs` and `agents` of its own."""
    folder = tmp_path_factory.mktemp("project")
    for name, text in (("envs/__init__.py", ""), ("envs/guess.py", GAME), ("agents/__init__.py", "REWARD = 1.0\n")):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_wheel_holds_one_package_and_all_of_it(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    tops = {name.partition("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"league"}
    for package in ("agents", "envs"):
        sources = {f"league/{path.relative_to(ROOT).as_posix()}" for path in (ROOT / package).rglob("*.py")}
        assert sources <= names
    assert "league/see/page/assets/app.js" in names


@pytest.mark.parametrize(
    "changes",
    [{}, {"env": {"id": "envs.guess:make", "workers": 1}}, {"runtime": {"kind": "ray", "actor_hosts": 1}}],
    ids=["in process", "games in child processes", "on Ray"],
)
def test_a_project_with_packages_of_our_names_trains_its_own_game(
    python: str, project: Path, changes: dict[str, object], request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.replace(" ", "_")
    plain = tiny(env={"id": "envs.guess:make"}, league=ONE_PLAYER, budget={"env_steps": 400})
    for section, value in changes.items():
        plain[section] = {**plain.get(section, {}), **value} if section != "env" else value  # type: ignore[dict-item]
    (project / f"{name}.yaml").write_text(yaml.safe_dump(plain))
    run(python, "-m", "league", "train", f"{name}.yaml", "--run-dir", f"runs/{name}", "--no-eval", cwd=project)
    status = json.loads((project / "runs" / name / "status.json").read_text())
    assert status["phase"] == "stopped" and status["games"] > 0


@pytest.fixture(scope="module")
def editable(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of a new environment with an editable installation."""
    folder = tmp_path_factory.mktemp("editable")
    build = f"from hatchling.build import build_editable; build_editable({str(folder)!r})"
    run(sys.executable, "-c", build, cwd=ROOT)
    venv.create(folder / "venv", with_pip=False, symlinks=True)
    (site,) = (folder / "venv").glob("lib/python*/site-packages")
    (made,) = folder.glob("*.whl")
    with zipfile.ZipFile(made) as packed:
        packed.extractall(site)
    (site / "packages_of_others.pth").write_text(sysconfig.get_path("purelib"))
    return str(folder / "venv" / "bin" / "python")


def test_a_folder_of_our_name_that_is_no_package_does_not_hide_an_editable_installation(
    editable: str, tmp_path: Path
) -> None:
    (tmp_path / "league").mkdir()
    assert "Usage" in run(editable, "-m", "league", "--help", cwd=tmp_path)


def test_an_editable_installation_claims_no_other_name(editable: str) -> None:
    """An import from elsewhere finds the package and none of the folders beside it."""
    look = "import importlib.util as u; print([bool(u.find_spec(n)) for n in ('league', 'agents', 'envs', 'tests')])"
    assert run(editable, "-c", look, cwd=Path("/")) == "[True, False, False, False]\n"
