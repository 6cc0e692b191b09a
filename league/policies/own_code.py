"""The user's own code that a run names: digests of its files, and where it lies once run or project were moved.

RUN/code.json has the folder of the run and the digest of each name's source, both as of its last start. Names in a run
say absolute paths; they are looked for in the order of `league.envs.plugin_places.candidates`.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.machinery
import importlib.util
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from league.config.plugin_names import OutsideName
from league.envs.plugin_places import found_place, module_file, note_moved, place_of, present
from league.errors import StorageError
from league.store.run_folder import RunFolder

CODE_FILE = "code.json"
MAX_RECORD_BYTES = 1 << 18
MAX_ENTRIES = 5_000
"""Files and folders around a name's source beyond which its folder has no digest: it is no project of its own."""

SUFFIXES = tuple(importlib.machinery.all_suffixes())
SKIPPED = {"__pycache__", "node_modules", "runs", "site-packages", "venv", "wandb"}


class CodeRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file. run: folder of the run at its last start. digests: name of code -> sha256 (hex) of its source."""

    run: str
    digests: Mapping[str, str] = {}


def read_record(folder: RunFolder) -> CodeRecord | None:
    """The record of the last start; None where there is none that can be read, as in older runs."""
    try:
        payload = folder.storage.read_bytes(folder.path / CODE_FILE, max_bytes=MAX_RECORD_BYTES)
        return msgspec.json.decode(payload, type=CodeRecord)
    except (OSError, StorageError, msgspec.MsgspecError):
        return None


def note_code(folder: RunFolder, names: Iterable[OutsideName]) -> list[str]:
    """Note where a run lies and what its code is, at a start; returns a sentence for each name whose code changed."""
    before = read_record(folder)
    known = {} if before is None else before.digests
    kinds = {found.name: found.kind for found in names}
    digests = {name: digest for name in kinds if (digest := source_digest(name)) is not None}
    if not digests:
        return []
    record = CodeRecord(str(folder.path), digests)
    folder.storage.atomic_write_bytes(folder.path / CODE_FILE, msgspec.json.encode(record))
    return [
        f"The code of {name} has changed since this run was last started: "
        + ("its games, ratings and weights so far are of the earlier rules." if kinds[name] == "env" else "mind that.")
        for name, digest in digests.items()
        if name in known and known[name] != digest
    ]


def locate(run: Path, names: Iterable[OutsideName], *, made_in: Path | None) -> Iterator[tuple[OutsideName, Path]]:
    """From here on the code of a run is read where it lies now; yields what does not lie where its name says.

    Args:
      run: folder of the run, a snapshot or a package. made_in: its folder at its last start, None where not known.
    """
    for found in names:
        place = place_of(found.name)
        if place is None or not place.is_absolute():
            continue
        now = found_place(place, run=run, made_in=made_in)
        if now is not None:
            is_same = now.parent.resolve() == place.parent.resolve()
            note_moved(place.parent, place.parent if is_same else now.parent)
            if not is_same:
                yield found, now


def source_entry(name: str, place: Path | None = None) -> str | None:
    """What a mark says of the source of a name, wherever it lies: a digest of all code in its folder.

    Args:
      place: where it lies, if not where it is read from at present.
    Returns:
      None for a module that Python finds, and where the folder is too large.
    """
    said = place_of(name)
    if said is None:
        return None
    place = present(said) if place is None else place
    found = hashlib.sha256()
    entries = 0
    for here, folders, files in os.walk(place.parent):
        folders[:] = sorted(
            folder
            for folder in folders
            if not folder.startswith(".")
            and folder not in SKIPPED
            and not (Path(here) / folder / "journal.db").exists()
        )
        entries += len(folders) + len(files)
        if entries > MAX_ENTRIES:
            return None
        for file in sorted(file for file in files if file.endswith(SUFFIXES)):
            path = Path(here) / file
            _add(found, str(path.relative_to(place.parent)), path)
    return f"source {found.hexdigest()} {place.name}"


def source_digest(name: str) -> str | None:
    """The sha256 (hex) of a name's file and of all files of its project that it imports; None where there is no file."""
    said = place_of(name)
    place = _place_of_module(name) if said is None else present(said)
    file = None if place is None else place if place.suffix == ".py" else module_file(place)
    if place is None or file is None:
        return None
    root, found = place.parent, hashlib.sha256()
    top = root if said is not None else root / place.name.partition(".")[0]
    seen, left = {file}, [file]
    while left:
        for one in _imported_files(left.pop(), root):
            if one not in seen and one.is_relative_to(top):
                seen.add(one)
                left.append(one)
    for path in sorted(seen):
        _add(found, str(path.relative_to(root)), path)
    return found.hexdigest()


def _place_of_module(name: str) -> Path | None:
    """The folder and module of "package.module:attribute", as one path, without importing it."""
    where = name.rpartition(":")[0]
    try:
        found = importlib.util.find_spec(where.partition(".")[0]) if where else None
    except (ImportError, ValueError):
        return None
    if found is None:
        return None
    origins = [*(found.submodule_search_locations or ()), *filter(None, [found.origin])]
    return Path(origins[0]).parent / where if origins and Path(origins[0]).exists() else None


def _imported_files(file: Path, root: Path) -> Iterator[Path]:
    """The files below a folder that one imports anywhere in its text."""
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    package = file.relative_to(root).parent.parts
    for node in ast.walk(tree):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = (*base, *(node.module.split(".") if node.module else ()))
            names = [module, *((*module, alias.name) for alias in node.names)]
        for name in names:
            for length in range(1, len(name) + 1):
                path = root.joinpath(*name[:length])
                yield from (one for one in (path.with_name(f"{path.name}.py"), path / "__init__.py") if one.is_file())


def _add(digest: hashlib._Hash, name: str, path: Path) -> None:
    try:
        content = path.read_bytes()
    except OSError:
        content = b""
    digest.update(f"{name}\n{len(content)}\n".encode() + content)
