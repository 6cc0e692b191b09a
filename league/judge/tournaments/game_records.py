"""Games of a batch as text in the manner of PGN, for games whose moves have names."""

from __future__ import annotations

from collections.abc import Sequence

from league.envs.notation.game_record import game_record
from league.envs.notation.notation import notation_of
from league.judge.contenders.contender import Game
from league.judge.matches.game_moves import PlayedGame
from league.judge.matches.match import seat_holders
from league.judge.tournaments.records import BatchKey

EVENT = "League tournament"


def records_of(game: Game, key: BatchKey, names: Sequence[str], played: Sequence[PlayedGame]) -> str:
    """The records of games of two seats; empty where their moves have no names.

    Args:
      names: of the contenders in the batch's lineup.
    """
    notation = notation_of(game.env, game.spec) if game.spec.num_seats == 2 else None
    if notation is None or len(names) != 2:
        return ""
    return "\n".join(
        game_record(
            notation,
            one.moves,
            names=seat_holders(game.spec, names, one.rotation),
            returns=one.returns,
            tags={
                "Event": EVENT,
                "Site": "?",
                "Date": "????.??.??",
                "Round": f"{key.round + 1}.{key.number + 1}.{one.group + 1}",
                "Opening": f"{one.opening} random moves",
            },
        )
        for one in played
    )
