"""Progress to a file is a line after a second and every ten seconds; on a terminal one line is rewritten."""

from __future__ import annotations

import io

import pytest

from league.progress import FIRST_LINE_S, LINE_EVERY_S, ProgressLine
from tests.league.run.monitor.terminals import Clock, Terminal


def test_a_file_gets_a_line_after_a_second_and_every_ten() -> None:
    clock, out = Clock(), io.StringIO()
    line = ProgressLine(out, clock=clock)
    for second in range(35):
        clock.now = float(second)
        line.show(f"{second} games")
    line.close()
    assert (FIRST_LINE_S, LINE_EVERY_S) == (1.0, 10.0)
    assert out.getvalue().splitlines() == ["1 games", "11 games", "21 games", "31 games"]


def test_the_time_left_follows_from_what_is_done() -> None:
    clock, out = Clock(), io.StringIO()
    line = ProgressLine(out, clock=clock)
    for second, fraction in ((0.0, 0.0), (1.0, 0.0), (12.0, 0.25), (30.0, 1.0)):
        clock.now = second
        line.show("games", fraction=fraction)
    assert out.getvalue().splitlines() == ["games", "games, about 36 s left", "games"]


def test_no_more_time_is_left_than_there_is() -> None:
    clock, out = Clock(), io.StringIO()
    line = ProgressLine(out, limit_s=37.0, clock=clock)
    for clock.now in (0.0, 7.0):
        line.show("7 of 1,800 games", fraction=7 / 1800)
    assert out.getvalue() == "7 of 1,800 games, about 30 s left\n"


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
