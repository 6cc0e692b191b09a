"""The files that travel to the machines of a cluster, and how a machine without them finds the copies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from league.envs.own_code.places import MOVED, note_moved
from league.hosts.on_ray.nodes.shipped_files import JOB_CONFIG, files_of, runtime_env

OWN = """
from beside import number
import pathlib
def answer():
    return number + int((pathlib.Path(__file__).parent / "maps" / "one.txt").read_text())
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's folder: a game with a file beside it, a map, and things that stay at home."""
    for name, text in {
        "own.py": OWN,
        "beside.py": "number = 40",
        "maps/one.txt": "2",
        ".git/config": "secret",
        "runs/first/big.bin": "x",
        "elsewhere/journal.db": "a run",
        "elsewhere/config.yaml": "a run",
        "__pycache__/own.pyc": "x",
        ".env": "TOKEN=1",
    }.items():
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "home"


def names(paths: list[Path], root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in paths}


def test_what_lies_beside_a_users_file_travels_and_runs_hidden_and_installed_files_do_not(home: Path) -> None:
    assert names(files_of(home), home) == {"own.py", "beside.py", "maps/one.txt"}


@pytest.mark.parametrize("limit", [{"max_bytes": 60}, {"max_files": 2}])
def test_of_a_folder_that_is_too_large_the_python_files_directly_in_it_travel(
    home: Path, limit: dict[str, int]
) -> None:
    assert names(files_of(home, **limit), home) == {"own.py", "beside.py"}


@pytest.mark.parametrize("moved", [False, True])
def test_a_machine_without_the_users_file_reads_the_copy(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moved: bool
) -> None:
    """Also where the code has moved since the run was made, whose names say where it lay."""
    monkeypatch.delenv(MOVED, raising=False)
    copies = tmp_path / "copies"
    copies.mkdir()
    file = home / "own.py"
    if moved:
        home.rename(tmp_path / "later")
        note_moved(home, tmp_path / "later")
        home = tmp_path / "later"
    env = runtime_env([f"{file}:answer", "numpy:array", "/no/such.py:thing"], copies, {})
    assert [Path(module).name for module in env["py_modules"]] == ["league", "league_own_files"]
    home.rename(tmp_path / "gone")
    program = "import sys; from league.envs.plugins import load; print(load(sys.argv[1])())"
    asked = subprocess.run(
        [sys.executable, "-c", program, f"{file}:answer"],
        env={"PYTHONPATH": str(copies)},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert asked.stdout == "42\n", asked.stderr


def test_the_source_of_this_project_travels_without_compiled_files(tmp_path: Path) -> None:
    env = runtime_env([], tmp_path, {})
    assert [Path(module).name for module in env["py_modules"]] == ["league"]
    assert (tmp_path / "league" / "agents" / "weights.py").is_file()
    assert not list(tmp_path.rglob("*.pyc"))


@pytest.mark.parametrize(
    ("job", "ships"), [({"working_dir": "gcs://x.zip"}, True), ({"py_modules": ["gcs://y.zip"]}, False), (None, True)]
)
def test_a_job_that_brings_modules_along_brings_all(tmp_path: Path, job: object, ships: bool) -> None:
    env = runtime_env([], tmp_path, {JOB_CONFIG: json.dumps({"runtime_env": job})})
    assert bool(env) == ships
