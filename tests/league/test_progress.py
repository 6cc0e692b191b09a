"""Progress to a file is a line every ten seconds; on a terminal one line is rewritten."""

from __future__ import annotations

import io

import pytest

from league.progress import LINE_EVERY_S, ProgressLine
from tests.league.run.monitor.terminals import Clock, Terminal


def test_a_file_gets_a_line_every_ten_seconds() -> None:
    clock, out = Clock(), io.StringIO()
    line = ProgressLine(out, clock=clock)
    for second in range(35):
        clock.now = float(second)
        line.show(f"{second} games")
    line.close()
    assert LINE_EVERY_S == 10.0
    assert out.getvalue().splitlines() == ["10 games", "20 games", "30 games"]


def test_a_terminal_gets_one_line_that_is_rewritten_and_left() -> None:
    clock, out = Clock(), Terminal()
    line = ProgressLine(out, clock=clock)
    for tenth in range(100):
        clock.now = tenth / 100.0
        line.show(f"{100 - tenth} games")
    line.close()
    line.close()
    assert out.getvalue().count("\n") == 1
    assert 5 < out.getvalue().count("\r") < 15


def test_an_error_has_a_line_of_its_own() -> None:
    out = Terminal()
    with pytest.raises(ValueError, match="no such bot"), ProgressLine(out) as line:
        line.show("12 of 400 games")
        raise ValueError("no such bot")
    assert out.getvalue().endswith("12 of 400 games\n")
