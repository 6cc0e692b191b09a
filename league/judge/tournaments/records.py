"""The records of a tournament's journal.

Shape letters: T teams of the game, R = T rotations, G groups of a batch that count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from league.judge.matches.match_result import MatchResult, score_games
from league.judge.matches.sprt import SprtConfig

Lineup = tuple[int, ...]
"""Positions of the contenders that meet, the first on the first team; the last takes the teams that remain."""


@dataclass(frozen=True)
class TournamentConfig:
    """The settings of a tournament; a folder holds one of them for ever.

    Fields:
      written: the contenders as they were given.
      env_id, env_kwargs: the game, where it was given beside the contenders; else empty.
      format: name in `FORMATS`. rounds: of a Swiss tournament or a ladder, 0 for as many as it needs.
      games: of each pairing. batch_games: played and recorded together.
      seed, opening_plies, greedy, search: as of `ContestConditions`; greedy null decides by the game.
      anchor: contender whose rating is fixed, "" for the first bot or contender. anchor_elo: at this.
      record: whether every game is kept.
      sprt: test that ends each pairing of a round; None plays all of its games.
    """

    written: tuple[str, ...]
    env_id: str = ""
    env_kwargs: dict[str, object] = field(default_factory=dict)
    format: str = "round-robin"
    rounds: int = 0
    games: int = 100
    batch_games: int = 50
    seed: int = 0
    opening_plies: int = 2
    greedy: bool | None = None
    anchor: str = ""
    anchor_elo: float = 0.0
    record: bool = False
    sprt: SprtConfig | None = None
    search: int = 0


@dataclass(frozen=True)
class EnrolledPolicy:
    """One policy of a contender. weight: in its mixture. digest: of its weights in the folder's store."""

    name: str
    weight: float
    digest: str


@dataclass(frozen=True)
class Enrolled:
    """One contender as it was found when the tournament began. members: its weights; empty for a bot or an engine."""

    name: str
    identity: str
    reason: str
    members: tuple[EnrolledPolicy, ...] = ()


@dataclass(frozen=True)
class TournamentCreated:
    """The tournament began. greedy: as it was decided. env_id, env_kwargs: the game."""

    config: TournamentConfig
    contenders: tuple[Enrolled, ...]
    env_id: str
    env_kwargs: dict[str, object]
    greedy: bool


@dataclass(frozen=True)
class BatchKey:
    """One batch of games: the round, who meets in it, and its number within that pairing of that round."""

    round: int
    lineup: Lineup
    number: int


@dataclass(frozen=True)
class BatchPlayed:
    """A batch of games has ended.

    Fields:
      seed_number: number that its seeds were made from, together with the tournament's seed.
      games: asked for; those of aborted groups are not in `returns`.
      returns: [R][G][T] return of each contender's team in each game. steps, aborted: as of `MatchResult`.
    """

    key: BatchKey
    seed_number: int
    games: int
    returns: tuple[tuple[tuple[float, ...], ...], ...]
    steps: int
    aborted: tuple[int, ...]


EVENTS: Mapping[str, type] = {"TournamentCreated": TournamentCreated, "BatchPlayed": BatchPlayed}


def played_batch(key: BatchKey, seed_number: int, games: int, result: MatchResult) -> BatchPlayed:
    """The record of a batch."""
    returns = tuple(tuple(tuple(game) for game in rotation) for rotation in result.team_returns.tolist())
    return BatchPlayed(key, seed_number, games, returns, result.steps, result.aborted)


def result_of(event: BatchPlayed, teams: int) -> MatchResult:
    """The result of a batch, exactly as it was recorded."""
    returns = np.array(event.returns, np.float64).reshape(len(event.returns), -1, teams)
    result = score_games(returns, event.steps)
    return MatchResult(result.wins, result.draws, result.group_scores, result.team_returns, event.steps, event.aborted)
