"""FOLDER and FOLDER:NAME as users write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from league.config.contender_names import is_folder, split_source, with_absolute_folder
from league.errors import MissingRun
from league.policies.source_text import parse_source

FOLDERS = ("runs/first", "runs:old/first", "at 12:30", "runs/first:best")
SOURCES: dict[str, tuple[str, str]] = {
    "runs/first": ("runs/first", ""),
    "runs/first:last": ("runs/first", "last"),
    "runs/first:main_agent.0-s12": ("runs/first", "main_agent.0-s12"),
    "runs/first:best": ("runs/first:best", ""),
    "runs/first:best:last": ("runs/first:best", "last"),
    "runs:old/first": ("runs:old/first", ""),
    "runs:old/first:last": ("runs:old/first", "last"),
    "runs:old/missing": ("runs:old/missing", ""),
    "at 12:30": ("at 12:30", ""),
    "at 12:30:last": ("at 12:30", "last"),
    "runs/first:": ("runs/first:", ""),
    ":best": (".", "best"),
    "": (".", ""),
    "missing": ("missing", ""),
    "runs/missing:best": ("runs/missing", "best"),
    "C:/runs/first": ("C:/runs/first", ""),
    "C:/runs/first:best": ("C:/runs/first", "best"),
    "C:\\runs\\first": ("C:\\runs\\first", ""),
    "C:\\runs\\first:best": ("C:\\runs\\first", "best"),
    "~/first:best": ("home/first", "best"),
}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in FOLDERS:
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home/first").mkdir(parents=True)
    monkeypatch.setenv("HOME", "home")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("text", SOURCES)
def test_the_last_colon_separates_unless_it_belongs_to_the_folder(text: str) -> None:
    folder, name = SOURCES[text]
    assert split_source(text) == (Path(folder), name)


@pytest.mark.parametrize("text", SOURCES)
def test_a_source_is_a_folder_that_exists_and_a_name_or_auto(text: str) -> None:
    folder, name = SOURCES[text]
    if Path(folder).exists():
        assert parse_source(text) == (Path(folder), name or "auto")
    else:
        with pytest.raises(MissingRun, match="does not exist"):
            parse_source(text)


@pytest.mark.parametrize("text", SOURCES)
def test_an_absolute_folder_keeps_the_name(text: str, here: Path) -> None:
    folder, name = SOURCES[text]
    absolute = str(Path(folder).absolute()) + (f":{name}" if name else "")
    assert with_absolute_folder(text, [here / "elsewhere", here]) == (absolute if Path(folder).exists() else text)


@pytest.mark.parametrize("text", ["random", "mcts:25", "bot:tactical", "package.module:Bot", "bots/mine.py:Bot"])
def test_a_bot_is_no_folder(text: str, here: Path) -> None:
    assert not is_folder(text)
    assert with_absolute_folder(text, [here]) == text


@pytest.mark.parametrize("text", sorted(SOURCES.keys() - {"missing", "C:\\runs\\first", "C:\\runs\\first:best"}))
def test_a_path_with_a_slash_is_a_folder_also_where_it_is_missing(text: str) -> None:
    assert is_folder(text)
