"""Matches within a time limit: rounds of growing size, so that every meeting has an interval when the time is over."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from league.agents.acting.policy import ActInputs
from league.envs.protocol import EnvConfig
from league.envs.registry import make
from league.envs.text.number_text import number_text
from league.judge.contenders.bots import SEARCH, bot_policy, simulations_of
from league.judge.matches.game_batch import OutOfTime
from league.judge.matches.match import Match
from league.judge.matches.match_result import MatchResult

GROWTH = 4
"""Games of a round over those of the round before."""
MIN_GAMES = 10
"""A bot that cannot play so many games against each player in its part of the time is left out."""
MEASURED_GAMES = 8
"""Games in which a bot's cost is measured, unless one shows that it is dear; bots that search answer for several."""
MEASURED_SIMULATIONS = 4
DEAR_SIMULATION_S = 1.0
"""A first simulation of a search that takes longer tells enough: the rollout of a game of chess takes seconds."""

Meeting = tuple[str, ...]
"""Names of the contenders of one match, the home first."""


@dataclass(frozen=True)
class Deadline:
    """The deadline of an evaluation. at: in seconds of the monotonic `clock`. limit_s: the limit that was given."""

    at: float
    limit_s: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def after(cls, limit_s: float, *, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """So many seconds from now."""
        return cls(clock() + limit_s, limit_s, clock)

    def left(self) -> float:
        """Seconds, negative when it is over."""
        return self.at - self.clock()


class Count:
    """Games finished so far, passed on; `tick` reports that play continues."""

    def __init__(self, total: int, progress: Callable[[int, int], None] | None) -> None:
        self._total = total
        self._progress = progress
        self._done = 0

    def add(self, games: int) -> None:
        """So many games have ended."""
        self._done += games
        self.tick()

    def tick(self) -> None:
        """Nothing new but the time."""
        if self._progress is not None:
            self._progress(self._done, self._total)


def play_all(
    matches: Mapping[Meeting, Match],
    *,
    games: int,
    teams: int,
    deadline: Deadline | None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[Meeting, MatchResult]:
    """The matches of some meetings, of so many games each.

    Without a deadline each is played in one part. With one they are played in rounds, the first of one game from each
    team, each later one of `GROWTH` times as many. A part that cannot end in time, judging by the round before, is not
    started. One that is not over in time does not count.

    Returns:
      Only meetings of which games have ended.
    """

    def left() -> float:
        return math.inf if deadline is None else deadline.left()

    count, done, open_, took = Count(len(matches) * games, progress), 0, dict(matches), dict.fromkeys(matches, 0.0)

    def still() -> bool:
        count.tick()
        return left() > 0.0

    for part in [games] if deadline is None else rounds(games, first=teams):
        done += part
        for meeting, match in list(open_.items()):
            begun = left()
            try:
                if took[meeting] > begun:
                    raise OutOfTime
                match.play(part, still=still, progress=count.add)
            except OutOfTime:
                del open_[meeting]
                continue
            took[meeting] = (begun - left()) * min(GROWTH, (games - done) / part)
    return {meeting: match.result for meeting, match in matches.items() if match.result is not None}


def rounds(games: int, *, first: int) -> Iterator[int]:
    """The games of each round, which add up to `games`: `first`, then `GROWTH` times as many as the round before."""
    part = min(first, games)
    while part:
        yield part
        games -= part
        part = min(part * GROWTH, games)


def affordable(
    env: EnvConfig,
    bots: Sequence[str],
    *,
    limit_s: float,
    players: int,
    games: int,
    decisions: float,
    seed: int,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Bots that play `MIN_GAMES` games against each player in their part of a time, and a sentence on each other one.

    The cheapest comes first, and what it does not need for all its games is left to those after it.

    Args:
      bots: that can play the game. players: whom each meets. games: with each of them. decisions: of a bot in a game.
      clock: in whose seconds the time is given.
    """
    begun, notes, costs = clock(), list[str](), dict[str, float]()
    moves = decisions * MIN_GAMES * players
    for bot in bots:
        if clock() - begun > limit_s:
            notes.append(f"{bot} is left out: the time was over before a move of it was timed")
        else:
            costs[bot] = moves * seconds_a_move(env, bot, seed=seed, enough_s=limit_s / max(moves, 1e-9), clock=clock)
    kept, left_s = set[str](), limit_s
    for place, (bot, seconds) in enumerate(sorted(costs.items(), key=lambda item: item[1])):
        allowed_s = left_s / (len(costs) - place)
        if seconds <= allowed_s:
            kept.add(bot)
            left_s -= min(seconds * max(games / MIN_GAMES, 1.0), allowed_s)
        else:
            texts = [(number_text(seconds, digits), number_text(allowed_s, digits)) for digits in (2, 3, 4)]
            needed, has = next((pair for pair in texts if pair[0] != pair[1]), texts[-1])
            notes.append(
                f"{bot} is left out: {MIN_GAMES} games against each would take it about {needed} s, and it has {has} s"
            )
    return tuple(bot for bot in bots if bot in kept), tuple(notes)


def expected_seconds(
    env: EnvConfig, bots: Sequence[str], *, moves: float, seed: int, enough_s: float
) -> dict[str, float]:
    """Seconds that each bot needs for so many moves, judging by its first in a game.

    Args:
      bots: that can play the game. enough_s: seconds far above which a rough figure does.
    """
    return {bot: moves * seconds_a_move(env, bot, seed=seed, enough_s=enough_s / max(moves, 1.0)) for bot in bots}


def seconds_a_move(
    env_config: EnvConfig, bot: str, *, seed: int, enough_s: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Seconds per move of a bot at the start of a game; a search is timed over a few simulations.

    One game is timed first. Several come after it unless they could hardly bring a move below `enough_s`. A search
    whose first simulation takes longer than `DEAR_SIMULATION_S` is timed by that alone.
    """
    simulations = simulations_of(bot)
    if simulations > 1:
        first = _timed_moves(env_config, f"{SEARCH}:1", seed=seed, num_envs=1, clock=clock)
        if first > DEAR_SIMULATION_S:
            return first * simulations
    alone = _timed_moves(env_config, bot, seed=seed, num_envs=1, clock=clock)
    if alone > MEASURED_GAMES * enough_s:
        return alone
    return _timed_moves(env_config, bot, seed=seed, num_envs=MEASURED_GAMES, clock=clock)


def _timed_moves(env_config: EnvConfig, bot: str, *, seed: int, num_envs: int, clock: Callable[[], float]) -> float:
    simulations = simulations_of(bot)
    measured = min(simulations, MEASURED_SIMULATIONS)
    times = simulations / measured if measured else 1.0
    policy = bot_policy(f"{SEARCH}:{measured}" if measured else bot, seed=seed)
    with closing(make(env_config, num_envs=num_envs)) as env:
        turn = env.reset(seed)
        slots = np.arange(len(turn.env_index))
        view = ActInputs(env, turn, slots, np.zeros((len(slots), 0), np.float32))
        begun = clock()
        policy.act(view, np.random.default_rng(seed))
        return times * (clock() - begun) / len(slots)
