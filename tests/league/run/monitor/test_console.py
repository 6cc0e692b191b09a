"""The console shows what the view says, as often as a person reads, and never stops a run."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from league.run.monitor.console import RunConsole, plain_line
from league.run.monitor.run_table import next_snapshot_text, run_table
from league.run.monitor.view import GateView, PayoffView, PlayerView, RunView
from tests.league.run.monitor.terminals import Clock, Terminal

MAIN = PlayerView(
    player="main-0",
    role="main_agent",
    version=123,
    trained_steps=4_560_000,
    snapshots=3,
    rating=213.2,
    rating_low=180.0,
    rating_high=250.0,
    win_rate=0.61,
    loss=0.123,
    entropy=1.2,
    policy_lag=3.4,
)
VIEW = RunView(
    run="runs/x",
    phase="running",
    elapsed_s=83.9,
    budget_fraction=0.46,
    games=12_345,
    env_steps=12_300_000,
    steps_per_s=151_234.0,
    snapshots=7,
    workers=2,
    players=(MAIN, PlayerView(player="league-exploiter-0", role="league_exploiter")),
    payoff=PayoffView(("main-0",), ("main-0-s0", "main-0-s1"), ((0.75, None),)),
    notes=("oldest", "b", "c", "d", "snapshot [main-0-s3] by gate"),
)


class Broken(io.StringIO):
    def write(self, text: str) -> int:
        raise BrokenPipeError


def drawn(view: RunView, *, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(run_table(view))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_the_table_holds_every_number_that_a_user_is_promised() -> None:
    text = drawn(VIEW)
    for shown in (
        "running",
        "0:01:23",
        "46% of the budget, 0:01:38 left",
        "12.3M steps",
        "151k steps/s",
        "12.3k games",
        "7 snapshots",
    ):
        assert shown in text
    for shown in ("main-0", "4.56M", "+213 ±35", "0.61", "0.123", "1.20", "3.4", "league-exploiter-0"):
        assert shown in text
    assert "main-0-s1" in text and "0.75" in text
    assert "snapshot [main-0-s3] by gate" in text and "oldest" not in text


def test_a_rating_just_below_nothing_is_shown_without_a_minus() -> None:
    view = replace(VIEW, players=(replace(MAIN, rating=-0.3, rating_low=None, rating_high=None),))
    assert "best main-0 +0 Elo" in plain_line(view)
    assert "+0" in drawn(view)
    assert "-0 " not in drawn(view).replace("main-0 ", "")


def test_returns_are_shown_by_seat_and_the_length_beside_them() -> None:
    two_seats = replace(MAIN, mean_return=0.118, seat_returns=(0.31, -0.074), episode_length=22.14)
    text = drawn(replace(VIEW, players=(two_seats,)))
    assert "0.12 (0.31 -0.07)" in text and "22.1" in text
    pole = replace(MAIN, mean_return=195.3, seat_returns=(195.3,), win_rate=None, rating=None)
    assert "return 195" in plain_line(replace(VIEW, players=(pole,)))
    tiny = replace(pole, mean_return=-0.00025, seat_returns=(-0.00025,))
    assert "return -0.00025" in plain_line(replace(VIEW, players=(tiny,)))
    nothing = replace(tiny, mean_return=1.964e-08)
    assert "return 0.00 " in plain_line(replace(VIEW, players=(nothing,))) + " "
    assert "return 0.00 " in plain_line(replace(VIEW, players=(replace(tiny, mean_return=0.0),))) + " "


def test_a_run_without_players_or_games_is_drawn() -> None:
    empty = replace(VIEW, players=(), payoff=None, notes=(), budget_fraction=None, games=0, env_steps=0)
    assert "0 games" in drawn(empty)
    assert "budget" not in drawn(empty)
    assert "0 players" in plain_line(empty)


def test_many_players_and_opponents_are_cut_and_those_with_most_games_kept() -> None:
    players = tuple(replace(MAIN, player=f"main-{number}") for number in range(30))
    columns = tuple(f"main-0-s{number}" for number in range(40))
    text = drawn(replace(VIEW, players=players, payoff=PayoffView(("main-0",), columns, ((0.5,) * 40,))))
    assert "... 18 more" in text
    assert "main-0-s0 " in text and "main-0-s39" not in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_no_cell_of_the_table_is_cut_at_any_width(width: int) -> None:
    """Columns go one by one, those that say most last; the head alone may take a second line."""
    gate = GateView(steps=2_000, min_steps=1_000, timeout_steps=4_000, beaten=13, gate_opponents=27)
    exploiter = replace(MAIN, player="main-exploiter-0", gate=gate, next_snapshot_s=200.0, mean_return=-0.31)
    opponents = tuple(f"league-exploiter-0-s{number}" for number in range(8))
    payoff = PayoffView(("main-exploiter-0",), opponents, ((0.5,) * 8,))
    text = drawn(replace(VIEW, players=(MAIN, exploiter), payoff=payoff), width=width)
    assert "\u2026" not in text and all(len(line) <= width for line in text.splitlines())
    assert "main-exploiter-0 " in text and "+213 \u00b135" in text and "league-exploiter-0-s0" in text
    assert ("beats 13/27, within 3.3 min" in text) == (width >= 80)
    assert ("entropy" in text) == (width == 140)


def test_a_phase_has_its_colour() -> None:
    styles = {
        phase: str(Console().render_lines(run_table(replace(VIEW, phase=phase)))[0][0].style)
        for phase in ("training", "rating", "draining", "stopped")
    }
    assert styles == {
        "training": "bold green",
        "rating": "bold cyan",
        "draining": "bold yellow",
        "stopped": "bold yellow",
    }


def test_a_pipe_gets_one_plain_line_every_few_seconds_and_at_each_change_of_phase() -> None:
    clock, out = Clock(), io.StringIO()
    with RunConsole(out, clock=clock) as console:
        assert not console.is_live
        for _ in range(100):
            console.show(VIEW)
            clock.now += 0.1
        console.show(replace(VIEW, phase="draining"))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == (
        "0:01:23  46%, 0:01:38 left  running  12.3M steps  151k/s  12.3k games  2 players  7 snapshots  "
        "best main-0 +213 Elo  loss 0.123  lag 3.4"
    )
    assert "draining" in lines[-1] and "\x1b" not in out.getvalue()


def test_a_terminal_gets_a_table_that_stays_after_the_end() -> None:
    clock, out = Clock(), Terminal()
    console = RunConsole(out, clock=clock, width=140)
    console.start()
    assert console.is_live
    console.show(VIEW)
    console.say("A sentence.")
    console.show(replace(VIEW, games=999))
    console.close()
    console.close()
    text = out.getvalue()
    assert "A sentence." in text
    assert text.rindex("999 games") > text.index("12.3k games")


def test_a_reader_who_leaves_does_not_stop_the_run() -> None:
    console = RunConsole(Broken(), clock=Clock())
    console.start()
    console.show(VIEW)
    console.say("nobody hears")
    console.show(replace(VIEW, phase="stopped"))
    console.close()


def test_the_next_snapshot_has_its_gate_and_its_latest_time() -> None:
    gate = GateView(steps=500, min_steps=1000, timeout_steps=4000, beaten=3, gate_opponents=7)
    assert next_snapshot_text(replace(MAIN, gate=gate)) == "-"
    assert next_snapshot_text(replace(MAIN, gate=gate, next_snapshot_s=2.7)) == "within 3 s"
    open_gate = replace(MAIN, gate=replace(gate, steps=2000), next_snapshot_s=200.0)
    assert next_snapshot_text(open_gate) == "beats 3/7, within 3.3 min"


def test_no_time_is_left_where_none_is_spent() -> None:
    for phase, fraction in (("stopped", 0.46), ("running", 0.001), ("running", 1.0), ("running", None)):
        assert replace(VIEW, phase=phase, budget_fraction=fraction).left_s is None
