"""Games between contenders: one batch of a contest, the same wherever and whenever it is played."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

from league.judge.contenders.contender import Contender, Game, OpenConditions, open_lineup
from league.judge.matches.game_moves import GameSink
from league.judge.matches.match import Match
from league.judge.recording.recording import Recording

MAX_FAILURES = 3
"""Games that a contender may fail in before its part in a contest ends."""


@dataclass(frozen=True)
class ContestConditions:
    """The conditions that all games of a contest share.

    Fields:
      seed: of openings, draws and sampled actions.
      opening_plies: uniformly random legal plies before anyone acts, see `Match`.
      greedy: whether networks take the likeliest action.
      search: simulations of networks before each move; 0 for none.
    """

    seed: int = 0
    opening_plies: int = 2
    greedy: bool = True
    search: int = 0


def how_networks_act(conditions: ContestConditions) -> str:
    """The action that networks take, in words."""
    if conditions.search:
        return f"most visited action of {conditions.search} simulations of networks"
    return "likeliest action" if conditions.greedy else "sampled actions"


@contextmanager
def open_batch(
    game: Game,
    lineup: Sequence[Contender],
    conditions: ContestConditions,
    *,
    number: int,
    on_game: GameSink | None = None,
    recording: Recording | None = None,
) -> Iterator[Match]:
    """The match of one batch of games, whose contenders are there while the context is.

    Everyone meets the openings of a batch: its seeds come from the conditions and its number alone.

    Args:
      lineup: a contender for each team; where there are fewer, the last one takes the remaining teams.
      number: of the batch, from 0. on_game, recording: as for `Match`.
    Raises:
      LeagueError, EnvError: a contender cannot play.
    """
    seed = int(np.random.default_rng([conditions.seed, number]).integers(2**31))
    with open_lineup(lineup, game, OpenConditions(seed, conditions.greedy, conditions.search)) as policies:
        plies = conditions.opening_plies
        yield Match(game.env, policies, seed=seed, opening_plies=plies, on_game=on_game, recording=recording)
