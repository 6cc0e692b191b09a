"""The games of one batch of a contest, played here."""

from __future__ import annotations

from collections.abc import Sequence

from league.judge.contenders.contender import Contender, Game
from league.judge.matches.contest import ContestConditions, open_batch
from league.judge.matches.game_moves import GameSink
from league.judge.matches.match_result import MatchResult


def play_batch(
    game: Game,
    lineup: Sequence[Contender],
    conditions: ContestConditions,
    *,
    number: int,
    games: int,
    on_game: GameSink | None = None,
) -> MatchResult:
    """Arguments as of `open_batch` and `Match.play`."""
    with open_batch(game, lineup, conditions, number=number, on_game=on_game) as match:
        return match.play(games)
