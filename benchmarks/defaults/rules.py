"""Digest of the rules that a run with the shipped defaults follows, so that older figures are never taken for today's.

Documentation, comments and layout are left out: only a change of what is computed makes another digest.
"""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path

from benchmarks.strength.runs import ROOT

RULES = (
    "envs/adapters",
    "envs/facts",
    "envs/search",
    "agents/learner",
    "agents/losses",
    "agents/nets",
    "agents/acting",
    "agents/unroll",
    "league/config",
    "league/core",
    "league/policies/exact",
    "league/lab/exploit",
    "league/policies",
    "league/run",
    "league/hosts/inprocess.py",
    "benchmarks/defaults/judge.py",
)
"""Folders and files whose code decides on what is trained, exported and measured."""
LENGTH = 10
"""Digits of the digest that are kept."""


def rules_digest(root: Path = ROOT) -> str:
    """The digest of the code under `root` that `RULES` names."""
    digest = hashlib.sha256()
    for path in sorted(file for rule in RULES for file in _files(root / rule)):
        digest.update(path.relative_to(root).as_posix().encode())
        digest.update(code_of(path.read_text()).encode())
    return digest.hexdigest()[:LENGTH]


def code_of(source: str) -> str:
    """The syntax tree of a module without strings that stand as statements."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            node.body = [item for item in body if not _is_text(item)]  # type: ignore[attr-defined]  # has a body
    return ast.dump(tree)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _files(path: Path) -> list[Path]:
    return [path] if path.is_file() else list(path.rglob("*.py"))
