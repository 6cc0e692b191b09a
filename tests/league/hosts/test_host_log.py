"""Logs of hosts: the last traceback is in the run's folder, however often something was written there before."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from league.hosts import host_log
from league.hosts.host_log import logged_to, logs_its_errors


def test_what_ends_a_process_is_in_its_log_with_the_traceback(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the dice"), logged_to(tmp_path, "actor-0"):
        raise ValueError("the dice fell under the table")
    text = (tmp_path / "actor-0.log").read_text()
    assert "Traceback" in text
    assert "ValueError: the dice fell under the table" in text


def test_what_a_task_raises_is_logged_and_raised(tmp_path: Path) -> None:
    @logs_its_errors
    def play() -> None:
        raise KeyError("seat 3")

    with logged_to(tmp_path, "actor-0"), pytest.raises(KeyError):
        play()
    text = (tmp_path / "actor-0.log").read_text()
    assert "play failed" in text and "KeyError: 'seat 3'" in text


def test_a_log_is_capped_and_ends_with_what_came_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_log, "MAX_BYTES", 10_000)
    with logged_to(tmp_path, "learner-0"):
        for number in range(2_000):
            logging.getLogger("test").warning("chunk %d was refused", number)
    files = sorted(tmp_path.iterdir())
    assert [path.name for path in files] == ["learner-0.log", "learner-0.log.1"]
    assert sum(path.stat().st_size for path in files) <= 20_000
    assert "chunk 1999 was refused" in files[0].read_text()


def test_a_process_that_does_not_see_the_run_works_without_a_log(tmp_path: Path) -> None:
    before = list(logging.getLogger().handlers)
    with logged_to(tmp_path / "elsewhere", "actor-0"):
        logging.getLogger("test").warning("unheard")
    assert list(tmp_path.iterdir()) == []
    assert logging.getLogger().handlers == before


def test_a_log_on_a_full_disk_hides_nothing_and_says_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "daemon.log").symlink_to("/dev/full")
    with pytest.raises(ValueError, match="the dice"), logged_to(tmp_path, "daemon"):
        raise ValueError("the dice fell under the table")
    assert capfd.readouterr().err == ""
