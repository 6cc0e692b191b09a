"""`league payoff`: a policy's scores against every opponent that it has met, now and by seat."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from league.core.state.payoff import DRAW, GAMES, LOSS, SCORE, WIN
from league.core.state.state import LeagueState
from league.errors import LeagueError, nearest
from league.json_report import JsonReport
from league.store.journaled_league import state_of_run
from league.store.run_folder import RunFolder
from league.text_table import TextTable
from league.wording import seat_text


@dataclass(frozen=True)
class SeatRow:
    """Games of a home on one seat.

    Fields:
      seat: of the home. wins, draws, losses: all games ever.
      score: mean score of the home, each game as it weighs now; None where all have faded.
    """

    seat: int
    wins: int
    draws: int
    losses: int
    score: float | None


@dataclass(frozen=True)
class PayoffRow:
    """One pair (home, away) that has met.

    Fields:
      home, away: ids. games: ever. effective_games: as they weigh now, since learning players move on.
      win_rate, lower: posterior mean and its lower 5 % bound, which matchmaking and gates go by.
      seats: those on which the home has played.
    """

    home: str
    away: str
    games: int
    effective_games: float
    win_rate: float
    lower: float
    seats: tuple[SeatRow, ...]


@dataclass(frozen=True)
class PayoffReport(JsonReport):
    """Pairs of the homes asked for, each home's hardest opponents first.

    counts: what the games count by. is_competitive: False for a game of one team, in which nobody meets an opponent.
    seat_names: of the game, empty where it has none.
    """

    run: str
    rows: tuple[PayoffRow, ...]
    counts: str
    is_competitive: bool = True
    seat_names: tuple[str, ...] = ()

    def text(self) -> str:
        if not self.rows:
            return f"{self.run}: {'no games yet' if self.is_competitive else 'a game of one team has no opponents'}"
        heads = ("home", "away", "win rate", "lower", "games", "weigh now", "by seat")
        forms = ("", "", ".3f", ".3f", ",", ",.0f")
        rows = []
        for row in self.rows:
            seats = ", ".join(self._seat(seat) for seat in row.seats)
            rows.append((row.home, row.away, row.win_rate, row.lower, row.games, row.effective_games, seats))
        return "\n".join([*TextTable(heads, rows, (0, 1, 6), forms).lines(), f"by {self.counts}"])

    def _seat(self, row: SeatRow) -> str:
        score = "-" if row.score is None else f"{row.score:.2f}"
        return f"{seat_text(self.seat_names, row.seat)}: {score}"


def read_payoff(path: Path, *, homes: tuple[str, ...] = ()) -> PayoffReport:
    """The payoff of a run, also of a live one.

    Args:
      homes: whose rows; empty for those of the learning players.
    Raises:
      MissingRun, JournalError. LeagueError: there is no such policy.
    """
    folder = RunFolder.open(path)
    state = state_of_run(folder)
    rows = payoff_rows(state, homes or tuple(state.players))
    return PayoffReport(str(path), rows, state.counts, state.is_competitive, folder.seat_names)


def payoff_rows(state: LeagueState, homes: tuple[str, ...], *, away: str | None = None) -> tuple[PayoffRow, ...]:
    """Every pair that a home has met; each home's hardest opponents first.

    Args:
      away: the only opponent wanted; None for all.
    Raises:
      LeagueError: there is no such policy; the message names the nearest.
    """
    rows: list[PayoffRow] = []
    for home in homes:
        number = state.population.index.get(home)
        if number is None:
            raise LeagueError(f"the league has no policy {home!r}{nearest(home, state.population.index)}")
        rows += sorted(_rows_of(state, home, number, away), key=lambda row: (row.win_rate, row.away))
    return tuple(rows)


def _rows_of(state: LeagueState, home: str, number: int, only: str | None) -> list[PayoffRow]:
    payoff, staleness_clock = state.payoff, state.population.staleness_clock.values
    known = payoff.posterior(number, staleness_clock)
    met = np.unique(payoff.away[payoff.cells_of(number)]).tolist()
    if only is not None:
        met = [away for away in met if state.population.names[away] == only]
    rows = []
    for away in met:
        totals, present = payoff.seat_totals(number, away), payoff.seat_games(number, away, staleness_clock)
        seats = tuple(
            SeatRow(
                seat,
                wins=int(totals[seat, WIN]),
                draws=int(totals[seat, DRAW]),
                losses=int(totals[seat, LOSS]),
                score=float(present[seat, SCORE] / present[seat, GAMES]) if present[seat, GAMES] > 0.0 else None,
            )
            for seat in np.flatnonzero(totals.sum(axis=1)).tolist()
        )
        rows.append(
            PayoffRow(
                home,
                state.population.names[away],
                games=int(totals.sum()),
                effective_games=float(known.games[away]),
                win_rate=float(known.mean[away]),
                lower=float(known.lower[away]),
                seats=seats,
            )
        )
    return rows
