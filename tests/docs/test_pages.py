"""Keeps the documents short, plain, and equal to the code that they are generated from."""

from __future__ import annotations

import ast
import importlib.util
import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from league.config.reference import entries
from tests.docs.pages import ROOT, WRITTEN

IDIOMS = re.compile(r"\b(?:anew|of late|is told|goes on with|surely|by heart|of no account|what is more)\b", re.I)

MAX_WORDS = 25
"""Longest sentence; what stands between semicolons or colons counts by itself."""

every_page = pytest.mark.parametrize("path", WRITTEN, ids=lambda path: path.name)


def test_generated_pages_equal_the_code() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None and spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for path, text in generate.pages().items():
        assert path.read_text() == text, f"{path.name} is not up to date: run `python docs/generate.py`"


def test_every_key_has_a_meaning() -> None:
    assert [entry.key for entry in entries() if not entry.meaning] == []


@pytest.mark.parametrize("package", ["envs", "agents", "league"])
def test_the_tour_names_every_room(package: str) -> None:
    tour = (ROOT / "docs" / "architecture.md").read_text()
    rooms = [path.parent.name for path in (ROOT / package).glob("*/__init__.py")]
    assert rooms and [room for room in rooms if f"{room}/" not in tour] == []


def test_the_two_paths_of_the_tour_fit_on_a_page_each() -> None:
    """A decision and a game are followed through at most eight files; another test finds what each row names."""
    for part in (ROOT / "docs" / "architecture.md").read_text().split("\n## ")[1:3]:
        rows = [line for line in part.splitlines() if re.match(r"\| \d", line)]
        assert part.startswith("One ") and 5 < len(rows) <= 8
        assert all("::" in row.split("|")[2] for row in rows)


def test_the_loop_is_three_calls_from_its_command() -> None:
    tour = (ROOT / "docs" / "architecture.md").read_text()
    steps = re.findall(r"`(\S+)::(\S+)`", tour[tour.index("Three calls lead to it") :].partition("\n\n")[0])
    assert len(steps) == 4
    for (file, name), (_, called) in itertools.pairwise(steps):
        tree = ast.parse((ROOT / file).read_text())
        (body,) = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
        calls = [ast.unparse(node.func) for node in ast.walk(body) if isinstance(node, ast.Call)]
        assert called.rpartition(".")[2] in {call.rpartition(".")[2] for call in calls}, (
            f"{name} does not call {called}"
        )


def test_the_faq_has_every_finding_of_doctor() -> None:
    tree = ast.parse((ROOT / "league" / "see" / "reports" / "doctor_checks.py").read_text())
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "RunFinding"]
    names = {ast.literal_eval(call.args[0]) for call in calls}
    headings = {line[3:].lower() for line in (ROOT / "docs" / "faq.md").read_text().splitlines() if line[:3] == "## "}
    assert len(names) > 5 and names <= headings, names - headings


def test_the_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 150


@every_page
def test_lines_of_text_are_at_most_120_characters(path: Path) -> None:
    for number, line in enumerate(path.read_text().splitlines(), 1):
        assert len(line) <= 120 or line.startswith("|"), f"{path.name}:{number} has {len(line)} characters"


@every_page
def test_sentences_are_short(path: Path) -> None:
    text = re.sub(r"```.*?```|^    .*$", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n|\n(?=[-*|#] |\d+\. )", text):
        if not paragraph.lstrip().startswith("|"):
            for part in re.split(r"(?<=[.!?;:])\s+", " ".join(paragraph.split())):
                words = [word for word in part.split() if re.search("[A-Za-z]{2}", word)]
                assert len(words) <= MAX_WORDS, f"{path.name}: {len(words)} words: {part}"


@every_page
def test_no_idioms(path: Path) -> None:
    assert not IDIOMS.search(path.read_text()), path.name


def test_the_site_builds_strictly(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    assert (tmp_path / "site" / "configuration" / "index.html").is_file()


def test_no_text_of_a_setting_stands_twice() -> None:
    """Two keys with one text between them leave a reader to guess which is which."""
    seen: dict[str, str] = {}
    for entry in entries():
        if len(entry.meaning.split()) < 4 or entry.key.startswith("learner.learning_rate"):
            continue
        if entry.key.startswith("actors.acting_frozen."):  # the options of `actors.acting`, one record for both
            continue
        assert entry.meaning not in seen, f"{entry.key} says what {seen[entry.meaning]} says"
        seen[entry.meaning] = entry.key
