"""The user's own code that a run names: digests of its files, and where it lies once run or project were moved.

RUN/code.json has the path of each name's code from the run, and the digest of its source, both as of its last start.
Code is looked for in the order of `league.envs.own_code.places.candidates`.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.machinery
import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from league.config.plugin_names import OutsideName
from league.envs.own_code.places import found_place, module_file, note_moved, place_of, present
from league.errors import StorageError
from league.store.run_folder import RunFolder

CODE_FILE = "code.json"
MAX_RECORD_BYTES = 1 << 18
MAX_ENTRIES = 5_000
"""Files and folders around a name's source beyond which its folder has no digest: it is no project of its own."""

MAX_PARSED = 2_000
"""Files whose imports are remembered: a process that starts several runs of a project reads the same ones."""

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")
"""Fields of a statement that hold statements, or parts of it that do."""

SUFFIXES = tuple(importlib.machinery.all_suffixes())
SKIPPED = {"__pycache__", "node_modules", "runs", "site-packages", "venv", "wandb"}


class Code(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The code of a name at a start of the run.

    Fields:
      sha256: of its source, hex.
      beside: path of its file, or its folder and module, from the run; None for a module that Python finds.
    """

    sha256: str
    beside: str | None = None


def read_record(folder: RunFolder) -> Mapping[str, Code]:
    """Name -> its code at the last start; empty where that cannot be read, as in older runs."""
    try:
        payload = folder.storage.read_bytes(folder.path / CODE_FILE, max_bytes=MAX_RECORD_BYTES)
        return msgspec.json.decode(payload, type=dict[str, Code])
    except (OSError, StorageError, msgspec.MsgspecError):
        return {}


def note_code(folder: RunFolder, names: Iterable[OutsideName]) -> list[str]:
    """Note the code of a run and where it lies, at a start; returns a sentence for each name whose code changed."""
    known = read_record(folder)
    kinds = {found.name: found.kind for found in names}
    record = {
        name: Code(digest, _beside(name, folder.path)) for name in kinds if (digest := source_digest(name)) is not None
    }
    if not record:
        return []
    folder.storage.atomic_write_bytes(folder.path / CODE_FILE, msgspec.json.encode(record))
    return [
        f"The code of {name} has changed since this run was last started: "
        + ("its games, ratings and weights so far are of the earlier rules." if kinds[name] == "env" else "mind that.")
        for name, code in record.items()
        if name in known and known[name].sha256 != code.sha256
    ]


def _beside(name: str, run: Path) -> str | None:
    place = place_of(name)
    return None if place is None or not place.is_absolute() else os.path.relpath(present(place), run)


def locate(
    run: Path,
    names: Iterable[OutsideName],
    record: Mapping[str, Code],
    *,
    may_read: Callable[[OutsideName, Path], bool],
) -> Iterator[tuple[OutsideName, Path]]:
    """From here on the code of a run is read where it lies now; yields what lies elsewhere and may not be read there.

    Args:
      run: folder of the run or a package. record: of the run or package.
      may_read: asked for a name whose code does not lie where the name says, and for where it lies.
    """
    for found in names:
        place = place_of(found.name)
        if place is None or not place.is_absolute():
            continue
        known = record.get(found.name)
        now = found_place(place, run=run, beside=None if known is None else known.beside)
        if now is not None:
            if now.parent.resolve() == place.parent.resolve():
                note_moved(place.parent, place.parent)
            elif may_read(found, now):
                note_moved(place.parent, now.parent)
            else:
                yield found, now


def place_entry(place: Path) -> str:
    """The words of a mark for a place whose code is the user's own, whatever it says by now."""
    return f"at {place}"


def own_places(names: Iterable[OutsideName]) -> Iterator[str]:
    """The words of a mark for the places from which the code of a run is read at present, and for what lies there."""
    for name in {found.name for found in names}:
        place = place_of(name)
        if place is not None and place.is_absolute():
            yield place_entry(present(place))
            yield from filter(None, [source_entry(name)])


def source_entry(name: str, place: Path | None = None) -> str | None:
    """The words of a mark for the source of a name, wherever it lies: a digest of all code in its folder.

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
            _add(found, str(path.relative_to(place.parent)), _content(path))
    return f"source {found.hexdigest()} {place.name}"


def source_digest(name: str) -> str | None:
    """The sha256 (hex) of a name's file and of all that it imports from its project; None where there is no file."""
    said = place_of(name)
    place = _place_of_module(name) if said is None else present(said)
    file = None if place is None else place if place.suffix == ".py" else module_file(place)
    if place is None or file is None:
        return None
    root = place.parent
    top = root if said is not None else root / place.name.partition(".")[0]
    found = hashlib.sha256()
    for path, content in sorted(_with_imports(file, root, top).items()):
        _add(found, str(path.relative_to(root)), content)
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


def _with_imports(file: Path, root: Path, top: Path) -> dict[Path, bytes]:
    """Path -> content of a file and of all below `top` that it imports, also by way of others."""
    contents = {file: _content(file)}
    left, tried = [file], set[tuple[str, ...]]()
    while left:
        path = left.pop()
        for name in _imported_modules(contents[path], path.relative_to(root).parent.parts) - tried:
            tried.add(name)
            module = root.joinpath(*name)
            for one in (module.with_name(f"{module.name}.py"), module / "__init__.py"):
                if one not in contents and one.is_relative_to(top) and one.is_file():
                    contents[one] = _content(one)
                    left.append(one)
    return contents


def _imported_modules(content: bytes, package: tuple[str, ...]) -> set[tuple[str, ...]]:
    """The modules that a file imports anywhere in its text, with the packages that they are in."""
    names = {
        (*package[: len(package) - level + 1], *name) if level else name for level, name in _import_statements(content)
    }
    return {name[:length] for name in names for length in range(1, len(name) + 1)}


@functools.lru_cache(maxsize=MAX_PARSED)
def _import_statements(content: bytes) -> frozenset[tuple[int, tuple[str, ...]]]:
    """The names that a text imports, each with its leading dots; none of a text that is no Python."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return frozenset()
    names, left = set[tuple[int, tuple[str, ...]]](), list[ast.AST](tree.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.Import):
            names.update((0, tuple(alias.name.split("."))) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = tuple(node.module.split(".")) if node.module else ()
            names.update((node.level, name) for name in (module, *((*module, alias.name) for alias in node.names)))
        else:  # a statement stands only where statements do: no expression is looked into
            left += (one for block in BLOCKS for one in getattr(node, block, ()))
    return frozenset(names)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _add(digest: hashlib._Hash, name: str, content: bytes) -> None:
    digest.update(f"{name}\n{len(content)}\n".encode() + content)
