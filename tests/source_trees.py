"""The project's own source as syntax trees, which the tests of its architecture read; each file is parsed once."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("envs", "agents", "league")


def sources(*packages: str) -> list[Path]:
    return sorted(path for package in packages or PACKAGES for path in (ROOT / package).rglob("*.py"))


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree_of(path)))


def has_word(path: Path, words: str) -> bool:
    """True if code of a file may name one of the words: it takes long to look closer."""
    text = path.read_text()
    return not text.isascii() or re.search(rf"\b(?:{words})\b", text) is not None


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def module_of(path: Path) -> str:
    """The name by which a file is imported: agents and envs are parts of league."""
    name = name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return f"league.{name}" if name.split(".")[0] in ("agents", "envs") else name


def package_of(module: str) -> str:
    """The one of our packages that holds a module; the name of its top for modules of others."""
    top, _, rest = module.partition(".")
    inner = rest.partition(".")[0]
    return inner if top == "league" and inner in PACKAGES else top


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Full names of what a file imports, at any depth and also where only a type checker looks."""
    package, found = module_of(path).split("."), list[str]()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = package[: len(package) - node.level] if node.level else []
            found.append(".".join([*start, *([node.module] if node.module else [])]))
    return tuple(found)


def each_of(paths: list[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Turn a check of one file into one test of all `paths`, which reports every file that fails."""

    def decorate(check: Callable[[Path], None]) -> Callable[[], None]:
        def test() -> None:
            found = []
            for path in paths:
                try:
                    check(path)
                except AssertionError as error:
                    found.append(str(error))
            assert not found, "\n".join(found)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return decorate


def forget() -> None:
    """Let millions of nodes go: each later search for garbage would pass them."""
    for cached in (tree_of, nodes_of, imports):
        cached.cache_clear()
