"""The page's own files, read once: no request ever becomes a path."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "assets"
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
}
"""Suffix -> content type; other files, such as licences, are not served."""


@dataclass(frozen=True)
class Asset:
    """One file. etag: by which a browser asks whether its copy is still good."""

    content: bytes
    content_type: str
    etag: str


def read_assets() -> Mapping[str, Asset]:
    """Path below `FOLDER` -> file."""
    found = {}
    for path in sorted(FOLDER.rglob("*")):
        if path.suffix in TYPES and path.is_file():
            content = path.read_bytes()
            etag = f'"{hashlib.sha256(content).hexdigest()[:32]}"'
            found[path.relative_to(FOLDER).as_posix()] = Asset(content, TYPES[path.suffix], etag)
    return found
