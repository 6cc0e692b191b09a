"""The meta-game: Nash mixture, alpha-rank, cycles and the disc plot of the strongest snapshots."""

from __future__ import annotations

import msgspec

from league.see.page.page_parts import NoQuery
from league.see.page.runs.opened_run import OpenedRun
from league.see.reports.figures.meta_game import MetaGame, meta_game_inputs, solve_meta_game

EVERY_S = 5.0


class MetaGameView(msgspec.Struct, frozen=True):
    """The meta-game. game: None until it is solved. seq: event that it is as of. error: why it is not, else empty."""

    game: MetaGame | None
    seq: int
    error: str


def read(run: OpenedRun, query: NoQuery) -> MetaGameView:
    """The meta-game of a run."""
    ratings = run.ratings.value
    if ratings is None:
        return MetaGameView(None, 0, run.ratings.error)
    found = run.background("meta-game", lambda: meta_game_inputs(run.state, ratings), solve_meta_game, every_s=EVERY_S)
    return MetaGameView(found.value, found.seq, found.error)
