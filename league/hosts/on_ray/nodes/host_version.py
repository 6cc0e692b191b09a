"""The versions that a machine runs, as far as two machines of a run must agree on them."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import importlib.util
import os
import platform
from dataclasses import dataclass, fields
from pathlib import Path

from league.version import __version__

PACKAGE = "league"
"""The package of this project."""


@dataclass(frozen=True)
class HostVersion:
    """The versions of one machine.

    Fields:
      league: of this project. code: digest of its source, since a version number may be the same for two.
      python, ray, torch, numpy: theirs; of Python, torch and NumPy without the patch level.
    """

    league: str
    code: str
    python: str
    ray: str
    torch: str
    numpy: str


@functools.cache
def this_version() -> HostVersion:
    """The versions here. Imports nothing large."""
    return HostVersion(
        league=__version__,
        code=_code_digest(),
        python=_minor(platform.python_version()),
        ray=importlib.metadata.version("ray"),
        torch=_minor(importlib.metadata.version("torch")),
        numpy=_minor(importlib.metadata.version("numpy")),
    )


def differences(here: HostVersion, there: HostVersion) -> str:
    """A clause that names every difference; empty without one."""
    found = [
        f"{field.name} {getattr(there, field.name)} (here {getattr(here, field.name)})"
        for field in fields(HostVersion)
        if getattr(here, field.name) != getattr(there, field.name)
    ]
    return f"it has {', '.join(found)}" if found else ""


def _minor(version: str) -> str:
    return ".".join(version.split("+", maxsplit=1)[0].split(".")[:2])


def _code_digest() -> str:
    """Digest of the source files of this project: their places and contents."""
    digest = hashlib.sha256()
    found = importlib.util.find_spec(PACKAGE)
    assert found is not None and found.submodule_search_locations is not None
    root = Path(next(iter(found.submodule_search_locations)))
    # A checkout holds agents and envs as links, an installed package as folders: both count.
    files = (Path(folder, name) for folder, _, names in os.walk(root, followlinks=True) for name in names)
    for path in sorted(file for file in files if file.suffix == ".py"):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode())
        digest.update(content)
    return digest.hexdigest()[:12]
