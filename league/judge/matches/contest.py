"""Games between contenders: one batch of a contest, the same wherever and whenever it is played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np

from league.judge.contenders.contender import Contender, Game, OpenConditions
from league.judge.matches.game_moves import GameSink
from league.judge.matches.match import Progress, play_match
from league.judge.matches.match_result import MatchResult
from league.judge.recording.recording import Recording

MAX_FAILURES = 3
"""Games that a contender may fail in before its part in a contest ends."""


@dataclass(frozen=True)
class ContestConditions:
    """The conditions that all games of a contest share.

    Fields:
      seed: of openings, draws and sampled actions.
      opening_plies: uniformly random legal plies before anyone acts, see `play_match`.
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


def play_batch(
    game: Game,
    lineup: Sequence[Contender],
    conditions: ContestConditions,
    *,
    number: int,
    games: int,
    progress: Progress | None = None,
    still: Callable[[], bool] = lambda: True,
    on_game: GameSink | None = None,
    recording: Recording | None = None,
) -> MatchResult:
    """Play one batch of games.

    Everyone meets the openings of a batch: its seeds come from the conditions and its number alone.

    Args:
      lineup: a contender for each team; where there are fewer, the last one takes the remaining teams.
      number: of the batch, from 0. games, on_game, recording: as for `play_match`.
    Raises:
      LeagueError, EnvError: a contender cannot play, or the game failed. OutOfTime: see `play_match`.
    """
    seed = int(np.random.default_rng([conditions.seed, number]).integers(2**31))
    with ExitStack() as opened:
        own = OpenConditions(seed, conditions.greedy, conditions.search)
        policies = [opened.enter_context(contender.open(game, own)) for contender in lineup]
        return play_match(
            game.env,
            policies,
            games=games,
            seed=seed,
            opening_plies=conditions.opening_plies,
            progress=progress,
            still=still,
            on_game=on_game,
            recording=recording,
        )
