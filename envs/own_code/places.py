"""Where the user's own code lies: from a name to its folder, in the order in which folders are looked at.

A name is "module:attribute" (found by Python), "path/file.py:attribute", or "path/package.module:attribute": a module
of the packages in that folder.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from league.envs.guard.settings import current_folder

SHIPPED, SHIPPED_FOLDERS = "league_own_files", "folders.json"
"""Package with copies of the user's files on a machine of a cluster, and its table: folder -> folder of the copy."""

MOVED = "LEAGUE_MOVED_FOLDERS"
"""Variable of the environment, which child processes inherit: folder that names of a run say -> where it lies now."""


def place_of(name: str) -> Path | None:
    """The file of a name, or its folder and dotted module as one path; None for a module that Python finds."""
    where, colon, _ = name.partition("?")[0].rpartition(":")
    return Path(where) if colon and is_place(where) else None


def is_place(where: str) -> bool:
    """True for the part before the colon of a name that says the folder."""
    return where.endswith(".py") or "/" in where


def absolute(name: str, folders: Iterable[Path]) -> str:
    """Replaces the place of a name by its absolute path in the first of the folders that has it; else the name itself.

    Does the same for "package.module:attribute" where Python does not find that module in another folder: the hosts of
    a run and a resumed run have other current folders.
    """
    where, colon, attribute = name.rpartition(":")
    if not colon or not where:
        return name
    starts = list(folders)
    if is_place(where):
        given = Path(where).expanduser()
        found = next((start / given for start in starts if _exists(start / given)), None)
        return name if found is None else f"{found.absolute()}:{attribute}"
    if not all(part.isidentifier() for part in where.split(".")):
        return name
    found = next((start / where for start in starts if _exists(start / where)), None)
    if found is None or _is_elsewhere(where, starts):
        return name
    file = found.with_name(f"{where}.py")
    return f"{(file if '.' not in where and file.is_file() else found).absolute()}:{attribute}"


def present(place: Path) -> Path:
    """Where a file or a folder's module lies on this machine now: its copy in a cluster, or where its run was moved."""
    moved = moved_folders().get(str(place.parent))
    if moved is not None:
        return Path(moved) / place.name
    found = importlib.util.find_spec(SHIPPED)
    if found is None or found.origin is None:
        return place
    package = Path(found.origin).parent
    copy = json.loads((package / SHIPPED_FOLDERS).read_text()).get(str(place.parent))
    return place if copy is None else package / str(copy) / place.name


def moved_folders() -> Mapping[str, str]:
    """Folder as names say it -> where it lies now, of the runs that this process has opened."""
    table: dict[str, str] = json.loads(os.environ.get(MOVED, "{}"))
    return table


def note_moved(folder: Path, now: Path) -> None:
    """From here on a folder that names say lies elsewhere, for this process and its children."""
    table = dict(moved_folders())
    table.pop(str(folder), None)
    if folder != now:
        table[str(folder)] = str(now)
    os.environ[MOVED] = json.dumps(table)


def candidates(place: Path, *, run: Path, beside: str | None) -> Iterator[Path]:
    """Where the code of a run may lie by now, first to last.

    As it lay beside the run at its last start; as its name says; and with its own folder's last parts below the current
    folder or a folder around the run.

    Args:
      place: absolute, as of `place_of`.
      run: folder of the run now. beside: the path from there at the last start, None where that is not known.
    """
    if beside is not None:
        yield Path(os.path.normpath(run / beside))
    yield place
    parts = place.parts[1:]
    for start in (Path(current_folder()), *run.parents):
        for first in range(len(parts)):
            yield start.joinpath(*parts[first:])


def found_place(place: Path, *, run: Path, beside: str | None) -> Path | None:
    """The first of `candidates` that is there."""
    return next((path for path in candidates(place, run=run, beside=beside) if _exists(path)), None)


def module_file(place: Path) -> Path | None:
    """The file of a folder's module, as "folder/package.module"; None where there is none."""
    path = place.parent.joinpath(*place.name.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)


def _exists(place: Path) -> bool:
    return place.is_file() if place.suffix == ".py" else module_file(place) is not None


def _is_elsewhere(module: str, folders: Iterable[Path]) -> bool:
    """True if Python finds a module of that name outside of the folders; nothing is imported."""
    top, *rest = module.split(".")
    specs = (finder.find_spec(top, None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    found = next((spec for spec in specs if spec is not None), None)
    if found is None:
        return False
    if found.submodule_search_locations is None:
        return not rest and not _is_within(Path(found.origin or ""), folders)
    places = [Path(location).joinpath(*rest) for location in found.submodule_search_locations]
    there = [place for place in places if not rest or module_file(place) is not None]
    return any(not _is_within(place, folders) for place in there)


def _is_within(path: Path, folders: Iterable[Path]) -> bool:
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)
