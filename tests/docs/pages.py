"""The documents of the repository and the code blocks in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "benchmarks/README.md")),
        *(ROOT / "benchmarks" / "figures").glob("*.md"),
        *(ROOT / "docs").glob("*.md"),
    ]
)
GENERATED = ("configuration.md", "commands.md")
WRITTEN = [path for path in PAGES if path.name not in GENERATED]
"""The pages that people write."""

_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_FILE = re.compile(r"# (\S+\.(?:py|yaml))\n")


@dataclass(frozen=True)
class Block:
    """A fenced code block: its page, its language, its text, and the file name in its first line, if any."""

    page: str
    language: str
    text: str

    @property
    def file(self) -> str:
        """The name in a first line such as `# my_game.py`; empty without one."""
        found = _FILE.match(self.text)
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"{self.page}:{self.file or self.text.partition(chr(10))[0]}"


def blocks(language: str) -> list[Block]:
    """Every fenced block of a language."""
    return [
        Block(path.relative_to(ROOT).as_posix(), found[1], found[2])
        for path in PAGES
        for found in _FENCED.finditer(path.read_text())
        if found[1] == language
    ]


def prose(path: Path) -> str:
    """A page without its fenced blocks."""
    return _FENCED.sub("", path.read_text())


def inline_code(path: Path) -> Iterator[str]:
    """What stands in backticks in a page."""
    yield from _INLINE.findall(prose(path))


def shell_lines(path: Path) -> Iterator[str]:
    """The lines of indented code blocks, their comments cut off."""
    for line in prose(path).splitlines():
        if line.startswith("    "):
            yield line.partition("  #")[0].strip()
