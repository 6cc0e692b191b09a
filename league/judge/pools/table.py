"""The table of a pool: ratings with 95 % intervals, games, and how unsure the pool is as a whole."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
import numpy as np

from league.core.metagame.ratings import ELO_PER_LOGIT
from league.judge.pools.core.fit import fit_pool, games_of
from league.judge.pools.core.state import DRAWS, LOSSES, WINS, PoolState
from league.text_table import TextTable
from league.wording import counted

ANCHOR, RATED, SET_ASIDE = "anchor", "rated", "set aside"


@dataclass(frozen=True)
class PoolRow:
    """One policy.

    Fields:
      rank: from 1. name, source: see `PoolPolicy`.
      elo, low, high: its rating and the ends of the 95 % interval; equal for an anchor.
      games: played. status: "anchor", "rated", or "set aside" with the reason in `note`.
    """

    rank: int
    name: str
    elo: float
    low: float
    high: float
    games: int
    status: str
    note: str
    source: str


@dataclass(frozen=True)
class PoolTable:
    """The whole table.

    Fields:
      game: its id. games, batches, open_leases, failed, expired: counts.
      uncertainty: root mean square of the standard deviations, in Elo.
      draws: part of the games that ended in a draw. dispersion: see `league.judge.pools.core.fit`.
      rows: strongest first.
    """

    game: str
    games: int
    batches: int
    open_leases: int
    failed: int
    expired: int
    uncertainty: float
    draws: float
    dispersion: float
    rows: tuple[PoolRow, ...]

    def to_json(self) -> str:
        """One JSON object."""
        return msgspec.json.format(msgspec.json.encode(self), indent=1).decode()

    def to_csv(self) -> str:
        """A line for each policy below a heading."""
        heads = list(PoolRow.__dataclass_fields__)
        return TextTable(heads, [[getattr(row, head) for head in heads] for row in self.rows]).csv()

    def text(self) -> str:
        head = (
            f"{self.game}: {counted(len(self.rows), 'policy', 'policies')}, {counted(self.games, 'game')} in "
            f"{counted(self.batches, 'batch', 'batches')},"
            f" {self.draws:.0%} draws; uncertainty {self.uncertainty:.0f} Elo; being played: "
            f"{counted(self.open_leases, 'batch', 'batches')}"
            f" ({self.expired} given up, {self.failed} failed)"
        )
        rows = []
        for row in self.rows:
            interval = ANCHOR if row.status == ANCHOR else f"{row.low:,.0f} to {row.high:,.0f}"
            note = f"set aside: {row.note}" if row.status == SET_ASIDE else ""
            rows.append((row.rank, row.name, row.elo, interval, row.games, note))
        heads = ("", "policy", "Elo", "95 % interval", "games", "")
        return "\n".join([head, *TextTable(heads, rows, (1, 5), ("", "", ",.0f", "", ",")).lines()])


def pool_table(state: PoolState) -> PoolTable:
    """Rate a pool from all its games."""
    assert state.game is not None
    elo = low = high = deviations = np.zeros(0)
    dispersion = 1.0
    if state.policies:
        fit = fit_pool(games_of(state))
        (elo, low, high), deviations, dispersion = fit.elo(), fit.deviations, fit.dispersion
    totals = state.totals.values
    games = float(totals[:, [WINS, DRAWS, LOSSES]].sum())
    rows = []
    for rank, index in enumerate(np.argsort(-elo, kind="stable").tolist(), start=1):
        policy = state.policies[index]
        status = ANCHOR if policy.elo is not None else RATED if state.is_playable(index) else SET_ASIDE
        one, least, most = (round(float(values[index]), 2) for values in (elo, low, high))
        played, note = int(state.games.values[index]), state.reasons.get(index, "")
        rows.append(PoolRow(rank, policy.name, one, least, most, played, status, note, policy.source))
    rated = [index for index, policy in enumerate(state.policies) if policy.elo is None]
    return PoolTable(
        game=state.game.env_id,
        games=int(games),
        batches=state.finished,
        open_leases=len(state.leases),
        failed=state.failed,
        expired=state.expired,
        uncertainty=float(ELO_PER_LOGIT * np.sqrt((deviations[rated] ** 2).mean())) if rated else 0.0,
        draws=float(totals[:, DRAWS].sum()) / games if games else 0.0,
        dispersion=dispersion,
        rows=tuple(rows),
    )
