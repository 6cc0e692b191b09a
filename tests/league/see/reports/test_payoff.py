"""Who beats whom, of a run folder: the same games as in the journal, seen from each home's side and seats."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from league.core.state.events import LeaseFinished
from league.errors import LeagueError
from league.see.reports.payoff import PayoffReport, PayoffRow, payoff_rows, read_payoff
from tests.league.commands import league
from tests.league.tiny_runs import events_of, start, state_of, tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    start(folder, tiny(league={"ratings": {"step_fraction": 0.3, "final_leases": 0}}), env_steps=2_000)
    return folder / "run"


def row_of(rows: tuple[PayoffRow, ...], home: str, away: str) -> PayoffRow:
    (row,) = (row for row in rows if (row.home, row.away) == (home, away))
    return row


def test_every_game_of_the_journal_is_in_the_row_and_on_the_seat_where_it_was_played(run: Path) -> None:
    played: Counter[tuple[str, str, int]] = Counter()
    won: Counter[tuple[str, str, int]] = Counter()
    for event in events_of(run):
        for outcome in event.outcomes if isinstance(event, LeaseFinished) else ():
            for seat, opponent in ((0, 1), (1, 0)):
                key = (outcome.policies[seat], outcome.policies[opponent], seat)
                played[key] += outcome.games
                won[key] += outcome.wins[seat][opponent]
    state = state_of(run)
    rows = payoff_rows(state, tuple(state.population.index))
    shown = {(row.home, row.away, seat.seat): seat for row in rows for seat in row.seats}
    assert {key: seat.wins + seat.draws + seat.losses for key, seat in shown.items()} == +played
    assert {key: seat.wins for key, seat in shown.items()} == {key: won[key] for key in +played}
    for row in rows:
        assert row.games == sum(seat.wins + seat.draws + seat.losses for seat in row.seats)


def test_both_sides_of_frozen_policies_show_the_same_games(run: Path) -> None:
    state = state_of(run)
    names = tuple(state.snapshots)
    rows = payoff_rows(state, names)
    pairs = [row for row in rows if row.home < row.away and row.away in names]
    assert pairs
    for row in pairs:
        other = row_of(rows, row.away, row.home)
        assert row.games == row.effective_games == other.games
        assert row.win_rate + other.win_rate == pytest.approx(1.0)
        assert row.lower < row.win_rate
        assert [seat.wins for seat in row.seats] == [seat.losses for seat in reversed(other.seats)]


def test_players_are_the_homes_unless_others_are_named_and_the_hardest_come_first(run: Path) -> None:
    report = read_payoff(run)
    assert list(dict.fromkeys(row.home for row in report.rows)) == list(state_of(run).players)
    mains = [row.win_rate for row in report.rows if row.home == "main-0"]
    assert mains == sorted(mains)
    assert {row.home for row in read_payoff(run, homes=("main-0-s0",)).rows} == {"main-0-s0"}
    with pytest.raises(LeagueError, match="no policy 'main-0-s00'; did you mean main-0-s0"):
        read_payoff(run, homes=("main-0-s00",))


def test_the_command_shows_a_line_for_each_pair_and_json_holds_them_all(run: Path) -> None:
    report = read_payoff(run, homes=("main-0", "main-0-s0"))
    ran = league("payoff", run, "--home", "main-0", "--home", "main-0-s0")
    assert ran.out == report.text() + "\n"
    assert ran.out.count("\n") == len(report.rows) + 2
    plain = league("payoff", run, "--home", "main-0-s0", "--json").json
    assert {row["home"] for row in plain["rows"]} == {"main-0-s0"}
    assert set(plain["rows"][0]["seats"][0]) == {"seat", "wins", "draws", "losses", "score"}


def test_a_league_without_games_says_so() -> None:
    assert PayoffReport("run", (), "games won").text() == "run: no games yet"
