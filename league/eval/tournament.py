"""Everybody against everybody: matches on common openings, and what each entrant makes of all of them."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

from agents.policy import BotPolicy, SeatPolicy
from envs.bots import make_bot
from envs.protocol import EnvConfig
from league.core.records import BOT_PREFIX
from league.eval.match import Progress, play_match
from league.eval.scores import Interval, MatchResult, wilson


@dataclass(frozen=True)
class PairRow:
    """One match, from the side of `home`.

    Fields:
      home, away: names of the entrants.
      games, wins, draws, losses: counts; in a game of several rivals against each other they are of home against the
        first rival, while the score is over all.
      score: of home, with its interval.
      by_team: [T] score of home while it held team 0, 1, ...
      mean_turns: mean length of a game.
    """

    home: str
    away: str
    games: int
    wins: int
    draws: int
    losses: int
    score: Interval
    by_team: tuple[float, ...]
    mean_turns: float


@dataclass(frozen=True)
class Standing:
    """What an entrant scored over all its matches; low and high are Wilson's 95 % interval over all its games."""

    name: str
    games: int
    score: Interval


@dataclass(frozen=True)
class Tournament:
    """A finished round robin.

    Fields:
      env_id: the game. seed, opening_plies: as played.
      pairs: one row per pair, in the order of the entrants.
      standings: best first.
    """

    env_id: str
    seed: int
    opening_plies: int
    pairs: tuple[PairRow, ...]
    standings: tuple[Standing, ...]

    def to_plain(self) -> dict[str, object]:
        """As dicts, lists and scalars, fit for JSON."""
        return asdict(self)


def round_robin(
    env_config: EnvConfig,
    entrants: Mapping[str, SeatPolicy],
    *,
    games: int,
    seed: int,
    opening_plies: int = 2,
    progress: Progress | None = None,
) -> Tournament:
    """Every pair of entrants plays `games` games, all pairs on the same openings.

    Args:
      entrants: name -> policy; two at least.
      games: a multiple of the number of teams, of each match.
      seed, opening_plies, progress: as in `play_match`.
    Raises:
      ValueError: fewer than two entrants, or as `play_match`. EnvError: from the env or a bot.
    """
    if len(entrants) < 2:
        raise ValueError(f"a tournament needs two entrants, got {list(entrants)}")
    pairs = []
    for home, away in itertools.combinations(entrants, 2):
        result = play_match(
            env_config,
            [entrants[home], entrants[away]],
            games=games,
            seed=seed,
            opening_plies=opening_plies,
            progress=progress,
        )
        pairs.append(pair_row(home, away, result))
    return Tournament(env_config.id, seed, opening_plies, tuple(pairs), standings(entrants, pairs))


def pair_row(home: str, away: str, result: MatchResult) -> PairRow:
    """The row of a match between entrants 0 and 1."""
    wins, draws, losses = result.counts()
    return PairRow(home, away, result.games, wins, draws, losses, result.score(), result.by_team(), result.mean_turns)


def standings(names: Iterable[str], pairs: Sequence[PairRow]) -> tuple[Standing, ...]:
    """What each entrant scored over all rows, best first; equal scores keep the order of `names`."""
    table = []
    for name in names:
        results = [
            (row.score.value if row.home == name else 1.0 - row.score.value, row.games)
            for row in pairs
            if name in (row.home, row.away)
        ]
        games = sum(count for _, count in results)
        table.append(Standing(name, games, wilson(sum(score * count for score, count in results) / games, games)))
    return tuple(sorted(table, key=lambda standing: -standing.score.value))


def bot_entrant(name: str, *, seed: int) -> BotPolicy:
    """A scripted bot ("random", "tactical", "mcts:N", also as "bot:NAME") with a stream of its own.

    Raises:
      EnvError: no such bot.
    """
    name = name.removeprefix(BOT_PREFIX)
    return BotPolicy(make_bot(name, seed=zlib.crc32(f"{seed}/{name}".encode())))
