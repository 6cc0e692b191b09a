"""The files that travel to every machine of a cluster: the source of this project, and the user's own files.

Ray carries them as `py_modules`, once per machine. A name such as /home/me/game.py:make then works on machines that
have no such file: `league.envs.plugins` reads the copy.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from league.envs.own_code.places import SHIPPED, SHIPPED_FOLDERS, place_of, present
from league.hosts.on_ray.nodes.host_version import PACKAGE

MAX_MIB = 64
MAX_FILES = 2000
"""A folder with more than this travels without its other files: only the Python files directly in it."""

NOT_SHIPPED = {"__pycache__", "node_modules", "runs", "site-packages", "venv", "wandb"}
JOB_CONFIG = "RAY_JOB_CONFIG_JSON_ENV_VAR"
"""Ray's variable with the configuration of the job in which this process runs."""


def runtime_env(own_names: Iterable[str], folder: Path, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """Ray's runtime environment of the hosts; empty in a job that brings Python modules of its own along.

    Args:
      own_names: names of code; those that say no folder are left out.
      folder: empty, for copies; may be removed once Ray has started.
    """
    job = json.loads(environment.get(JOB_CONFIG, "{}")).get("runtime_env") or {}
    if "py_modules" in job:
        return {}
    found = importlib.util.find_spec(PACKAGE)
    assert found is not None and found.origin is not None
    shutil.copytree(Path(found.origin).parent, folder / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    modules = [PACKAGE]
    places = {place.parent for place in map(place_of, own_names) if place is not None and place.is_absolute()}
    folders = {place: lies for place in sorted(places) if (lies := present(place / "_").parent).is_dir()}
    if folders:
        _copy_own(folders, folder / SHIPPED)
        modules.append(SHIPPED)
    return {"py_modules": [str(folder / module) for module in modules]}


def files_of(folder: Path, *, max_bytes: int = MAX_MIB << 20, max_files: int = MAX_FILES) -> list[Path]:
    """The files of a folder that travel: all that are not hidden, or the Python files directly in it where that is
    too much."""
    found: list[Path] = []
    total = 0
    for path in _walk(folder):
        found.append(path)
        total += path.stat().st_size
        if total > max_bytes or len(found) > max_files:
            return sorted(folder.glob("*.py"))
    return sorted(found)


def _walk(folder: Path) -> Iterator[Path]:
    for here, folders, names in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".") and name not in NOT_SHIPPED and not (Path(here) / name / "journal.db").exists()
        ]
        for name in names:
            path = Path(here) / name
            if not name.startswith(".") and path.is_file() and not path.is_symlink():
                yield path


def _copy_own(folders: Mapping[Path, Path], target: Path) -> None:
    """Copies folders. folders: as names say it -> where it lies."""
    places: dict[str, str] = {}
    for said, folder in folders.items():
        place = f"f{hashlib.sha256(str(said).encode()).hexdigest()[:12]}"
        places[str(said)] = place
        for path in files_of(folder):
            copy = target / place / path.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    (target / "__init__.py").write_text("")
    (target / SHIPPED_FOLDERS).write_text(json.dumps(places))
