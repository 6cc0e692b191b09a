"""Loads objects by "module:attribute" or "path/file.py:attribute": the one loader, with its rule of trust.

Loading a name runs code. A name that the user gives (in their own configuration, on the command line, in a call) is
always loaded. A name that comes with a run folder or a snapshot is loaded only if this process has admitted it:
`league.policies.trust` admits names that the user's own `league train` marked, and names that the user trusts by
`--trust` or `trust=True`.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import importlib
import importlib.util
import json
import operator
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from league.envs.guard.foreign_code import foreign_code
from league.envs.guard.settings import current_folder
from league.envs.own_code.places import absolute, is_place, module_file, present

OWN_PACKAGE = "league"
_ABOVE = Path(__file__).parents[2]
"""The folder of this package, by the path on which Python found it."""
OWN_FORMS = "module:attribute or path/file.py:attribute"

Version = tuple[int, int]
"""Time of the last change of a file (ns), and its size in bytes."""


INDEX_NAMES = {
    "Box2D": "box2d",
    "OpenGL": "PyOpenGL",
    "PIL": "pillow",
    "ale_py": "ale-py",
    "cv2": "opencv-python-headless",
    "pyspiel": "open-spiel",
    "ruamel": "ruamel.yaml",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "PyYAML",
}
"""Module -> the package that has it, where their names differ: those that games are found to need."""


class PluginError(ValueError):
    """A name cannot be loaded; the message is one clause with the reason."""


class MissingModuleError(PluginError):
    """There is no module of that name."""


_ADMITTED: set[str] = set()
_GIVEN: dict[str, Any] = {}
"""Name -> an object that the user's own program has handed over."""
_BESIDE: dict[str, tuple[Path, dict[Path, Version]]] = {}
"""Top-level module that the user's code imported from its folder -> that folder, and the files of it that were read."""

_LOADING = threading.RLock()
"""Held while a module is loaded: the search path and Python's caches of it belong to all threads."""


def load(name: str) -> Any:
    """The object that "module:attribute" or "path/file.py:attribute" names; the attribute may be dotted.

    A file is read once; it may import files beside it. A module may also lie in the current folder, or in the one that
    the name says, as in "path/package.module:attribute".

    Raises:
      PluginError: no such file, module or attribute, or importing it raised.
    """
    if name in _GIVEN:
        return _GIVEN[name]
    where, colon, attribute = name.rpartition(":")
    if not colon or not where:
        raise PluginError(f"{name!r} is not of the form {OWN_FORMS}")
    if not is_place(where) and not _is_ours(where):
        where = absolute(name, (Path(current_folder()),)).rpartition(":")[0]
    with _LOADING:
        module = _load_place(Path(where)) if is_place(where) else _load_module(where)
    try:
        return operator.attrgetter(attribute)(module)
    except AttributeError:
        raise PluginError(f"{where} has no {attribute!r}{_defined_near(module, attribute)}") from None


def _is_ours(module: str) -> bool:
    """True for a module of this package, which is imported once, also where the current folder has it."""
    return module.partition(".")[0] == OWN_PACKAGE and module_file(_ABOVE / module) is not None


def name_given(thing: Any) -> str:
    """A name by which `load` finds a function or class of the user's program here, wherever it was written."""
    where = getattr(thing, "__module__", type(thing).__module__)
    name = f"{where}:{getattr(thing, '__qualname__', type(thing).__qualname__)}"
    _GIVEN[name] = thing
    return name


def split_options(name: str) -> tuple[str, dict[str, object]]:
    """The parts of "module:attribute?name=value&name=value": what is loaded, and the options of the call.

    A value is a number, true, false, null or text.

    Raises:
      PluginError: an option is not of that form.
    """
    target, _, text = name.partition("?")
    options: dict[str, object] = {}
    for option in filter(None, text.split("&")):
        key, equals, value = option.partition("=")
        if not equals or not key.isidentifier():
            raise PluginError(f"the option {option!r} is not of the form name=value")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    return target, options


def resolve(name: str, registry: Mapping[str, str], *, what: str) -> Any:
    """The object that a registered name or a name of the user's own code stands for.

    Args:
      registry: name -> "module:attribute".
      what: the swap point, for the message.
    Raises:
      PluginError: neither registered nor loadable.
    """
    if name not in registry and ":" not in name:
        raise PluginError(unknown(name, registry, what=what))
    try:
        return load(registry.get(name, name))
    except PluginError as error:
        raise PluginError(f"{what} {name!r} cannot be loaded: {error}") from error


def unknown(name: str, registry: Iterable[str], *, what: str) -> str:
    """The error message for a name that is not registered, with the nearest registered one."""
    known = list(registry)
    near = [f"{name}:NAME"] if name.endswith(".py") else difflib.get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    return f"unknown {what} {name!r}{hint}: there are {', '.join(known)}, or give your own as {OWN_FORMS}"


def admit(names: Iterable[str]) -> None:
    """Let this process load these names when they come with a run folder or a snapshot."""
    _ADMITTED.update(names)


def is_admitted(name: str) -> bool:
    """True if `admit` was called with the name."""
    return name in _ADMITTED


def load_admitted(name: str) -> Any:
    """As `load`, for a name that may have come with a run folder or a snapshot.

    A name is admitted with any options: those of a folder are checked by `is_admitted` when it is read.

    Raises:
      PluginError: it was not admitted, or as of `load`.
    """
    if name not in _ADMITTED and not any(entry.startswith(f"{name} {{") for entry in _ADMITTED):
        raise PluginError(f"{name!r} is code that nobody here has trusted; give --trust (trust=True) to run it")
    return load(name)


def _can_be_found(module: str) -> bool:
    if module in sys.modules:
        return True
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError):
        return False


def package_folder(name: str) -> Path | None:
    """The folder of an installed package, without importing it; None if it is not installed."""
    found = importlib.util.find_spec(name)
    return None if found is None or found.origin is None else Path(found.origin).parent


def _load_place(given: Path) -> ModuleType:
    place = present(given.absolute())
    if place.suffix == ".py":
        if not place.is_file():
            raise PluginError(_not_there(given))
        return _load_file(place)
    file = module_file(place)
    if file is None:
        raise PluginError(_not_there(given))
    folder, module = place.parent, place.name
    with _own(folder), _on_path(str(folder)):
        top = module.partition(".")[0]
        taken = sys.modules.get(top)
        if taken is not None and top not in _BESIDE and not _lies_in(taken, folder):
            return _load_file(file)  # the name of its package is taken here, by a package that is installed
        return _imported(module)


def _not_there(given: Path) -> str:
    if not given.is_absolute():
        return f"there is no file {given}; paths are relative to {current_folder()}"
    return (
        f"there is no file {given}; it was looked for as it lay beside the run, where it lay when the run was made, and"
        f" below {current_folder()} and the folders around the run; put it into one of them, or give the game itself"
        " (env=)"
    )


def _load_file(path: Path) -> ModuleType:
    name = f"_plugin_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    version = _version(path)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "_plugin_version", None) == version and not _stale(path.parent):
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickling in the user's code look it up there
    try:
        with foreign_code(str(path), "the reading of it"), _own(path.parent), _on_path(str(path.parent)):
            spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        del sys.modules[name]
        raise PluginError(missing_package(error)) from error
    except Exception as error:  # code of others: whatever it raises is their mistake, not ours
        del sys.modules[name]
        raise PluginError(f"reading {path} raised {type(error).__name__}: {first_line(error)}") from error
    module._plugin_version = version  # type: ignore[attr-defined]  # a file that changed is read again
    return module


def _load_module(name: str) -> ModuleType:
    with _on_path(current_folder()):  # a console script does not look in the working folder by itself
        return _imported(name)


def _imported(name: str) -> ModuleType:
    try:
        with contextlib.nullcontext() if _is_ours(name) else foreign_code(name, "the reading of it"):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise MissingModuleError(f"there is no module {name!r}") from error
        raise PluginError(missing_package(error)) from error
    except Exception as error:  # code of others: whatever it raises is their mistake, not ours
        raise PluginError(f"importing {name} raised {type(error).__name__}: {first_line(error)}") from error


@contextmanager
def _on_path(here: str) -> Iterator[None]:
    added = here not in sys.path
    if added:
        sys.path.insert(0, here)
    try:
        yield
    finally:
        if added and here in sys.path:
            sys.path.remove(here)


@contextmanager
def _own(folder: Path) -> Iterator[None]:
    """Has the user's code import what lies in its folder now: another project may have modules of equal names."""
    for top in _stale(folder):
        del _BESIDE[top]
        for name in [name for name in sys.modules if name.partition(".")[0] == top]:
            del sys.modules[name]
    before = set(sys.modules)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        for name in set(sys.modules) - before:
            _note_beside(name, folder)


def _note_beside(name: str, folder: Path) -> None:
    module, top = sys.modules[name], name.partition(".")[0]
    if name.startswith("_plugin_") or top == OWN_PACKAGE or not _lies_in(sys.modules.get(top, module), folder):
        return
    _, files = _BESIDE.setdefault(top, (folder, {}))
    if module.__dict__.get("__file__"):
        files[Path(str(module.__file__))] = _version(Path(str(module.__file__)))


def _stale(folder: Path) -> list[str]:
    """Modules of the user's code to import again: another folder's of a name that this one has, or changed since."""
    return [
        top
        for top, (owner, files) in _BESIDE.items()
        if (owner != folder and ((folder / f"{top}.py").is_file() or (folder / top).is_dir()))
        or any(_version(file) != version for file, version in files.items())
    ]


def _lies_in(module: ModuleType, folder: Path) -> bool:
    """True for a top-level module of that folder."""
    places = [*getattr(module, "__path__", ()), *filter(None, [getattr(module, "__file__", None)])]
    return any(Path(place).parent == folder for place in places)


def _version(file: Path) -> Version:
    """Of a file; zeros where it is gone."""
    try:
        facts = file.stat()
    except OSError:
        return 0, 0
    return facts.st_mtime_ns, facts.st_size


def missing_package(error: ModuleNotFoundError) -> str:
    """The advice to install what could not be imported, by the name that package indexes have for it."""
    module = (error.name or "").partition(".")[0]
    wanted = INDEX_NAMES.get(module, module)
    return f"it needs the package {error.name!r}, which is not installed; pip install {wanted}"


def install_extra(name: str) -> str:
    """The advice to install an extra of this project, which is in no index: what has its name there is another's."""
    return (
        f"install the extra `{name}`: pip install -c constraints.txt '.[{name}]' (or -e '.[{name}]') in a copy of the"
        " repository"
    )


def first_line(error: BaseException) -> str:
    """The first line of the text of an error, which may be of others' code and long; empty where it says nothing."""
    return (str(error).splitlines() or [""])[0]


def _defined_near(module: ModuleType, attribute: str) -> str:
    """Suggests names near `attribute` that the module defines itself, imports excluded."""
    own = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    close = difflib.get_close_matches(attribute, own, n=3, cutoff=0.5) or sorted(own)[:6]
    if not close and _can_be_found(inner := f"{module.__name__}.{attribute}"):
        return f"; {inner} is a module: name what it defines, as in {inner}:NAME{_callables_of(inner)}"
    return f"; did you mean {' or '.join(close)}?" if close else ""


def _callables_of(module: str) -> str:
    """Names the callables that a module lists as its own; empty if it cannot be imported."""
    try:
        found = importlib.import_module(module)
    except Exception:  # code of others: the message around this one is of use without it
        return ""
    own = [name for name in getattr(found, "__all__", ()) if callable(getattr(found, name, None))]
    return f" (it has {', '.join(own)})" if own else ""
