"""Following a log that grows, is emptied, and is replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from league.run.control.log_files import following, last_lines


def followed(path: Path, steps: list[Callable[[], object]]) -> str:
    """What comes while the steps are done, one at each look."""
    left = list(steps)

    def sleep(seconds: float) -> None:
        left.pop(0)()

    return "".join(following(path, goes_on=lambda: bool(left), sleep=sleep))


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_only_what_is_appended_comes(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("old\n")
    assert followed(path, [lambda: append(path, "a\n"), lambda: append(path, "b\n")]) == "a\nb\n"


def test_an_emptied_log_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("a long first line\n")
    assert followed(path, [lambda: path.write_text("b\n"), lambda: append(path, "c\n")]) == "b\nc\n"


def test_a_replaced_log_is_read_from_its_start(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("one\n")

    def rotate() -> None:
        path.rename(tmp_path / "x.log.1")

    assert followed(path, [rotate, lambda: path.write_text("another line\n"), lambda: None]) == "another line\n"


def test_the_last_lines_of_a_file_are_read(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("a\nb\nc\n")
    assert last_lines(path, 2) == ["b", "c"]
    assert last_lines(path, 0) == []
